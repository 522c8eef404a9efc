"""A batch about architectures: asked, and answered in a thread or as long work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace

from nodewise.domain.budget import Budget
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.architectures import ArchitecturesQuestion, ranked
from nodewise.ports.compute import Compute, LongRun
from nodewise.ports.limits import Limits
from nodewise.rpc.calls import Call, computed_in
from nodewise.rpc.candidates import read_candidates
from nodewise.rpc.caps import check_steps, too_many
from nodewise.rpc.long_call import ANSWER_SHARE, LongCall, Workshop, unary
from nodewise.rpc.options import ReadOptions, read_options
from nodewise.rpc.sources import ProfileSources
from nodewise.rpc.wire_architectures import read_architectures, write_ranked
from nodewise_protos.v1 import prediction_service_pb2 as pb

__all__ = ["ArchitectureBatches"]

_Asked = tuple[ArchitecturesQuestion, ReadOptions]


@dataclass(slots=True, eq=False)
class ArchitectureBatches:
    """Answers batches about architectures.

    Attributes
    ----------
    answers : Answers
        Answers.
    sources : ProfileSources
        Finds the profile that says what all of them share.
    executor : Executor
        Threads for models that take many architectures at once.
    compute : Compute
        Where the others are asked, one architecture after the other.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    executor: Executor
    compute: Compute[Workshop]

    async def ranked(self, request: pb.BatchPredictRequest, call: Call) -> bytes:
        """Many architectures of one job; the reply as it goes over the wire."""
        asked = await self._asked(request, call)
        budget = Budget(call.remaining_s() * ANSWER_SHARE)
        try:
            reply: bytes | None = await computed_in(self.executor, call, _ranked_together, self.answers, asked, budget)
        finally:
            budget.end()
        return await self._ranked_singly(asked, call) if reply is None else reply

    @unary
    async def _ranked_singly(self, asked: _Asked, call: Call) -> LongCall:
        return LongCall(_ranked_singly, asked)

    async def _asked(self, request: pb.BatchPredictRequest, call: Call) -> _Asked:
        """What a batch asks about architectures.

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


def _ranked_together(answers: Answers, asked: _Asked, budget: Budget) -> bytes | None:
    """The reply of estimators that take many architectures at once; None = one by one it is."""
    question, options = asked
    found = ranked(answers, replace(question, terms=question.terms.within(budget)), together=True)
    return None if found is None else write_ranked(found, options.columns).SerializeToString()


def _ranked_singly(workshop: Workshop, asked: _Asked, run: LongRun) -> Iterator[bytes]:
    """The reply of whichever estimators, as long work."""
    question, options = asked
    found = ranked(workshop.answers, replace(question, terms=question.terms.within(run.budget)))
    assert found is not None
    yield write_ranked(found, options.columns).SerializeToString()
