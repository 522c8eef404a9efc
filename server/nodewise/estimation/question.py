"""Questions and answers about one job, as every asker (unary, batch, stream, schedule, backtest) puts them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats
from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import Objective, Recommendation
from nodewise.domain.predictions import Notice, Options, Predictions
from nodewise.domain.profile import Profile

__all__ = ["AUTO", "Answer", "Basis", "Freshness", "Interval", "IntervalBasis", "MixtureShare", "Question", "Terms"]

AUTO = "auto"
"""Name that leaves the choice of an estimator to the service."""


class Freshness(IntEnum):
    """How fresh a fitted model must be."""

    CACHED_ONLY = 1
    ALLOW_STALE = 2
    WAIT = 3


class IntervalBasis(IntEnum):
    """Where an interval comes from."""

    MODEL_SPREAD = 1
    CONFORMAL = 2
    SIMULATION = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How to answer, whatever is asked.

    Attributes
    ----------
    estimator : str
        Its name, or ``AUTO``.
    options : Options
        What a model is told.
    coverage : float
        Of the interval, above 0 and below 1.
    freshness : Freshness
        Whether to wait for a fit.
    allow_fallback : bool
        Whether another estimator may answer where the named one refuses.
    """

    estimator: str = AUTO
    options: Options = field(default_factory=Options)
    coverage: float = 0.9
    freshness: Freshness = Freshness.WAIT
    allow_fallback: bool = False

    def by(self, estimator: str) -> Terms:
        """The same, answered by another estimator."""
        return replace(self, estimator=estimator)

    def within(self, budget: Budget) -> Terms:
        """The same, in so much time."""
        return replace(self, options=replace(self.options, budget=budget))

    def look_up(self) -> None:
        """End work that nobody waits for any more: DEADLINE_EXCEEDED."""
        if self.options.budget is not None:
            self.options.budget.look_up()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Question:
    """A question about one job.

    Attributes
    ----------
    profile : Profile
        What is known of it.
    configurations : Configurations
        What is asked about; "not stated" is allowed and resolved from the profile's evidence.
    asked_by : str
        Id of the profile whose namespace's lessons answer; "" = that of ``profile``.
    """

    profile: Profile
    configurations: Configurations
    objective: Objective | None = None
    terms: Terms = field(default_factory=Terms)
    asked_by: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Interval:
    """Bounds of steps/s that hold the measured throughput with probability ``coverage``.

    Rows without a spread of their own are points: both bounds are the prediction.
    """

    lower_steps_per_s: Floats
    upper_steps_per_s: Floats
    coverage: float
    basis: IntervalBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureShare:
    """Part of a mixture: weights add up to 1; the error is the mean |ln(predicted / measured)| expected of the part.

    Of which version and with which prior is known once its model is fitted.
    """

    estimator: str
    estimator_version: str = ""
    weight: float
    expected_log_error: float
    prior_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What an answer rests on; same basis and same question, same answer.

    A mixture's ``estimator`` is ``AUTO``, and ``mixture`` says what it consists of, the heaviest part first. ``digest``
    covers all that the answer depends on but the question; empty = not known. ``generation`` is that of the plugins,
    ``track`` the one that answered, empty = the default one.
    """

    estimator: str
    estimator_version: str
    choice: str
    profile_revision: int
    profile_digest: str
    prior_id: str = ""
    catalogue_digest: str = ""
    fit_time_s: float = 0.0
    stale: bool = False
    fallback: bool = False
    evidence: tuple[str, ...] = ()
    mixture: tuple[MixtureShare, ...] = ()
    digest: str = ""
    generation: str = ""
    track: str = ""

    @property
    def prior_ids(self) -> tuple[str, ...]:
        """Priors that were used, each once."""
        ids = (share.prior_id for share in self.mixture) if self.mixture else (self.prior_id,)
        return tuple(dict.fromkeys(each for each in ids if each))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """The answer to a question.

    Attributes
    ----------
    configurations : Configurations
        As resolved.
    predictions : Predictions
        The model's answer, checked.
    steps_per_s, samples_per_s : float
        Of the whole job; 0 in rows that are not answered. ``samples_per_s`` is 0 where the batch is not known.
    samples_per_step : float
        Of one step; 0 = not known.
    minibatches_per_s : float
        Workers' mini-batches per second: comparable between rows of one batch per worker, known or not.
    interval : Interval or None
        None = the model has no spread.
    finish_s, costs : float or None
        Time and cost to do the objective's work, else all of the workload's epochs; None = neither is known.
    recommendation : Recommendation or None
        None without an objective, or when no row meets it (a notice says why).
    notices : tuple of Notice
        The model's and the service's own.
    goodput_per_s : float or None
        Samples/s times statistical efficiency; None = the question tells no noise scale.
    """

    configurations: Configurations
    predictions: Predictions
    steps_per_s: Floats
    samples_per_s: Floats
    minibatches_per_s: Floats
    samples_per_step: Floats
    interval: Interval | None
    notices: tuple[Notice, ...]
    basis: Basis
    finish_s: Floats | None = None
    costs: Floats | None = None
    recommendation: Recommendation | None = None
    goodput_per_s: Floats | None = None
