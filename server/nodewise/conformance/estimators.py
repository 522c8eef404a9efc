"""Checks of estimators: one record against jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import numpy as np

from nodewise.conformance.answering import JobModel, answering, assess, fit_job, jobs_of, prior_of, require_tellable
from nodewise.conformance.evidence import Evidence, Job
from nodewise.conformance.findings import Checks, difference, require, row_difference, sound, sound_answer
from nodewise.conformance.planning import check_bounds, check_evaluation
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.facts import CONFIGURATION_DEFAULTS
from nodewise.domain.groups import WorkerGroup, WorkerGroups
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.workload import Workload
from nodewise.estimation.estimators.check_architectures import check_architectures
from nodewise.estimation.suggestion.covariance import wrong_with
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import (
    BASIC_COLUMNS,
    Architectures,
    ArchitecturesModel,
    CovariantModel,
    EstimatorRecord,
    PlanningModel,
)
from nodewise.profiles.digest import content_digest

__all__ = ["ESTIMATOR_CHECKS"]

_VALUES: Final = {
    name: 1 + default
    for name, default in CONFIGURATION_DEFAULTS.items()
    if isinstance(default, int) and name not in BASIC_COLUMNS
}
"""Test values of integer columns; doubled where a row has that value already."""

_SLOWER: Final = 2.0
"""Compute time of the one worker of each row that differs from the others."""


def _each(check: Callable[[JobModel], None]) -> Callable[[LoadedPlugin[EstimatorRecord], Evidence], None]:
    """A check that runs for every job that the estimator answers."""

    def run(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
        for job_model in answering(plugin, evidence):
            check(job_model)

    return run


def _answers(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    for job_model in answering(plugin, evidence):
        if job_model.predict(job_model.rows).answered.any():
            return
    refusals = {job.name: assess(plugin.record, job.profile, job.configurations).refusal for job in jobs_of(evidence)}
    reasons = "; ".join(f"{name}: {refusal.message}" for name, refusal in refusals.items() if refusal is not None)
    require(False, f"the estimator answers no row of any job; pass jobs that it can answer as evidence ({reasons})")  # noqa: FBT003


def _shapes(job_model: JobModel) -> None:
    job_model.predict(job_model.rows)
    none = job_model.rows.take(as_ints([]))
    require(len(job_model.predict(none)) == 0, "predict returns rows for a question without rows")


def _inputs(job_model: JobModel) -> None:
    rows, profile = job_model.rows, job_model.job.profile
    reverse = as_ints(np.arange(len(rows))[::-1])
    before, digest = rows.take(reverse).take(reverse), profile.digest
    job_model.predict(rows)
    where = difference(before, rows, "configurations")
    require(where is None, f"predict writes to {where}, an argument")
    require(content_digest(profile) == digest, "fit or predict writes to the profile, an argument")


def _purity(job_model: JobModel) -> None:
    rows = job_model.rows
    first = job_model.predict(rows)
    job_model.predict(rows.take(as_ints([len(rows) - 1])))
    where = difference(first, job_model.predict(rows), "predictions")
    require(where is None, f"the same question gets different answers: {where} differs the second time")


def _determinism(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    for first, second in zip(answering(plugin, evidence), answering(plugin, evidence), strict=True):
        rows = first.rows
        where = difference(first.predict(rows), second.predict(rows), "predictions")
        require(
            where is None, f"two fits of {first.job.name!r} with one seed differ in {where}; draw from context.seed"
        )


def _order(job_model: JobModel) -> None:
    rows = job_model.rows
    order = as_ints(np.random.default_rng(0).permutation(len(rows)))
    shuffled, back = job_model.predict(rows.take(order)), np.argsort(order)
    where = row_difference(job_model.predict(rows), _take(shuffled, back))
    require(where is None, f"the order of the rows of {job_model.job.name!r} changes {where}; predict each row alone")


def _row_by_row(job_model: JobModel) -> None:
    rows = job_model.rows
    alone = [(as_ints([row]), job_model.predict(rows.take(as_ints([row])))) for row in range(len(rows))]
    where = row_difference(job_model.predict(rows), Predictions.joined(len(rows), alone))
    require(where is None, f"rows of {job_model.job.name!r} predicted one by one differ in {where} from all together")


def _claims(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    """The expected error of each row equals that of the row alone."""
    for job in jobs_of(evidence):
        rows = job.configurations
        assessment = assess(plugin.record, job.profile, rows)
        if assessment.refusal is not None or assessment.expected_log_error is None:
            continue
        errors = np.broadcast_to(assessment.expected_log_error, len(rows))
        for row in range(len(rows)):
            alone = assess(plugin.record, job.profile, rows.take(as_ints([row])))
            error = np.inf if alone.refusal is not None else np.atleast_1d(alone.expected_log_error or np.nan)[0]
            require(
                bool(np.isclose(error, errors[row])) or not np.isfinite(error),
                f"assess of {job.name!r} returns another expected_log_error for row {row} alone than among others",
            )


def _take(predictions: Predictions, order: np.ndarray) -> Predictions:
    """The rows of an answer in another order."""
    places = as_ints(np.argsort(order))
    return Predictions.joined(len(predictions), ((places, predictions),))


def _refusals(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    for job in jobs_of(evidence):
        assess(plugin.record, Profile(), job.configurations)
        assess(plugin.record, job.profile, job.configurations.take(as_ints([])))
        if assess(plugin.record, job.profile, job.configurations).of_profile:
            _of_profile(plugin.record, job, evidence)
    for job_model in answering(plugin, evidence):
        for each in job_model.predict(job_model.rows).refusals:
            require_tellable(each.refusal, f"row {each.rows[0]} of {job_model.job.name!r}")


def _of_profile(record: EstimatorRecord, job: Job, evidence: Evidence) -> None:
    """A refusal with ``of_profile`` applies to every question about the profile."""
    for other in jobs_of(evidence):
        refusal = assess(record, job.profile, other.configurations).refusal
        message = f"assess refuses {job.name!r} with of_profile=True, but answers the rows of {other.name!r}"
        require(refusal is not None, message)


def _columns(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    """Every column beyond the basic ones that the record lists changes some answer, or is refused."""
    left = plugin.record.columns - BASIC_COLUMNS
    for job_model in answering(plugin, evidence):
        plain = job_model.predict(job_model.rows)
        for column in sorted(left):
            rows = _stating(column, job_model.rows)
            if rows is not None and row_difference(plain, job_model.predict(rows)) is not None:
                left -= {column}
    names = ", ".join(sorted(left))
    require(not left, f"columns lists {names}, which changes no answer; remove it, or take it into account")


def _stating(column: str, rows: Configurations) -> Configurations | None:
    """The rows with another value of a column; None = the column is not known here."""
    if column in _VALUES:
        value = _VALUES[column]
        before = getattr(rows, column)
        return rows.replaced(**{column: as_ints(np.where(before == value, 2 * value, value))})
    if column == "hybrid_sync_fraction":
        return rows.replaced(hybrid_sync_fraction=as_floats((rows.hybrid_sync_fraction + 0.25) % 1.0))
    if column == "hybrid_switch_s":
        return rows.replaced(hybrid_switch_s=as_floats(rows.hybrid_switch_s + 10.0))
    if column == "precision":
        return rows.replaced(precisions=("fp32", "fp16"), precision_index=as_ints(np.arange(len(rows)) % 2))
    if column == "groups":
        return rows.replaced(worker_groups=WorkerGroups.of(map(_groups, _device_rows(rows)), rows.devices))
    return None


def _device_rows(rows: Configurations) -> list[tuple[str, int]]:
    return list(zip(rows.device_names(), rows.workers.tolist(), strict=True))


def _groups(row: tuple[str, int]) -> list[WorkerGroup]:
    device, workers = row
    alike = [WorkerGroup(device, workers - 1)] if workers > 1 else []
    return [*alike, WorkerGroup(device, 1, _SLOWER)]


def _learning(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    jobs = jobs_of(evidence)
    first, second = prior_of(plugin, jobs), prior_of(plugin, jobs[::-1])
    if first is None or second is None:
        return
    require(first.prior_id, "the prior has no id; derive one from what the estimator learned")
    require(
        first.prior_id == second.prior_id,
        "the order of the corpus changes the prior's id",
    )


def _covariance(job_model: JobModel) -> None:
    if not isinstance(job_model.model, CovariantModel):
        return
    rows, model = job_model.rows, job_model.model
    is_answered = job_model.predict(rows).answered
    covariance = sound("log_covariance", lambda: model.log_covariance(rows, job_model.options))
    wrong = wrong_with(covariance, len(rows))
    require(wrong is None, f"log_covariance returns no covariance: {wrong}")
    require(not covariance[~is_answered].any(), "log_covariance holds values in rows that predict refuses")
    require(model.measurement_log_spread >= 0.0, "measurement_log_spread is negative")


def _architectures(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
    """Check jobs without observations: a run of the job would not be one of another architecture."""
    jobs = jobs_of(evidence)
    prior = prior_of(plugin, jobs)

    def alone(job: Job, profile: Profile, rows: Configurations) -> Predictions:
        single = replace(job, profile=profile)
        job_model = fit_job(plugin, single, prior)
        if job_model is not None:
            return job_model.predict(rows)
        refusal = assess(plugin.record, profile, rows).refusal
        assert refusal is not None
        return Predictions.refused(len(rows), refusal)

    for job in jobs:
        job_model = None if len(job.profile.observations) else fit_job(plugin, job, prior)
        if job_model is not None and isinstance(job_model.model, ArchitecturesModel):
            _check_architectures(job_model.model, job, job_model.rows, job_model.options, partial(alone, job))


def _check_architectures(
    model: ArchitecturesModel,
    job: Job,
    rows: Configurations,
    options: Options,
    alone: Callable[[Profile, Configurations], Predictions],
) -> None:
    """Many architectures together get the predictions that each gets as its own profile, by ``alone``."""
    workloads = [replace(job.profile.workload, **facts) for facts in _variants(job.profile.workload)]
    many = Architectures.concatenated([Architectures.of(workload) for workload in workloads])
    together = sound_answer(
        f"predict_architectures of {job.name!r}",
        lambda: model.predict_architectures(many, rows, options),
        lambda answer: check_architectures(answer, len(many) * len(rows)),
    )
    answers_alone = [
        (as_ints(np.arange(len(rows)) + place * len(rows)), alone(_facts_alone(job.profile, workload), rows))
        for place, workload in enumerate(workloads)
    ]
    where = row_difference(together.predictions, Predictions.joined(len(many) * len(rows), answers_alone))
    require(where is None, f"architectures of {job.name!r} predicted together differ in {where} from one by one")


def _variants(workload: Workload) -> list[dict[str, Any]]:
    """Facts of architectures beside those of a job: larger, smaller, far larger, of another family, hardly known."""
    flops = workload.flops_per_sample or 1e9
    sizes = [{"flops_per_sample": factor * flops} for factor in (1.0, 0.5, 2.0, 1e6)]
    return [*sizes, {"family": "another", "flops_per_sample": flops}, {"flops_per_sample": None}]


def _facts_alone(profile: Profile, workload: Workload) -> Profile:
    own = Profile(workload=workload, network=profile.network)
    return replace(own, digest=content_digest(own))


def _planning(check: Callable[[LoadedPlugin[EstimatorRecord], JobModel], None]) -> Any:
    """A check of models that make the search fast, on jobs with constraints."""

    def run(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> None:
        for job_model in answering(plugin, evidence):
            if isinstance(job_model.model, PlanningModel) and job_model.job.constraints is not None:
                check(plugin, job_model)

    return run


ESTIMATOR_CHECKS: Final[Checks] = {
    "answers": _answers,
    "shapes, bounds and sums": _each(_shapes),
    "inputs are not written to": _each(_inputs),
    "purity": _each(_purity),
    "determinism": _determinism,
    "order of rows": _each(_order),
    "all rows as row by row": _each(_row_by_row),
    "expected errors as row by row": _claims,
    "refusals": _refusals,
    "columns": _columns,
    "learning": _learning,
    "covariance": _each(_covariance),
    "architectures at once as one by one": _architectures,
    "evaluate as predict": _planning(check_evaluation),
    "lower bounds": _planning(check_bounds),
}
