"""Questions and answers about one job, shared by all kinds of calls (unary, batch, stream, schedule, backtest)."""

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
"""Name that lets the service choose the estimator."""


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
    """How to answer a question.

    Attributes
    ----------
    estimator : str
        Name of the estimator, or ``AUTO``.
    options : Options
        Options passed to the model.
    coverage : float
        Coverage of the interval, above 0 and below 1.
    freshness : Freshness
        Whether to wait for a fit.
    allow_fallback : bool
        Whether another estimator may answer if the named one refuses.
    """

    estimator: str = AUTO
    options: Options = field(default_factory=Options)
    coverage: float = 0.9
    freshness: Freshness = Freshness.WAIT
    allow_fallback: bool = False

    def by(self, estimator: str) -> Terms:
        """Return the same terms with another estimator."""
        return replace(self, estimator=estimator)

    def within(self, budget: Budget) -> Terms:
        """Return the same terms with a time budget."""
        return replace(self, options=replace(self.options, budget=budget))

    def look_up(self) -> None:
        """Raise DEADLINE_EXCEEDED once no caller waits for the work any more."""
        if self.options.budget is not None:
            self.options.budget.look_up()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Question:
    """A question about one job.

    Attributes
    ----------
    profile : Profile
        The job and its evidence.
    configurations : Configurations
        Configurations to predict. Values may be left unstated; the profile's evidence then fills them in.
    asked_by : str
        Id of the profile whose namespace provides the lessons; "" = that of ``profile``.
    """

    profile: Profile
    configurations: Configurations
    objective: Objective | None = None
    terms: Terms = field(default_factory=Terms)
    asked_by: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Interval:
    """Bounds of steps/s that contain the measured throughput with probability ``coverage``.

    Where the model states no spread for a row, both bounds are the prediction.
    """

    lower_steps_per_s: Floats
    upper_steps_per_s: Floats
    coverage: float
    basis: IntervalBasis


@dataclass(frozen=True, slots=True, kw_only=True)
class MixtureShare:
    """Share of one estimator in a mixture.

    The weights of a mixture add up to 1. The error is the expected mean of |ln(predicted / measured)| of this
    estimator. Version and prior are known once the estimator's model is fitted.
    """

    estimator: str
    estimator_version: str = ""
    weight: float
    expected_log_error: float
    prior_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What an answer depends on: the same basis and the same question give the same answer.

    The ``estimator`` of a mixture is ``AUTO``; ``mixture`` lists its shares, the largest weight first. ``digest``
    covers everything that the answer depends on except the question; empty = not known. ``generation`` is that of the
    plugins. ``track`` is the track that answered; empty = the default one.
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
        """Ids of the priors that were used, without repeats."""
        ids = (share.prior_id for share in self.mixture) if self.mixture else (self.prior_id,)
        return tuple(dict.fromkeys(each for each in ids if each))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """The answer to a question.

    Attributes
    ----------
    configurations : Configurations
        Configurations after resolution.
    predictions : Predictions
        The model's predictions, checked.
    steps_per_s, samples_per_s : float
        Rates of the whole job; 0 in rows without an answer. ``samples_per_s`` is 0 where the batch is not known.
    samples_per_step : float
        Samples of one step; 0 = not known.
    minibatches_per_s : float
        Mini-batches per second of all workers. Rows with the same batch per worker are comparable by it, even where the
        batch is not known.
    interval : Interval or None
        None = the model states no spread.
    finish_s, costs : float or None
        Time and cost of the objective's work, else of all epochs of the workload; None = the amount of work is not
        known.
    recommendation : Recommendation or None
        None without an objective, or when no row meets it (a notice gives the reason).
    notices : tuple of Notice
        Notices of the model and of the service.
    goodput_per_s : float or None
        Samples/s times statistical efficiency; None = the question states no noise scale.
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
