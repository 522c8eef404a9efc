"""Batches about architectures, which are answered in a thread or as long work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from nodewise.domain.architectures import Architectures
from nodewise.domain.budget import Budget
from nodewise.domain.columns import freeze
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import RowRefusal
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.architectures import ArchitecturesQuestion, Rankings, rank_architectures
from nodewise.mapper.reading import Reader
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, computed_in
from nodewise.rpc.candidates import read_candidates
from nodewise.rpc.caps import check_steps, too_many
from nodewise.rpc.long_call import ANSWER_SHARE, LongCall, Workshop, unary
from nodewise.rpc.options import ReadOptions, read_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_predictions import write_basis, write_predictions
from nodewise_protos.v1 import prediction_service_pb2 as pb
from nodewise_protos.v1 import workload_pb2
from nodewise_values.fact import Fact
from nodewise_values.facts import ARCHITECTURES

__all__ = ["ArchitectureBatches", "read_architectures", "write_ranked"]

_Question = tuple[ArchitecturesQuestion, ReadOptions]


@dataclass(slots=True, eq=False)
class ArchitectureBatches:
    """Answers batches about architectures.

    Attributes
    ----------
    answers : Answers
        The answers of one generation.
    sources : ProfileSources
        Finds the profile with the facts that all architectures share.
    executor : Executor
        Threads for models that predict many architectures in one call.
    compute : Compute
        The pool for other models, which predict one architecture after the other.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    executor: Executor
    compute: Compute[Workshop]

    async def rank(self, request: pb.BatchPredictRequest, call: Call) -> bytes:
        """Predict and rank many architectures of one job; returns the serialised reply."""
        batch = await self._read_request(request, call)
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        try:
            reply: bytes | None = await computed_in(self.executor, call, _ranked_together, self.answers, batch, budget)
        finally:
            budget.end()
        return await self._ranked_singly(batch, call) if reply is None else reply

    @unary
    async def _ranked_singly(self, question: _Question, call: Call) -> LongCall:
        return LongCall(_ranked_singly, question)

    async def _read_request(self, request: pb.BatchPredictRequest, call: Call) -> _Question:
        """The question of a batch about architectures.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, LIMIT_EXCEEDED, ESTIMATOR_NOT_FOUND; as ``sources.profile``.
        """
        options = read_options(request.options).required_of(self.answers)
        architectures, refusals = read_architectures(request, self.limits)
        configurations = read_candidates(request.configurations, request.ranges, self.limits)
        rows = len(architectures) * len(configurations)
        if rows > self.limits.rows_per_call:
            raise too_many("rows of all architectures together", "rows_per_call", self.limits.rows_per_call, rows)
        check_steps(rows, options.terms.options, self.limits)
        profile = Profile()
        if request.HasField("profile"):
            profile = await self.sources.profile(request.profile, options.waiting(call))
        question = ArchitecturesQuestion(
            profile=profile,
            architectures=architectures,
            configurations=configurations,
            terms=options.terms,
            refusals=refusals,
        )
        return question, options


def _ranked_together(answers: Answers, question_and_options: _Question, budget: Budget) -> bytes | None:
    """The reply of estimators that predict many architectures in one call; None = they predict one at a time."""
    question, options = question_and_options
    ranking = rank_architectures(answers, replace(question, terms=question.terms.within(budget)), together=True)
    return None if ranking is None else write_ranked(ranking, options.columns).SerializeToString()


def _ranked_singly(workshop: Workshop, question_and_options: _Question, run: LongRun) -> Iterator[bytes]:
    """The reply of any estimators, as long work."""
    question, options = question_and_options
    ranking = rank_architectures(workshop.answers, replace(question, terms=question.terms.within(run.budget)))
    assert ranking is not None
    yield write_ranked(ranking, options.columns).SerializeToString()


_PATH: Final = "architectures"
_NUMBERS: Final = tuple(fact for fact in ARCHITECTURES.values() if fact.kind != "str")
_OTHERS: Final = ("jobs", "objective", "offers")
"""Fields of a batch that do not go with architectures."""


def read_architectures(request: pb.BatchPredictRequest, limits: Limits) -> tuple[Architectures, tuple[RowRefusal, ...]]:
    """The architectures of a batch, and refusals of those with invalid facts, which are 0 in the result.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for columns that do not fit together, or fields that do not go with architectures;
        LIMIT_EXCEEDED.
    """
    message, reader = request.architectures, Reader()
    for name in _OTHERS:
        value = getattr(request, name)
        if value.ByteSize() if name == "objective" else len(value):
            reader.wrong(name, f"must be absent with {_PATH}")
    rows = max(len(getattr(message, name)) for name in (*(fact.field for fact in _NUMBERS), "family_indexes"))
    if not rows:
        reader.wrong(_PATH, "must hold at least one entry in a column of numbers, or in family_indexes")
    reader.finish()
    if rows > limits.rows_per_call:
        raise too_many("architectures", "rows_per_call", limits.rows_per_call, rows)
    columns: dict[str, Any] = {}
    wrong = []
    for fact in _NUMBERS:
        columns[fact.row], bad = _column(message, fact, rows, reader)
        wrong.append((bad, Refusal(Reason.INVALID_FIELD, f"{_PATH}.{fact.field}: {_right(fact)}", (fact.field,))))
    index = reader.entries(message, _PATH, rows, "family", ARCHITECTURES["family_names"])
    reader.finish()
    families = tuple(message.family_names) or ("",)
    return Architectures(**columns, families=families, family_index=index), RowRefusal.first(rows, wrong)


def _column(message: workload_pb2.Architectures, fact: Fact, rows: int, reader: Reader) -> tuple[Any, Any]:
    """A column of one number in each row, and a mask of the invalid ones, which are 0."""
    values = getattr(message, fact.field)
    dtype = np.int64 if fact.kind == "int" or fact.whole else np.float64
    if len(values) not in (0, 1, rows):
        path = f"{_PATH}.{fact.field}"
        reader.wrong(path, f"must be empty, have one entry, or one for each of {rows} rows; found {len(values)}")
        return freeze(np.zeros(rows, dtype=dtype)), np.zeros(rows, dtype=bool)
    column = np.broadcast_to(np.array(values or [0.0], dtype=np.float64), rows)
    most = np.inf if fact.maximum is None else fact.maximum
    bad = ~np.isfinite(column) | (column < 0.0) | (column > most)
    if fact.minimum:
        bad |= (column > 0.0) & (column < fact.minimum)
    if dtype is np.int64:
        bad |= np.isfinite(column) & (column != np.floor(column))
    return freeze(np.where(bad, 0.0, column).astype(dtype)), bad


def _right(fact: Fact) -> str:
    what = "a whole number" if fact.kind == "int" or fact.whole else "a finite number"
    least = f"of at least {fact.minimum:g}" if fact.minimum else "above 0"
    most = "" if fact.maximum is None else f" and at most {fact.maximum:g}"
    return f"must be {what} {least}{most}, or 0 where it is not known"


def write_ranked(result: Rankings, columns: frozenset[int]) -> pb.BatchPredictResponse:
    """The reply about architectures."""
    reply = pb.BatchPredictResponse()
    write_predictions(reply.predictions, [result.answer], columns)
    if result.answer.basis.estimator:
        reply.bases.append(write_basis(result.answer.basis))
    for ranking in result.rankings:
        reply.rankings.add(
            architecture_indexes=ranking.order.tolist(),
            expected_kendall_tau=ranking.expected_kendall,
            refused_share=ranking.refused_share,
        )
    return reply
