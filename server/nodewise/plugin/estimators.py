"""Estimators: what they are asked, what they may use, and the models that they fit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from nodewise.domain.columns import Floats
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import Refusal
from nodewise.domain.predictions import Options, Predictions
from nodewise.domain.profile import Profile
from nodewise.plugin.catalogue import Catalogue

if TYPE_CHECKING:
    from nodewise.domain.trace import Trace

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
        """Number of profiles."""
        ...


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Prior:
    """What an estimator has learned from all profiles together; frozen and versioned.

    ``prior_id`` is a digest of the corpus: same corpus, same id. ``sources`` describes the corpus for users;
    ``content`` has the estimator's own format.
    """

    prior_id: str
    estimator: str
    sources: tuple[str, ...]
    content: Any

    @staticmethod
    def of(estimator: str, learned_from: object, *, sources: tuple[str, ...], content: object) -> Prior:
        """A prior whose id is the digest of ``learned_from``, the corpus in JSON values."""
        digest = hashlib.sha256(json.dumps(learned_from, sort_keys=True).encode()).hexdigest()
        return Prior(prior_id=f"{estimator}-{digest[:16]}", estimator=estimator, sources=sources, content=content)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Query:
    """The question to assess: resolved configurations, how to answer, and facts about devices and links."""

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
        The evidence behind the answer, in words for users.
    strength : float
        0 to 1: 0 facts alone, 0.5 measurements of another kind or scale, 1 measurements that identify every constant.
    expected_log_error : float, (rows,) float or None
        The estimator's own estimate of |ln(predicted / measured)| of each row, or of all rows together, if it has one.
        It must depend on the profile and that row alone, so that the answer of a row does not depend on other rows of a
        question. Infinite = the estimator would refuse the row; others answer it, if they can.
    of_profile : bool
        Of a refusal: whether the estimator would refuse every other question about the same profile too. Questions that
        leave the choice of an estimator open then skip it without another call.
    """

    refusal: Refusal | None = None
    evidence: tuple[str, ...] = ()
    strength: float = 0.0
    expected_log_error: float | Floats | None = None
    of_profile: bool = False


class Model(Protocol):
    """Maps configurations to predictions. Pure: same arguments, same answer."""

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        """Predict all rows in one call; refuse rows that the model does not cover."""
        ...


class Context(Protocol):
    """What a fit may use in addition to the profile."""

    @property
    def prior(self) -> Prior | None:
        """The result of the estimator's own ``learn``; None = there is none."""
        ...

    @property
    def catalogue(self) -> Catalogue:
        """Devices and links."""
        ...

    @property
    def seed(self) -> int:
        """Seed of random numbers."""
        ...

    def traces(self) -> Sequence[Trace]:
        """The profile's traces, in the profile's order, those of one file by rank. The first call is slow.

        Raises
        ------
        NodewiseError
            INVALID_FIELD, with the trace that cannot be read.
        """
        ...

    def model(self, estimator: str) -> Model:
        """Another estimator's model of the same profile.

        Raises
        ------
        NodewiseError
            ESTIMATOR_NOT_FOUND, or the reason why that estimator refuses.
        """
        ...


@runtime_checkable
class Estimator(Protocol):
    """Fits models to profiles."""

    def assess(self, profile: Profile, query: Query) -> Assessment:
        """Say whether the query can be answered, cheaply and without fitting."""
        ...

    def fit(self, profile: Profile, context: Context) -> Model:
        """Fit a model. May be slow; deterministic by ``context.seed``. Only called if ``assess`` does not refuse."""
        ...


@runtime_checkable
class LearningEstimator(Estimator, Protocol):
    """An estimator that also learns from all profiles together."""

    def learn(self, corpus: Corpus) -> Prior:
        """Learn a prior. Slow; never on a request's path."""
        ...


@runtime_checkable
class WarmingEstimator(Estimator, Protocol):
    """An estimator that must compile or load something once in each process before its first answer."""

    def warm_up(self) -> None:
        """Compile or load it. Called once in each process of a server before it serves; exceptions are logged."""
        ...


@runtime_checkable
class CovariantModel(Model, Protocol):
    """Optional: a model with correlations of its errors, which show how much a further measurement would improve it.

    For models without it the service assumes that errors correlate more the closer two configurations are in scale
    (``estimation.suggestion``).
    """

    @property
    def measurement_log_spread(self) -> float:
        """Standard deviation of ln(measured step time) - ln(true step time) of one measurement, 0 or more."""
        return MEASUREMENT_LOG_SPREAD

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:
        """Covariance of ln(true step time) - ln(predicted step time), of shape (rows, rows).

        Symmetric and positive semi-definite. Pure, like ``predict``; 0 in rows and columns that ``predict`` refuses.
        It describes the true step time: it does not include the noise of a single measurement, which ``log_spread`` may
        include.
        """
        ...
