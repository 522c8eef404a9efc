"""Throughput curves of all jobs, from the same predictions that every other asker gets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, as_floats, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import RowStatus
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import CURVE_COLUMNS, Curves
from nodewise.estimation.question import Answer, Basis, Question
from nodewise.plugin import Budget
from nodewise.scheduling.candidates import CandidateRows, Candidates, check_rows
from nodewise.scheduling.checks import CheckedQuestion
from nodewise.scheduling.request import ScheduleLimits, ScheduleQuestion

__all__ = ["JobCurves", "Predict", "gather_curves", "without"]

Predict = Callable[[Question], Answer]
"""Answers a question about one job; raises NodewiseError for a job that cannot be answered."""

_OUT_OF_TIME = Refusal(Reason.DEADLINE_EXCEEDED, "the call's time was over before this job was predicted")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class JobCurves:
    """The curves, and per job (in the state's order) what they rest on or why there is none.

    Attributes
    ----------
    refusals : tuple
        Why a job has no curve; None = it has one, or nothing that it is allowed fits the cluster.
    bases : tuple
        What a job's rows rest on; None = it was not answered.
    batch_known : tuple of bool
        True = rates are samples/s, else mini-batches/s.
    complete : bool
        False = the time was over before every job was predicted.
    """

    curves: Curves
    refusals: tuple[Refusal | None, ...]
    bases: tuple[Basis | None, ...]
    batch_known: tuple[bool, ...]
    complete: bool


@dataclass(frozen=True, slots=True, eq=False)
class _JobRows:
    """One job's answered rows."""

    candidates: CandidateRows
    configurations: Configurations
    rates: Floats
    kept: NDArray[np.bool_]
    batch_known: bool
    basis: Basis


def gather_curves(
    question: ScheduleQuestion, known: CheckedQuestion, predict: Predict, budget: Budget, limits: ScheduleLimits
) -> JobCurves:
    """Predict every job on everything it may run on.

    A job that cannot be answered is refused alone. Jobs of the same profile and candidates are predicted once. Jobs
    that the time did not suffice for are refused with DEADLINE_EXCEEDED.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED; DEADLINE_EXCEEDED once nobody waits any more.
    """
    state = known.state
    candidates_of = Candidates(state)
    check_rows(candidates_of, state, question.jobs, known.order, limits.candidate_rows, limits.placed_nodes)
    answers: dict[tuple[object, ...], _JobRows | Refusal] = {}
    found: list[_JobRows | Refusal | None] = []
    complete = True
    for job, place in zip(state.jobs, known.order):
        asked = question.jobs[place]
        budget.look_up()
        if isinstance(asked.profile, NodewiseError):
            found.append(asked.profile.refusal)
            continue
        candidates = candidates_of.rows(job, asked.settings)
        if not len(candidates):
            found.append(None)
            continue
        key = _identity(asked.profile, candidates)
        if key not in answers:
            if budget.remaining_s() <= 0:
                complete = False
                found.append(_OUT_OF_TIME)
                continue
            answers[key] = _predict_rows(question, asked.profile, candidates, predict)
        found.append(answers[key])
    return _assemble(found, complete=complete)


def _identity(profile: Profile, candidates: CandidateRows) -> tuple[object, ...]:
    """Same identity, same answer: candidates are shared objects, profiles have digests."""
    content = (profile.profile_id, profile.revision, profile.digest) if profile.digest else id(profile)
    return content, candidates


def _predict_rows(
    question: ScheduleQuestion, profile: Profile, candidates: CandidateRows, predict: Predict
) -> _JobRows | Refusal:
    try:
        answer = predict(Question(profile=profile, configurations=candidates.configurations, terms=question.terms))
    except NodewiseError as error:
        return error.refusal
    answered = answer.predictions.answered
    batch_known = bool((answer.samples_per_step > 0)[answered].all())
    rates = answer.samples_per_s if batch_known else answer.minibatches_per_s
    kept = answered & (rates > 0)
    if not kept.any():
        return _why_nothing(answer)
    return _JobRows(candidates, answer.configurations, rates, kept, batch_known, answer.basis)


def _why_nothing(answer: Answer) -> Refusal:
    """The refusal that most rows share, or that no row fits into memory."""
    if answer.predictions.refusals:
        return max(answer.predictions.refusals, key=lambda each: len(each.rows)).refusal
    short = answer.predictions.excess_memory_bytes
    if (answer.predictions.status == RowStatus.INFEASIBLE_MEMORY).any():
        least = "" if short is None else f" ({short[short > 0].min(initial=np.inf):,.0f} bytes short at best)"
        return Refusal(Reason.UNSUPPORTED_CONFIGURATION, f"does not fit into memory on any allowed count{least}")
    return Refusal(Reason.EVIDENCE_MISSING, "no allowed count could be predicted")


def _assemble(found: list[_JobRows | Refusal | None], *, complete: bool) -> JobCurves:
    """All jobs' answered rows, one after the other."""
    rows = [each for each in found if isinstance(each, _JobRows)]
    counts = [int(each.kept.sum()) if isinstance(each, _JobRows) else 0 for each in found]
    kept = np.flatnonzero(_join([each.kept for each in rows]))
    configurations = Configurations.concatenated([each.configurations for each in rows])
    if len(kept) < len(configurations):
        configurations = configurations.take(kept)
    listed = [each.candidates for each in rows]
    curves = Curves(
        offsets=as_ints(np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))),
        **{
            name: as_ints(_join([getattr(each, name) for each in listed])[kept])
            for name in ("pool", "devices", "nodes")
        },
        samples_per_s=as_floats(_join([each.rates for each in rows])[kept]),
        configurations=configurations,
    )
    return JobCurves(
        curves=curves,
        refusals=tuple(each if isinstance(each, Refusal) else None for each in found),
        bases=tuple(each.basis if isinstance(each, _JobRows) else None for each in found),
        batch_known=tuple(not isinstance(each, _JobRows) or each.batch_known for each in found),
        complete=complete,
    )


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def without(curves: Curves, jobs: set[int]) -> Curves:
    """The curves with the rows of some jobs left out; every job keeps its place."""
    if not jobs:
        return curves
    lengths = np.diff(curves.offsets)
    out = np.zeros(len(lengths), dtype=bool)
    out[list(jobs)] = True
    rows = as_ints(np.flatnonzero(~np.repeat(out, lengths)))
    return Curves(
        offsets=as_ints(np.concatenate(([0], np.cumsum(np.where(out, 0, lengths))))),
        **{name: freeze(getattr(curves, name)[rows]) for name in CURVE_COLUMNS},
        configurations=curves.configurations.take(rows),
    )
