"""Estimators: what they are asked, what they may use, and the models that they fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, runtime_checkable

from nodewise.domain.columns import Floats
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Refusal
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.domain.trace import Trace
from nodewise.plugin.catalogue import Catalogue

__all__ = [
    "MEASUREMENT_LOG_SPREAD",
    "Assessment",
    "Context",
    "Corpus",
    "CovariantModel",
    "Estimator",
    "LearningEstimator",
    "Model",
    "Prior",
    "Query",
    "WarmingEstimator",
]

MEASUREMENT_LOG_SPREAD: Final = 0.04
"""Standard deviation of ln(step time) of one measurement, where a model does not say: single runs that are repeated
differ by about 4 % (research/queueing.md)."""


class Corpus(Protocol):
    """All profiles that may teach, in no particular order."""

    def __iter__(self) -> Iterator[Profile]:
        """Each profile at its newest revision."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prior:
    """What all profiles together teach an estimator; frozen and versioned.

    ``prior_id`` is derived from what it was learned from: same corpus, same id. ``sources`` names it for people;
    ``content`` is the estimator's own.
    """

    prior_id: str
    estimator: str
    sources: tuple[str, ...]
    content: Any

    @staticmethod
    def of(estimator: str, learned_from: object, *, sources: tuple[str, ...], content: object) -> Prior:
        """A prior under the id that follows from what it was learned from, told in values of JSON."""
        digest = hashlib.sha256(json.dumps(learned_from, sort_keys=True).encode()).hexdigest()
        return Prior(prior_id=f"{estimator}-{digest[:16]}", estimator=estimator, sources=sources, content=content)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Query:
    """What will be asked: resolved configurations, how to answer, and facts about devices and links."""

    configurations: Configurations
    options: Options = field(default_factory=Options)
    catalogue: Catalogue = field(default_factory=Catalogue)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Whether an estimator can answer, from which evidence, and if not, what is missing.

    Attributes
    ----------
    refusal : Refusal or None
        None = it can answer (single rows may still be refused).
    evidence : tuple of str
        What the answer would rest on, in words for people.
    strength : float
        0 to 1: 0 facts alone, 0.5 measurements of another kind or scale, 1 measurements that identify every constant.
    expected_log_error : float, (rows,) float or None
        The estimator's own guess of |ln(predicted / measured)| of each row, or of all rows alike, if it has one. The
        guess of a row depends on the profile and that row alone, so that its answer does not depend on the other rows
        of a question. Infinite = the estimator would refuse the row; others answer it, if they can.
    of_profile : bool
        Of a refusal: whether it would refuse every other question about the same profile too, in whatever words.
        Questions that leave the choice of an estimator open then pass it over without asking again.
    """

    refusal: Refusal | None = None
    evidence: tuple[str, ...] = ()
    strength: float = 0.0
    expected_log_error: float | Floats | None = None
    of_profile: bool = False


class Model(Protocol):
    """Maps configurations to predictions. Pure: same arguments, same answer."""

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict every row at once; refuse row by row where the model does not reach."""
        ...


class Context(Protocol):
    """What a fit may use besides the profile."""

    @property
    def prior(self) -> Prior | None:
        """What the estimator's own ``learn`` returned, if anything."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        ...

    @property
    def seed(self) -> int:
        """Seed of whatever is random."""
        ...

    def traces(self) -> Sequence[Trace]:
        """The profile's traces, read; in the profile's order, those of one file by rank. Slow the first time.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, naming a trace that cannot be read.
        """
        ...

    def model(self, estimator: str) -> Model:
        """Another estimator's model of the same profile.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND, or why that estimator refuses.
        """
        ...


@runtime_checkable
class Estimator(Protocol):
    """Fits profiles into models."""

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether the query can be answered, cheaply and without fitting."""
        ...

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit a model. May be slow; deterministic by ``context.seed``. Only called after ``assess`` agreed."""
        ...


@runtime_checkable
class LearningEstimator(Estimator, Protocol):
    """An estimator that also learns from all profiles together."""

    def learn(self, corpus: Corpus) -> Prior:
        """Learn a prior. Slow; never on a request's path."""
        ...


@runtime_checkable
class WarmingEstimator(Estimator, Protocol):
    """An estimator whose first answer would wait for something that the process needs once."""

    def warm_up(self) -> None:
        """Compile or load it. Called once in each process of a server before it serves; what it raises is logged."""
        ...


@runtime_checkable
class CovariantModel(Model, Protocol):
    """Optional: a model that knows how its errors hang together, so that it can be told what a measurement would teach.

    Without it the service assumes errors that are the more alike the closer two configurations are in scale
    (``estimation.suggestion``).
    """

    @property
    def measurement_log_spread(self) -> float:
        """Standard deviation of ln(measured step time) - ln(true step time) of one measurement, 0 or more."""
        return MEASUREMENT_LOG_SPREAD

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:
        """Covariance of ln(true step time) - ln(predicted step time), of shape (rows, rows).

        Symmetric and positive semi-definite. Pure, as ``predict``; rows and columns that ``predict`` refuses hold 0.
        It is about the true step time: nothing of a single measurement's noise is in it, even where ``log_spread``
        holds some.
        """
        ...
