"""Throughput curves of all jobs, from the predictions that every other call gets too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, as_floats, as_ints, freeze
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.failures import assumed_save_s
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
    """The curves, and for each job (in the state's order) the basis of its curve or the reason why it has none.

    Attributes
    ----------
    refusals : tuple
        Why a job has no curve; None = it has one, or none of its allowed counts fits the cluster.
    bases : tuple
        The evidence behind a job's rows; None = it has no curve.
    batch_known : tuple of bool
        True = rates are samples/s, else mini-batches/s.
    complete : bool
        False = the time was over before every job was predicted.
    save_s : float
        Assumed seconds of a checkpoint in each row; 0 where no pool states failures.
    throughput : float or None
        Rates without failures, where those of ``curves`` are goodput; None = no pool states failures.
    """

    curves: Curves
    refusals: tuple[Refusal | None, ...]
    bases: tuple[Basis | None, ...]
    batch_known: tuple[bool, ...]
    complete: bool
    save_s: Floats
    throughput: Floats | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _JobRows:
    """One job's predicted rows."""

    candidates: CandidateRows
    configurations: Configurations
    rates: Floats
    usable: NDArray[np.bool_]
    batch_known: bool
    basis: Basis
    save_s: Floats


def gather_curves(
    question: ScheduleQuestion, inputs: CheckedQuestion, predict: Predict, budget: Budget, limits: ScheduleLimits
) -> JobCurves:
    """Predict every job on all its candidates.

    A job that cannot be predicted is refused alone. Jobs of the same profile and candidates are predicted once. Jobs
    that are not predicted when the time is over are refused with DEADLINE_EXCEEDED.

    Raises
    ------
    NodewiseError
        LIMIT_EXCEEDED; DEADLINE_EXCEEDED when the caller no longer waits.
    """
    state = inputs.state
    candidates_of = Candidates(state)
    check_rows(candidates_of, state, question.jobs, inputs.order, limits.candidate_rows, limits.placed_nodes)
    answers: dict[tuple[object, ...], _JobRows | Refusal] = {}
    results: list[_JobRows | Refusal | None] = []
    complete = True
    for job, place in zip(state.jobs, inputs.order):
        job_question = question.jobs[place]
        budget.look_up()
        if isinstance(job_question.profile, NodewiseError):
            results.append(job_question.profile.refusal)
            continue
        candidates = candidates_of.rows(job, job_question.settings)
        if not len(candidates):
            results.append(None)
            continue
        key = _identity(job_question.profile, candidates)
        if key not in answers:
            if budget.remaining_s() <= 0:
                complete = False
                results.append(_OUT_OF_TIME)
                continue
            answers[key] = _predict_rows(question, job_question.profile, candidates, predict)
        results.append(answers[key])
    return _assemble(results, complete=complete)


def _identity(profile: Profile, candidates: CandidateRows) -> tuple[object, ...]:
    """The key of a job's answer: candidates are shared objects, profiles have digests."""
    content = (profile.profile_id, profile.revision, profile.digest) if profile.digest else id(profile)
    return content, candidates


def _predict_rows(
    question: ScheduleQuestion, profile: Profile, candidates: CandidateRows, predict: Predict
) -> _JobRows | Refusal:
    try:
        answer = predict(Question(profile=profile, configurations=candidates.configurations, terms=question.terms))
    except NodewiseError as error:
        return error.refusal
    has_prediction = answer.predictions.answered
    batch_known = bool((answer.samples_per_step > 0)[has_prediction].all())
    rates = answer.samples_per_s if batch_known else answer.minibatches_per_s
    usable = has_prediction & (rates > 0)
    if not usable.any():
        return _why_nothing(answer)
    save_s = np.zeros(len(rates))
    if question.counts_failures:
        parameter_bytes, per_node = profile.workload.parameter_bytes, candidates.devices / candidates.nodes
        save_s, _ = assumed_save_s(parameter_bytes, answer.predictions.extra, per_node)
    return _JobRows(candidates, answer.configurations, rates, usable, batch_known, answer.basis, save_s)


def _why_nothing(answer: Answer) -> Refusal:
    """The refusal that most rows share, or that no row fits into memory."""
    if answer.predictions.refusals:
        return max(answer.predictions.refusals, key=lambda each: len(each.rows)).refusal
    short = answer.predictions.excess_memory_bytes
    if (answer.predictions.status == RowStatus.INFEASIBLE_MEMORY).any():
        least = "" if short is None else f" (at least {short[short > 0].min(initial=np.inf):,.0f} bytes are missing)"
        text = f"does not fit into memory on any allowed number of devices{least}"
        return Refusal(Reason.UNSUPPORTED_CONFIGURATION, text)
    return Refusal(Reason.EVIDENCE_MISSING, "cannot be predicted on any allowed number of devices")


def _assemble(results: list[_JobRows | Refusal | None], *, complete: bool) -> JobCurves:
    """The predicted rows of all jobs, one after the other."""
    rows = [each for each in results if isinstance(each, _JobRows)]
    counts = [int(each.usable.sum()) if isinstance(each, _JobRows) else 0 for each in results]
    # Jobs of the same counts and settings share their columns: each is joined once, and its rows are taken.
    parts = {(id(each.candidates), id(each.configurations)): each for each in rows}
    starts = dict(zip(parts, np.cumsum([0, *(len(each.usable) for each in parts.values())]).tolist()))
    first = np.array([starts[id(each.candidates), id(each.configurations)] for each in rows], dtype=np.int64)
    lengths = np.array([len(each.usable) for each in rows], dtype=np.int64)
    row_of_part = np.repeat(first - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    usable = np.flatnonzero(_join([each.usable for each in rows]))
    taken = as_ints(row_of_part[usable])
    candidates = [each.candidates for each in parts.values()]
    curves = Curves(
        offsets=as_ints(np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))),
        **{
            name: as_ints(_join([getattr(each, name) for each in candidates])[taken])
            for name in ("pool", "devices", "nodes")
        },
        samples_per_s=as_floats(_join([each.rates for each in rows])[usable]),
        configurations=Configurations.concatenated([each.configurations for each in parts.values()]).take(taken),
    )
    return JobCurves(
        curves=curves,
        refusals=tuple(each if isinstance(each, Refusal) else None for each in results),
        bases=tuple(each.basis if isinstance(each, _JobRows) else None for each in results),
        batch_known=tuple(not isinstance(each, _JobRows) or each.batch_known for each in results),
        complete=complete,
        save_s=as_floats(_join([each.save_s for each in rows])[usable]),
    )


def _join(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def without(curves: Curves, jobs: set[int]) -> Curves:
    """The curves without the rows of some jobs; every job keeps its place."""
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
