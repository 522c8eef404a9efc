"""Estimators in the checks: they learn, are fitted to jobs, and their answers are checked as the service does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from nodewise.catalogue.loading import load_catalogue
from nodewise.conformance.evidence import Evidence, Job
from nodewise.conformance.findings import require, sound, sound_answer
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.estimators.check import check_predictions
from nodewise.estimation.estimators.supported_rows import mask_unsupported
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Assessment, Catalogue, EstimatorRecord, LearningEstimator, Model, Prior, Query
from nodewise.profiles.digest import content_digest

__all__ = ["JobModel", "answering", "assess", "fit_job", "jobs_of", "prior_of", "require_tellable"]

_OURS: Final = ("FAILED", "INVALID_RESULT", "INTERNAL", "STORE", "DEADLINE")
"""Parts of reasons that a plugin may not refuse with."""


@dataclass(frozen=True)
class _Context:
    """The context of a fit."""

    job: Job
    prior: Prior | None
    catalogue: Catalogue
    seed: int = 0

    def traces(self) -> Sequence[Trace]:
        return self.job.traces

    def model(self, estimator: str) -> Model:
        message = f"the check loads no estimator {estimator!r}, only the one under test"
        raise NodewiseError(Reason.ESTIMATOR_NOT_FOUND, message)


@dataclass(frozen=True, eq=False)
class JobModel:
    """An estimator's model of a job that it can answer."""

    record: EstimatorRecord
    job: Job
    model: Model
    options: Options = field(default_factory=Options)

    def predict(self, rows: Configurations) -> Predictions:
        """The checked answer to some rows."""
        return sound_answer(
            f"predict on {self.job.name!r}",
            lambda: self.model.predict(rows, self.options),
            lambda answer: check_predictions(answer, rows),
        )

    @property
    def rows(self) -> Configurations:
        """Rows of the job, without unsupported columns, as the service passes them."""
        return _show(self.record, self.job, self.job.configurations)


def _show(record: EstimatorRecord, job: Job, rows: Configurations) -> Configurations:
    return mask_unsupported(record.columns, rows, job.profile.workload.precision or "").configurations


@cache
def _catalogue() -> Catalogue:
    return load_catalogue()


def jobs_of(evidence: Evidence) -> list[Job]:
    """The jobs, with the digest of each profile."""
    return [replace(job, profile=replace(job.profile, digest=content_digest(job.profile))) for job in evidence.jobs]


def prior_of(plugin: LoadedPlugin[EstimatorRecord], jobs: Sequence[Job]) -> Prior | None:
    """The prior that an estimator learns from jobs; None = it does not learn, or refuses to."""
    estimator = plugin.record.estimator
    if not isinstance(estimator, LearningEstimator):
        return None
    try:
        return sound("learn", lambda: estimator.learn([job.profile for job in jobs]))
    except NodewiseError:
        return None


def assess(record: EstimatorRecord, profile: Profile, rows: Configurations) -> Assessment:
    """An estimator's assessment of a question, checked."""
    query = Query(configurations=rows, catalogue=_catalogue())
    assessment = sound("assess", lambda: record.estimator.assess(profile, query))
    require(
        isinstance(assessment, Assessment),
        f"assess returned a {type(assessment).__name__}; it must be an Assessment",
    )
    require(0.0 <= assessment.strength <= 1.0, f"assess returned the strength {assessment.strength}; it must be 0 to 1")
    if assessment.refusal is not None:
        require_tellable(assessment.refusal, "assess")
    return assessment


def require_tellable(refusal: Refusal, where: str) -> None:
    """Require a reason that a plugin may give, a message, and the missing fields."""
    ours = any(word in refusal.reason for word in _OURS)
    require(not ours, f"{where} refuses with {refusal.reason}, a reason that only the server may give")
    require(refusal.message, f"{where} refuses without a message; say what the caller should change")
    if refusal.reason is Reason.EVIDENCE_MISSING:
        message = f"{where} refuses with EVIDENCE_MISSING and names no field; list what to provide in missing_fields"
        require(refusal.missing_fields, f"{message} ({refusal.message!r})")


def fit_job(plugin: LoadedPlugin[EstimatorRecord], job: Job, prior: Prior | None) -> JobModel | None:
    """The estimator's model of a job; None = it refuses."""
    rows = _show(plugin.record, job, job.configurations)
    if not len(rows) or assess(plugin.record, job.profile, rows).refusal is not None:
        return None
    context = _Context(job, prior, _catalogue())
    model = sound(f"fit on {job.name!r}", lambda: plugin.record.estimator.fit(job.profile, context))
    return JobModel(plugin.record, job, model)


def answering(plugin: LoadedPlugin[EstimatorRecord], evidence: Evidence) -> Iterator[JobModel]:
    """The estimator's models of the jobs that it can answer."""
    jobs = jobs_of(evidence)
    prior = prior_of(plugin, jobs)
    for job in jobs:
        job_model = fit_job(plugin, job, prior)
        if job_model is not None:
            yield job_model
