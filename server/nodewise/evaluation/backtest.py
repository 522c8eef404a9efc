"""Backtest: estimators see a table's train rows, predict its test rows, and are scored.

Nothing of a running service takes part but its plugins and catalogue: the answers, its models and its priors are made
for the run and end with it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.measurements import MeasurementTable
from nodewise.domain.predictions import RowStatus
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.calibrations import calibrations_of
from nodewise.estimation.lessons.priors import LearningResult, learned_from
from nodewise.estimation.question import AUTO, Answer, Question, Terms
from nodewise.evaluation.cases import Case, cases_of, evidence_of
from nodewise.evaluation.held_back import folds_of, shown_of_each
from nodewise.evaluation.memory_scores import with_memory
from nodewise.evaluation.metrics import metrics_by
from nodewise.evaluation.results import BacktestResult, EstimatorEvaluation, RowPredictions
from nodewise.evaluation.truth import Truth
from nodewise.ports.cache import CacheSpace
from nodewise_values import Metrics

__all__ = ["ALL", "backtested"]

ALL: Final = "all"
"""Name that stands for every loaded estimator."""
COVERAGE: Final = 0.9
"""Coverage of the intervals that are asked for."""
TOO_LARGE: Final = "INFEASIBLE_MEMORY: does not fit into the devices' memory"
"""Why a row of that status has no rate."""
KEPT_BYTES: Final = 8 << 20
"""What a backtest keeps: jobs come one after the other, each with the few models of its estimators."""


def backtested(
    answers: Answers,
    table: MeasurementTable,
    *,
    calibration: MeasurementTable | None = None,
    estimators: Sequence[str] = (AUTO,),
    sources: Sequence[str] = (),
    evidence: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    look: Callable[[], None] = lambda: None,
) -> BacktestResult:
    """Score estimators on a table.

    Parameters
    ----------
    answers : Answers
        Whose plugins and catalogue are used; its models, priors and profiles are not.
    table : MeasurementTable
        Train rows may be seen, test rows are predicted and, where they are measured, scored.
    calibration : MeasurementTable or None
        Train rows of other jobs, as evidence about devices and software.
    estimators : sequence of str
        Names, "auto" for the service's choice job by job, "all" for every one that is loaded.
    sources : sequence of str
        Where each job of the table comes from. What estimators learn for a job, they then learn from jobs of other
        sources and the calibration. Empty = from all jobs.
    evidence : int or None
        Rows of each job that estimators see, as ``shown_of_each``; None = its train rows.
    progress : callable or None
        Called with the jobs done and to do, over all estimators, before each job and at the end. What it raises ends
        the run.
    look : callable
        Called wherever work has lasted for some milliseconds; what it raises ends the run too.

    Raises
    ------
    NodewiseError
        ESTIMATOR_NOT_FOUND.
    """
    names = _names(answers, estimators)
    numbered = as_ints(np.arange(len(table)))
    if evidence is not None:
        table, numbered = shown_of_each(table, table.job_index, evidence)
    cases = cases_of(table, look)
    others = () if calibration is None else cases_of(calibration, look)
    asked = [case for case in cases if len(case.rows)]
    tell = progress or (lambda *_: None)  # nobody wants to know
    done, total = 0, len(names) * len(asked)
    tell(done, total)
    taught = []
    for fold in folds_of(asked, cases, sources):
        corpus = evidence_of((*fold.others, *others))
        learned = learned_from(answers.registry, corpus, look)
        calibrations = calibrations_of(
            learned.registry, corpus, catalogue=answers.estimators.catalogue, priors=learned.priors, look=look
        )
        taught.append((fold.asked, learned, calibrations))
    runs = []
    for name in names:
        run = []
        for scored, learned, calibrations in taught:
            # Asked anew each time: no estimator finds its models fitted by the one before it, and times compare.
            fresh = Answers(
                learned.registry,
                catalogue=answers.estimators.catalogue,
                priors=learned.priors,
                calibrations=calibrations,
                space=CacheSpace(KEPT_BYTES),
            )
            for case in scored:
                run.append(_predict(fresh, learned, name, case))
                done += 1
                tell(done, total)
        runs.append((name, sorted(run, key=lambda result: result.case.job)))
    lessons = [learned for _, learned, _ in taught]
    truth = Truth.of(table)
    found = (_evaluation(answers, truth, lessons, name, run) for name, run in runs)
    evaluations = tuple(
        replace(each, predictions=replace(each.predictions, rows=freeze(numbered[each.predictions.rows])))
        for each in found
    )
    return BacktestResult(evaluations=evaluations, prior=_describe_priors(lessons, runs))


def _describe_priors(lessons: Sequence[LearningResult], runs: Sequence[tuple[str, Sequence[_CaseResult]]]) -> str:
    """The priors that answers rest on, and what they were learned from: those learned from the same told together."""
    bases = [case.answer.basis for _, run in runs for case in run if case.answer is not None]
    used = {part.prior_id for basis in bases for part in basis.mixture or (basis,)}
    priors = {p.prior_id: p for learned in lessons for p in learned.priors.values() if p.prior_id in used}
    alike: dict[str, list[str]] = {}
    for name, prior in sorted(priors.items()):
        alike.setdefault(", ".join(prior.sources) or "nothing", []).append(name)
    return "; ".join(f"{', '.join(names)}, learned from {sources}" for sources, names in alike.items())


def _names(answers: Answers, estimators: Sequence[str]) -> list[str]:
    names: dict[str, None] = {}
    for asked in estimators or (AUTO,):
        for name in answers.registry.predicting if asked == ALL else (asked,):
            if name != AUTO:
                answers.estimators.by_name(name)
            names[name] = None
    return list(names)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _CaseResult:
    """What one estimator made of one job; ``error`` None = ``answer`` holds."""

    case: Case
    answer: Answer | None
    error: NodewiseError | None
    fit_s: float
    predict_s: float


def _predict(answers: Answers, learned: LearningResult, name: str, case: Case) -> _CaseResult:
    if name in learned.failures:
        return _CaseResult(case=case, answer=None, error=learned.failures[name], fit_s=0.0, predict_s=0.0)
    question = Question(
        profile=case.profile, configurations=case.configurations, terms=Terms(estimator=name, coverage=COVERAGE)
    )
    answer = error = None
    started = fitted = time.perf_counter()
    try:
        try:
            resolved = answers.resolve(question)
        finally:
            fitted = time.perf_counter()
        answer = answers.complete(question, resolved)
    except NodewiseError as caught:
        error = caught
    ended = time.perf_counter()
    return _CaseResult(case=case, answer=answer, error=error, fit_s=fitted - started, predict_s=ended - fitted)


def _evaluation(
    answers: Answers, truth: Truth, lessons: Sequence[LearningResult], name: str, run: Sequence[_CaseResult]
) -> EstimatorEvaluation:
    predictions = _gather(truth, run)
    outcomes, memory = truth.outcomes(predictions), truth.memory(predictions)
    taus: dict[bytes, float] = {}

    def scored(part: Ints, parts: int) -> list[Metrics]:
        return with_memory(metrics_by(outcomes, part, parts, taus), memory, part)

    everything = scored(as_ints(np.zeros(len(outcomes), dtype=np.int64)), 1)[0]
    seconds = [each for learned in lessons for each in learned.seconds.items()]
    learning_s = math.fsum(taken_s for estimator, taken_s in seconds if name in (AUTO, estimator))
    jobs = [result.case.job for result in run]
    number = np.zeros(len(truth.table.jobs), dtype=np.int64)
    number[jobs] = np.arange(len(jobs))
    by_job = scored(as_ints(number[truth.job]), len(jobs))
    return EstimatorEvaluation(
        estimator=name,
        version="" if name == AUTO else answers.estimators.by_name(name).record.version,
        predictions=predictions,
        overall=replace(
            everything,
            fit_seconds=learning_s + math.fsum(result.fit_s for result in run),
            predict_seconds=math.fsum(result.predict_s for result in run),
        ),
        by_job=tuple(
            (truth.table.jobs[each.case.job], replace(metrics, fit_seconds=each.fit_s, predict_seconds=each.predict_s))
            for each, metrics in zip(run, by_job, strict=True)
        ),
        by_sync=_by_sync(truth, scored),
    )


def _by_sync(truth: Truth, scored: Callable[[Ints, int], list[Metrics]]) -> tuple[tuple[str, Metrics], ...]:
    modes, part = np.unique(truth.sync_mode, return_inverse=True)
    found = scored(as_ints(part), len(modes))
    return tuple((SyncMode(mode).name.lower(), metrics) for mode, metrics in zip(modes.tolist(), found))


def _gather(truth: Truth, run: Sequence[_CaseResult]) -> RowPredictions:
    """The jobs' answers as columns in the table's order."""
    rows = len(truth.table)
    steps, lower, upper, held = (np.zeros(rows) for _ in range(4))
    status = np.full(rows, int(RowStatus.REFUSED), dtype=np.int64)
    reasons = {"": 0}
    reason = np.zeros(rows, dtype=np.int64)

    def refuse(where: Ints, text: str) -> None:
        status[where] = RowStatus.REFUSED
        reason[where] = reasons.setdefault(text, len(reasons))

    for result in run:
        where = result.case.rows
        if result.answer is None:
            refuse(where, str(result.error))
            continue
        predictions = result.answer.predictions
        if predictions.memory_bytes is not None:
            held[where] = predictions.memory_bytes
        status[where] = predictions.status
        steps[where] = np.where(predictions.answered, result.answer.steps_per_s, 0.0)
        if result.answer.interval is not None:
            lower[where], upper[where] = _bounds(result.answer, predictions.answered)
        for refusal in predictions.refusals:
            named = np.zeros(len(where), dtype=np.bool_)
            named[[row for row in refusal.rows if 0 <= row < len(where)]] = True
            text = f"{refusal.refusal.reason}: {refusal.refusal.message}"
            refuse(where[named & (predictions.status == RowStatus.REFUSED)], text)
        beyond = where[predictions.status == RowStatus.INFEASIBLE_MEMORY]
        if len(beyond):
            reason[beyond] = reasons.setdefault(TOO_LARGE, len(reasons))
        absurd = where[predictions.answered & ~((steps[where] > 0) & np.isfinite(steps[where]))]
        if len(absurd):
            refuse(absurd, f"{Reason.ESTIMATOR_INVALID_RESULT}: the predicted rate is no finite number")
            steps[absurd] = lower[absurd] = upper[absurd] = 0.0
    return RowPredictions(
        rows=truth.rows,
        steps_per_s=freeze(steps[truth.rows]),
        lower_steps_per_s=freeze(lower[truth.rows]),
        upper_steps_per_s=freeze(upper[truth.rows]),
        memory_bytes=freeze(held[truth.rows]),
        status=freeze(status[truth.rows]),
        reasons=tuple(reasons),
        reason_index=freeze(reason[truth.rows]),
    )


def _bounds(answer: Answer, answered: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[Floats, Floats]:
    """Bounds that are numbers; 0 in rows without."""
    assert answer.interval is not None
    lower, upper = answer.interval.lower_steps_per_s, answer.interval.upper_steps_per_s
    there = answered & (lower > 0) & np.isfinite(upper)
    return np.where(there, lower, 0.0), np.where(there, upper, 0.0)
