"""Backtest: estimators see a table's train rows, predict its test rows, and are scored.

A backtest uses only the plugins and the catalogue of a running service: its answers, models and priors are created
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

__all__ = ["ALL", "names_of", "run_backtest"]

ALL: Final = "all"
"""Name that stands for every loaded estimator."""
COVERAGE: Final = 0.9
"""Coverage of the requested intervals."""
TOO_LARGE: Final = "INFEASIBLE_MEMORY: does not fit into the devices' memory"
"""Why a row of that status has no rate."""
KEPT_BYTES: Final = 8 << 20
"""Bytes of models that a backtest keeps: jobs come one after the other, each with few models."""


def run_backtest(
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
        Source of the plugins and the catalogue; its models, priors and profiles are not used.
    table : MeasurementTable
        Train rows may be seen, test rows are predicted and, where they are measured, scored.
    calibration : MeasurementTable or None
        Train rows of other jobs, as evidence about devices and software.
    estimators : sequence of str
        Names, "auto" for the service's choice job by job, "all" for every loaded estimator.
    sources : sequence of str
        Source of each job of the table. For a job, estimators then learn from jobs of other
        sources and the calibration. Empty = from all jobs.
    evidence : int or None
        Rows of each job that estimators see, as ``shown_of_each``; None = its train rows.
    progress : callable or None
        Called with the finished jobs and all jobs, over all estimators, before each job and at the end. An exception
        ends the run.
    look : callable
        Called every few milliseconds of work; an exception ends the run too.

    Raises
    ------
    NodewiseError
        ESTIMATOR_NOT_FOUND.
    """
    names = names_of(answers, estimators)
    numbers = as_ints(np.arange(len(table)))
    if evidence is not None:
        table, numbers = shown_of_each(table, table.job_index, evidence)
    cases = cases_of(table, look)
    others = () if calibration is None else cases_of(calibration, look)
    cases_with_rows = [case for case in cases if len(case.rows)]
    tell = progress or (lambda *_: None)  # no progress is reported
    case_count, total = 0, len(names) * len(cases_with_rows)
    tell(case_count, total)
    folds_with_lessons = []
    for fold in folds_of(cases_with_rows, cases, sources):
        corpus = evidence_of((*fold.others, *others))
        lesson = learned_from(answers.registry, corpus, look)
        calibrations = calibrations_of(
            lesson.registry, corpus, catalogue=answers.estimators.catalogue, priors=lesson.priors, look=look
        )
        folds_with_lessons.append((fold.asked, lesson, calibrations))
    runs = []
    for name in names:
        run = []
        for cases_of_fold, lesson, calibrations in folds_with_lessons:
            # New answers each time, so that no estimator finds fitted models of another, and times are comparable.
            fresh = Answers(
                lesson.registry,
                catalogue=answers.estimators.catalogue,
                priors=lesson.priors,
                calibrations=calibrations,
                space=CacheSpace(KEPT_BYTES),
            )
            for case in cases_of_fold:
                run.append(_predict(fresh, lesson, name, case))
                case_count += 1
                tell(case_count, total)
        runs.append((name, sorted(run, key=lambda result: result.case.job)))
    lessons = [lesson for _, lesson, _ in folds_with_lessons]
    truth = Truth.of(table)
    results = (_evaluation(answers, truth, lessons, name, run) for name, run in runs)
    evaluations = tuple(
        replace(each, predictions=replace(each.predictions, rows=freeze(numbers[each.predictions.rows])))
        for each in results
    )
    return BacktestResult(evaluations=evaluations, prior=_describe_priors(lessons, runs))


def _describe_priors(lessons: Sequence[LearningResult], runs: Sequence[tuple[str, Sequence[_CaseResult]]]) -> str:
    """The priors that answers rest on, and their sources; priors with the same sources are listed together."""
    bases = [case.answer.basis for _, run in runs for case in run if case.answer is not None]
    prior_ids = {part.prior_id for basis in bases for part in basis.mixture or (basis,)}
    priors = {p.prior_id: p for lesson in lessons for p in lesson.priors.values() if p.prior_id in prior_ids}
    alike: dict[str, list[str]] = {}
    for name, prior in sorted(priors.items()):
        alike.setdefault(", ".join(prior.sources) or "nothing", []).append(name)
    return "; ".join(f"{', '.join(names)}, learned from {sources}" for sources, names in alike.items())


