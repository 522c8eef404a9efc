"""Answer many architectures of one job on the same configurations, and state how reliable their order is.

Ranks are compared, so one estimator (or one mixture with the same weights) answers every architecture. It is chosen for
the first answerable one among the architectures that state the most facts. A model that accepts many architectures is
called once; other models are called for each architecture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from nodewise.domain.architectures import Architectures
from nodewise.domain.columns import Floats, Ints, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Kind, NodewiseError, Reason, Refusal
from nodewise.domain.predictions import Options, Predictions, RowRefusal
from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.answer.assembly import judge, rate
from nodewise.estimation.answer.mixture import Part, mix
from nodewise.estimation.answer.ranking import expected_kendall
from nodewise.estimation.estimators.check_architectures import check_architectures
from nodewise.estimation.fit.fitted_model import FittedModel, relabel
from nodewise.estimation.question import Answer, Basis, Question, Terms
from nodewise.estimation.reach import UNMEASURED
from nodewise.hosting.calls import call, has
from nodewise.plugin import ArchitecturesModel
from nodewise.profiles.digest import content_digest

__all__ = ["ArchitecturesQuestion", "Ranking", "Rankings", "rank_architectures"]

_TELLS_OF_FACTS: Final = frozenset({Kind.PRECONDITION, Kind.INVALID, Kind.INTERNAL})
"""Kinds of errors that concern one architecture only: the others are still answered."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArchitecturesQuestion:
    """A question about architectures.

    Attributes
    ----------
    profile : Profile
        The facts that all architectures share. Its runs are used only to resolve the configurations.
    refusals : tuple of RowRefusal
        Architectures with impossible facts, by their places.
    """

    profile: Profile
    architectures: Architectures
    configurations: Configurations
    terms: Terms
    refusals: tuple[RowRefusal, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The ranking of the architectures on one configuration.

    Attributes
    ----------
    order : int
        Places of the answered architectures, shortest step time first; equal ones in the order of their places.
    expected_kendall : float or None
        Expected Kendall's tau between this order and the measured one; None = fewer than two answered, or no spread.
    refused_share : float
        Refused share of all architectures, from 0 to 1.
    """

    order: Ints
    expected_kendall: float | None
    refused_share: float


@dataclass(frozen=True, slots=True, eq=False)
class Rankings:
    """The answer and one ranking for each configuration. Row ``a * configurations + c`` belongs to architecture a."""

    answer: Answer
    rankings: tuple[Ranking, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Correlation:
    """Predictions of every row, and the correlation of their errors."""

    predictions: Predictions
    shared: Floats
    own: Floats

    @staticmethod
    def apart(predictions: Predictions) -> _Correlation:
        """Return predictions with uncorrelated errors."""
        return _Correlation(predictions, np.zeros((len(predictions), 0)), predictions.log_spread)


def rank_architectures(answers: Answers, query: ArchitecturesQuestion, *, together: bool = False) -> Rankings | None:
    """Answer a question about architectures. An architecture that cannot be answered is refused in its rows.

    Parameters
    ----------
    together : bool
        Whether to use only models that accept many architectures in one call, which is fast. Return None if a model of
        the answer does not.

    Raises
    ------
    NodewiseError
        An error of the profile, the configurations or the options that concerns every architecture.
    """
    count, width = len(query.architectures), len(query.configurations)
    able = as_ints(np.flatnonzero(RowRefusal.left(count, query.refusals)))
    configurations = answers.resolve_configurations(query.profile, query.configurations)
    fit = _choose(answers, query, able, configurations)
    if isinstance(fit, Predictions):
        correlation, fit = _Correlation.apart(fit), _NOBODY
    elif together and not all(_takes_many(answers, part) for part in _parts(fit)):
        return None
    else:
        correlation = _answer(answers, query, fit, able, configurations)
    rows = _rows_of(able, width)
    refusals = tuple(RowRefusal(tuple(_rows_of(each.rows, width).tolist()), each.refusal) for each in query.refusals)
    whole = correlation.predictions
    if refusals:
        whole = Predictions.joined(count * width, [(rows, correlation.predictions)], refusals=refusals)
    all_rows = configurations.take(as_ints(np.tile(np.arange(width), count)))
    question = Question(profile=query.profile, configurations=all_rows, terms=query.terms)
    basis = relabel(fit.basis, query.profile)
    answer = judge(question, rate(query.terms, all_rows, whole, fit, basis), basis, UNMEASURED)
    return Rankings(answer, tuple(_ranking(correlation, able, column, width, count) for column in range(width)))


def _choose(
    answers: Answers, query: ArchitecturesQuestion, able: Ints, configurations: Configurations
) -> FittedModel | Predictions:
    """Return the model for the first answerable architecture with the most facts, or refusals if there is none."""
    rows, width = len(able) * len(configurations), len(configurations)
    if not rows:
        return Predictions.joined(0, ())
    architectures = query.architectures.take(able)
    representatives, of_row = architectures.patterns()
    refusals = []
    for place, representative in enumerate(representatives.tolist()):
        profile = _profile_of(query.profile, architectures, representative)
        profile = replace(profile, digest=content_digest(profile))
        try:
            return answers.model_of(
                Question(
                    profile=profile,
                    configurations=configurations,
                    terms=query.terms,
                    asked_by=query.profile.profile_id,
                )
            )
        except NodewiseError as error:
            if error.kind is not Kind.PRECONDITION or error.reason is Reason.MODEL_NOT_CACHED:
                raise
            alike = _rows_of(np.flatnonzero(of_row == place), width)
            refusals.append(RowRefusal(tuple(alike.tolist()), error.refusal))
    return Predictions.joined(rows, (), refusals=tuple(refusals))


def _parts(fit: FittedModel) -> tuple[FittedModel, ...]:
    return tuple(part.fitted for part in fit.parts) or (fit,)


def _takes_many(answers: Answers, fit: FittedModel) -> bool:
    plugin = answers.estimators.by_name(fit.basis.estimator)
    return has(plugin, fit.model, ArchitecturesModel, "predict_architectures")


def _answer(
    answers: Answers, query: ArchitecturesQuestion, fit: FittedModel, able: Ints, configurations: Configurations
) -> _Correlation:
    """Predict the valid architectures with a model or a mixture."""
    architectures = query.architectures.take(able)
    if not fit.parts:
        return _by(answers, query, fit, architectures, configurations)
    count = len(architectures)

    def tile(column: Floats) -> Floats:
        """Repeat a column over configurations for each architecture."""
        return column if len(column) == 1 else np.tile(column, count)

    mixture = [
        Part(
            part.share,
            _by(answers, query, part.fitted, architectures, configurations).predictions,
            tile(part.weights),
            tile(part.errors),
        )
        for part in fit.parts
    ]
    return _Correlation.apart(mix(mixture))


def _by(
    answers: Answers,
    query: ArchitecturesQuestion,
    fit: FittedModel,
    architectures: Architectures,
    configurations: Configurations,
) -> _Correlation:
    """Predict with one estimator, and calibrate the spreads."""
    name = fit.basis.estimator
    if not _takes_many(answers, fit):
        return _Correlation.apart(_one_by_one(answers, query, name, architectures, configurations))
    count, width = len(architectures), len(configurations)
    support = answers.estimators.supported_rows(name, query.profile, configurations)
    over = architectures.over(query.profile.workload)
    rows = count * len(support.configurations)
    output = call(
        answers.estimators.by_name(name),
        fit.model,
        "predict_architectures",
        over,
        support.configurations,
        query.terms.options,
        check=partial(check_architectures, rows=rows),
    )
    own = fit.calibration.apply(output.predictions)
    before = output.predictions.log_spread
    factor = np.divide(own.log_spread, before, out=np.ones(rows), where=before > 0.0)
    shared, alone = output.shared_log_errors * factor[:, np.newaxis], output.own_log_errors * factor
    if support.rows is None:
        return _Correlation(own, shared, alone)
    at = (np.arange(count)[:, np.newaxis] * width + support.rows).ravel()
    refusals = tuple(
        RowRefusal(tuple((np.arange(count)[:, np.newaxis] * width + as_ints(each.rows)).ravel().tolist()), each.refusal)
        for each in support.refusals
    )
    placed_shared, placed_own = np.zeros((count * width, shared.shape[1])), np.zeros(count * width)
    placed_shared[at], placed_own[at] = shared, alone
    return _Correlation(Predictions.joined(count * width, [(at, own)], refusals=refusals), placed_shared, placed_own)


def _one_by_one(
    answers: Answers,
    query: ArchitecturesQuestion,
    name: str,
    architectures: Architectures,
    configurations: Configurations,
) -> Predictions:
    """Predict one architecture at a time, each as a profile of its own."""
    width = len(configurations)
    budget = query.terms.options.budget
    pieces = []
    for place in range(len(architectures)):
        if budget is not None and budget.remaining_s() <= 0.0:
            progress = f"{place} of {len(architectures)} architectures were answered in time"
            raise NodewiseError(
                Reason.DEADLINE_EXCEEDED, f"the call's time was over: {progress}", {"progress": progress}
            )
        question = Question(
            profile=_profile_of(query.profile, architectures, place),
            configurations=configurations,
            terms=query.terms.by(name),
            asked_by=query.profile.profile_id,
        )
        try:
            output = answers.answer(question, keep=False).predictions
        except NodewiseError as error:
            if error.kind not in _TELLS_OF_FACTS:
                raise
            output = Predictions.refused(width, error.refusal)
        pieces.append((_rows_of([place], width), output))
    return Predictions.joined(len(architectures) * width, pieces)


def _ranking(correlation: _Correlation, able: Ints, column: int, width: int, count: int) -> Ranking:
    """Rank the architectures on one configuration."""
    rows = np.arange(column, len(correlation.predictions), width)
    answered_rows = rows[correlation.predictions.answered[rows]]
    steps = correlation.predictions.step_s[answered_rows]
    order = able[answered_rows[np.argsort(steps, kind="stable")] // width]
    shared, own = correlation.shared[answered_rows], correlation.own[answered_rows]
    spread = bool(own.any() or shared.any())
    tau = expected_kendall(np.log(steps), shared, own) if spread else None
    return Ranking(as_ints(order), tau, 1.0 - len(answered_rows) / count)


def _profile_of(shared: Profile, architectures: Architectures, place: int) -> Profile:
    """Return the profile of an architecture: facts only, since the runs of the shared profile are of another model."""
    return Profile(workload=architectures.workload(place, shared.workload), network=shared.network)


def _rows_of(places: Sequence[int] | Ints, width: int) -> Ints:
    """Return all rows of some architectures."""
    return as_ints((np.asarray(places, dtype=np.int64)[:, np.newaxis] * width + np.arange(width)).ravel())


class _Nobody:
    """A model that refuses every row, used if no estimator can answer."""

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002  # the protocol's
        return Predictions.refused(len(configurations), Refusal.missing("nobody answers"))


_NOBODY: Final = FittedModel(
    model=_Nobody(),
    basis=Basis(estimator="", estimator_version="", choice="", profile_revision=0, profile_digest=""),
    fit_s=0.0,
)
