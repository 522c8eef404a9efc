"""What every estimator must hold: checks of one record against jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from nodewise.catalogue.loading import load_catalogue
from nodewise.conformance.architectures import check_architectures
from nodewise.conformance.evidence import Evidence, Job
from nodewise.conformance.findings import NonConformanceError, difference, require, row_difference, sound
from nodewise.conformance.planning import check_bounds, check_evaluation
from nodewise.conformance.stated import stating
from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.estimation.estimators.check import checked
from nodewise.estimation.estimators.shown import shown_to
from nodewise.estimation.suggestion.covariance import wrong_with
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.hosting.registry import Loaded
from nodewise.plugin import (
    BASIC_COLUMNS,
    ArchitecturesModel,
    Assessment,
    Catalogue,
    CovariantModel,
    EstimatorRecord,
    LearningEstimator,
    Model,
    PlanningModel,
    Prior,
    Query,
)
from nodewise.profiles.digest import content_digest

__all__ = ["ESTIMATOR_CHECKS"]

_OURS: Final = ("FAILED", "INVALID_RESULT", "INTERNAL", "STORE", "DEADLINE")
"""In reasons that are not a plugin's to refuse with."""


@dataclass(frozen=True)
class _Context:
    """What a fit may use besides the profile."""

    job: Job
    prior: Prior | None
    catalogue: Catalogue
    seed: int = 0

    def traces(self) -> Sequence[Trace]:
        return self.job.traces

    def model(self, estimator: str) -> Model:
        message = f"no estimator {estimator!r} stands beside the one that is checked"
        raise NodewiseError(Reason.ESTIMATOR_NOT_FOUND, message)


@dataclass(frozen=True, eq=False)
class _Asked:
    """An estimator that agreed to answer a job."""

    record: EstimatorRecord
    job: Job
    model: Model
    options: Options = field(default_factory=Options)

    def predict(self, rows: Configurations) -> Predictions:
        """The checked answer to some rows."""
        answer = sound(f"predict on {self.job.name!r}", lambda: self.model.predict(rows, self.options))
        try:
            return checked(answer, rows)
        except ImpossibleAnswerError as error:
            raise NonConformanceError(f"predict on {self.job.name!r} answers what cannot be true: {error}") from None

    @property
    def rows(self) -> Configurations:
        """Rows of the job that the service would show."""
        return _shown(self.record, self.job, self.job.configurations)


def _shown(record: EstimatorRecord, job: Job, rows: Configurations) -> Configurations:
    return shown_to(record.columns, rows, job.profile.workload.precision or "").configurations


@cache
def _catalogue() -> Catalogue:
    return load_catalogue()


def _profiles(evidence: Evidence) -> list[Job]:
    """Jobs whose profiles are told apart by their digests."""
    return [replace(job, profile=replace(job.profile, digest=content_digest(job.profile))) for job in evidence.jobs]


def _prior(loaded: Loaded[EstimatorRecord], jobs: Sequence[Job]) -> Prior | None:
    estimator = loaded.record.estimator
    if not isinstance(estimator, LearningEstimator):
        return None
    try:
        return sound("learn", lambda: estimator.learn([job.profile for job in jobs]))
    except NodewiseError:
        return None


def _assessed(record: EstimatorRecord, profile: Profile, rows: Configurations) -> Assessment:
    query = Query(configurations=rows, catalogue=_catalogue())
    found = sound("assess", lambda: record.estimator.assess(profile, query))
    require(isinstance(found, Assessment), f"assess answered a {type(found).__name__}; it must be an Assessment")
    require(0.0 <= found.strength <= 1.0, f"assess states a strength of {found.strength}; it lies from 0 to 1")
    if found.refusal is not None:
        _require_tellable(found.refusal, "assess")
    return found