def names_of(answers: Answers, estimators: Sequence[str]) -> list[str]:
    """Each requested estimator once, with "all" expanded. Raises NodewiseError (ESTIMATOR_NOT_FOUND)."""
    names: dict[str, None] = {}
    for request in estimators or (AUTO,):
        for name in answers.registry.predicting if request == ALL else (request,):
            if name != AUTO:
                answers.estimators.by_name(name)
            names[name] = None
    return list(names)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _CaseResult:
    """Result of one estimator for one job; ``error`` None = ``answer`` is valid."""

    case: Case
    answer: Answer | None
    error: NodewiseError | None
    fit_s: float
    predict_s: float


def _predict(answers: Answers, lesson: LearningResult, name: str, case: Case) -> _CaseResult:
    if name in lesson.failures:
        return _CaseResult(case=case, answer=None, error=lesson.failures[name], fit_s=0.0, predict_s=0.0)
    question = Question(
        profile=case.profile, configurations=case.configurations, terms=Terms(estimator=name, coverage=COVERAGE)
    )
    answer = error = None
    start_s = fit_end_s = time.perf_counter()
    try:
        try:
            query = answers.resolve(question)
        finally:
            fit_end_s = time.perf_counter()
        answer = answers.complete(question, query)
    except NodewiseError as caught:
        error = caught
    end_s = time.perf_counter()
    return _CaseResult(case=case, answer=answer, error=error, fit_s=fit_end_s - start_s, predict_s=end_s - fit_end_s)


def _evaluation(
    answers: Answers, truth: Truth, lessons: Sequence[LearningResult], name: str, run: Sequence[_CaseResult]
) -> EstimatorEvaluation:
    predictions = _gather(truth, run)
    outcomes, memory = truth.outcomes(predictions), truth.memory(predictions)
    taus: dict[bytes, float] = {}

    def metrics_of(part: Ints, parts: int) -> list[Metrics]:
        return with_memory(metrics_by(outcomes, part, parts, taus), memory, part)

    everything = metrics_of(as_ints(np.zeros(len(outcomes), dtype=np.int64)), 1)[0]
    seconds = [each for lesson in lessons for each in lesson.seconds.items()]
    learning_s = math.fsum(taken_s for estimator, taken_s in seconds if name in (AUTO, estimator))
    jobs = [result.case.job for result in run]
    number = np.zeros(len(truth.table.jobs), dtype=np.int64)
    number[jobs] = np.arange(len(jobs))
    by_job = metrics_of(as_ints(number[truth.job]), len(jobs))
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
        by_sync=_by_sync(truth, metrics_of),
    )


def _by_sync(truth: Truth, metrics_of: Callable[[Ints, int], list[Metrics]]) -> tuple[tuple[str, Metrics], ...]:
    modes, part = np.unique(truth.sync_mode, return_inverse=True)
    metrics_of_modes = metrics_of(as_ints(part), len(modes))
    return tuple((SyncMode(mode).name.lower(), metrics) for mode, metrics in zip(modes.tolist(), metrics_of_modes))


def _gather(truth: Truth, run: Sequence[_CaseResult]) -> RowPredictions:
    """The jobs' answers as columns in the table's order."""
    rows = len(truth.table)
    steps, lower, upper, memory = (np.zeros(rows) for _ in range(4))
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
            memory[where] = predictions.memory_bytes
        status[where] = predictions.status
        steps[where] = np.where(predictions.answered, result.answer.steps_per_s, 0.0)
        if result.answer.interval is not None:
            lower[where], upper[where] = _bounds(result.answer, predictions.answered)
        for refusal in predictions.refusals:
            has_reason = np.zeros(len(where), dtype=np.bool_)
            has_reason[[row for row in refusal.rows if 0 <= row < len(where)]] = True
            text = f"{refusal.refusal.reason}: {refusal.refusal.message}"
            refuse(where[has_reason & (predictions.status == RowStatus.REFUSED)], text)
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
        memory_bytes=freeze(memory[truth.rows]),
        status=freeze(status[truth.rows]),
        reasons=tuple(reasons),
        reason_index=freeze(reason[truth.rows]),
    )


def _bounds(answer: Answer, is_answered: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[Floats, Floats]:
    """Bounds of the rows' intervals; 0 in rows without."""
    assert answer.interval is not None
    lower, upper = answer.interval.lower_steps_per_s, answer.interval.upper_steps_per_s
    there = is_answered & (lower > 0) & np.isfinite(upper)
    return np.where(there, lower, 0.0), np.where(there, upper, 0.0)