def _require_tellable(refusal: Refusal, where: str) -> None:
    ours = any(word in refusal.reason for word in _OURS)
    require(not ours, f"{where} refuses with {refusal.reason}, which is the server's to say")
    require(refusal.message, f"{where} refuses without a word; say what would be right")
    if refusal.reason is Reason.EVIDENCE_MISSING:
        message = f"{where} refuses with EVIDENCE_MISSING and names no field: missing_fields say what to provide"
        require(refusal.missing_fields, f"{message} ({refusal.message!r})")


def _fitted(loaded: Loaded[EstimatorRecord], job: Job, prior: Prior | None) -> _Asked | None:
    """The estimator's model of a job; None = it refuses."""
    rows = _shown(loaded.record, job, job.configurations)
    if not len(rows) or _assessed(loaded.record, job.profile, rows).refusal is not None:
        return None
    context = _Context(job, prior, _catalogue())
    model = sound(f"fit on {job.name!r}", lambda: loaded.record.estimator.fit(job.profile, context))
    return _Asked(loaded.record, job, model)


def _answering(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> Iterator[_Asked]:
    jobs = _profiles(evidence)
    prior = _prior(loaded, jobs)
    for job in jobs:
        asked = _fitted(loaded, job, prior)
        if asked is not None:
            yield asked


def _each(check: Callable[[_Asked], None]) -> Callable[[Loaded[EstimatorRecord], Evidence], None]:
    """A check of every job that the estimator answers."""

    def run(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
        for asked in _answering(loaded, evidence):
            check(asked)

    return run


def _answers(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    for asked in _answering(loaded, evidence):
        if asked.predict(asked.rows).answered.any():
            return
    refusals = {
        job.name: _assessed(loaded.record, job.profile, job.configurations).refusal for job in _profiles(evidence)
    }
    told = "; ".join(f"{name}: {refusal.message}" for name, refusal in refusals.items() if refusal is not None)
    require(False, f"it answers no row of any job; pass jobs of its own as evidence ({told})")  # noqa: FBT003


def _shapes(asked: _Asked) -> None:
    asked.predict(asked.rows)
    none = asked.rows.take(as_ints([]))
    require(len(asked.predict(none)) == 0, "predict of no rows answers some")


def _inputs(asked: _Asked) -> None:
    rows, profile = asked.rows, asked.job.profile
    turned = as_ints(np.arange(len(rows))[::-1])
    before, digest = rows.take(turned).take(turned), profile.digest
    asked.predict(rows)
    where = difference(before, rows, "configurations")
    require(where is None, f"predict changes {where}, which it was given")
    require(content_digest(profile) == digest, "fit or predict changes the profile, which it was given")


def _purity(asked: _Asked) -> None:
    rows = asked.rows
    first = asked.predict(rows)
    asked.predict(rows.take(as_ints([len(rows) - 1])))
    where = difference(first, asked.predict(rows), "predictions")
    require(where is None, f"the same question gets another answer: {where} differs the second time")


def _determinism(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    for first, second in zip(_answering(loaded, evidence), _answering(loaded, evidence), strict=True):
        rows = first.rows
        where = difference(first.predict(rows), second.predict(rows), "predictions")
        require(
            where is None, f"two fits of {first.job.name!r} with one seed differ in {where}; draw from context.seed"
        )


def _order(asked: _Asked) -> None:
    rows = asked.rows
    order = as_ints(np.random.default_rng(0).permutation(len(rows)))
    turned, back = asked.predict(rows.take(order)), np.argsort(order)
    where = row_difference(asked.predict(rows), _taken(turned, back))
    require(where is None, f"the order of the rows of {asked.job.name!r} changes {where}; each row stands for itself")


def _row_by_row(asked: _Asked) -> None:
    rows = asked.rows
    alone = [(as_ints([row]), asked.predict(rows.take(as_ints([row])))) for row in range(len(rows))]
    where = row_difference(asked.predict(rows), Predictions.joined(len(rows), alone))
    require(where is None, f"rows of {asked.job.name!r} asked one by one differ in {where} from all at once")


def _taken(predictions: Predictions, order: np.ndarray) -> Predictions:
    """The rows of an answer in another order."""
    places = as_ints(np.argsort(order))
    return Predictions.joined(len(predictions), ((places, predictions),))


def _refusals(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    for job in _profiles(evidence):
        _assessed(loaded.record, Profile(), job.configurations)
        _assessed(loaded.record, job.profile, job.configurations.take(as_ints([])))
    for asked in _answering(loaded, evidence):
        for each in asked.predict(asked.rows).refusals:
            _require_tellable(each.refusal, f"row {each.rows[0]} of {asked.job.name!r}")


def _columns(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    """Every column beyond the basic ones that the record lists changes some answer, or is refused."""
    left = loaded.record.columns - BASIC_COLUMNS
    for asked in _answering(loaded, evidence):
        plain = asked.predict(asked.rows)
        for column in sorted(left):
            rows = stating(column, asked.rows)
            if rows is not None and row_difference(plain, asked.predict(rows)) is not None:
                left -= {column}
    named = ", ".join(sorted(left))
    require(not left, f"columns lists {named}, which changes no answer: leave it out, or take it into account")


def _learning(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    jobs = _profiles(evidence)
    first, second = _prior(loaded, jobs), _prior(loaded, jobs[::-1])
    if first is None or second is None:
        return
    require(first.prior_id, "the prior has no id: derive one from what was learned")
    require(first.prior_id == second.prior_id, "the order of the corpus changes the prior's id; same corpus, same id")


def _covariance(asked: _Asked) -> None:
    if not isinstance(asked.model, CovariantModel):
        return
    rows, model = asked.rows, asked.model
    answered = asked.predict(rows).answered
    found = sound("log_covariance", lambda: model.log_covariance(rows, asked.options))
    wrong = wrong_with(found, len(rows))
    require(wrong is None, f"it states no covariance: {wrong}")
    require(not found[~answered].any(), "log_covariance holds values in rows that predict refuses")
    require(model.measurement_log_spread >= 0.0, "measurement_log_spread is negative")


def _architectures(loaded: Loaded[EstimatorRecord], evidence: Evidence) -> None:
    """Of jobs of which facts alone are known: of no architecture a run is one of the job."""
    jobs = _profiles(evidence)
    prior = _prior(loaded, jobs)

    def alone(job: Job, profile: Profile, rows: Configurations) -> Predictions:
        single = replace(job, profile=profile)
        asked = _fitted(loaded, single, prior)
        if asked is not None:
            return asked.predict(rows)
        refusal = _assessed(loaded.record, profile, rows).refusal
        assert refusal is not None
        return Predictions.refused(len(rows), refusal)

    for job in jobs:
        asked = None if len(job.profile.observations) else _fitted(loaded, job, prior)
        if asked is not None and isinstance(asked.model, ArchitecturesModel):
            check_architectures(asked.model, job, asked.rows, asked.options, partial(alone, job))


def _planning(check: Callable[[str, PlanningModel, Job, Callable[[Configurations], Predictions]], None]) -> Any:
    """A check of models that make the search fast, on jobs with constraints."""

    def run(asked: _Asked) -> None:
        if isinstance(asked.model, PlanningModel) and asked.job.constraints is not None:
            check(asked.record.name, asked.model, asked.job, asked.predict)

    return _each(run)


ESTIMATOR_CHECKS: Final[Mapping[str, Callable[[Loaded[EstimatorRecord], Evidence], None]]] = MappingProxyType(
    {
        "answers": _answers,
        "shapes, bounds and sums": _each(_shapes),
        "inputs are not written to": _each(_inputs),
        "purity": _each(_purity),
        "determinism": _determinism,
        "order of rows": _each(_order),
        "all rows as row by row": _each(_row_by_row),
        "refusals": _refusals,
        "columns": _columns,
        "learning": _learning,
        "covariance": _each(_covariance),
        "architectures at once as one by one": _architectures,
        "evaluate as predict": _planning(check_evaluation),
        "lower bounds": _planning(check_bounds),
    }
)
