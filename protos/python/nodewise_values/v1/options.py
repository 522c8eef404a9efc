"""Options.

Options: which estimator answers, how fresh the model must be, how wide the interval is, and which columns the answer
holds. For what an absent or empty value means, see configuration.proto.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise_values.value import Value, Word

__all__ = [
    "Fidelity",
    "Freshness",
    "ModelOptions",
    "PredictOptions",
    "PredictionColumn",
]


class Freshness(Word):
    """How fresh a fitted model must be."""

    CACHED_ONLY = "cached_only"
    """Answer from a model that is already fitted, else refuse (MODEL_NOT_CACHED).

    The refusal starts the fit, so a later call can be answered.
    """
    ALLOW_STALE = "allow_stale"
    """Answer from an older revision's model rather than wait for a fit.

    The answer then says that it is stale, and the server starts to fit the newest revision. If there is no fitted model
    at all, the call waits.
    """
    WAIT = "wait"
    """Wait until the model is fitted and the minimum revision is reached."""


class Fidelity(Word):
    """How an answer is computed."""

    MODEL = "model"
    """The estimator's model computes it."""
    SIMULATE = "simulate"
    """A simulation computes it, where the estimator has one.

    A simulation computes it, where the estimator has one; the interval is then the confidence interval of the
    simulation. Where the estimator has none, its model answers with the warning NOT_SIMULATED. A simulation that cannot
    end before the call's deadline fails with DEADLINE_EXCEEDED: a shorter simulation would give another answer.
    """


class PredictionColumn(Word):
    """Groups of columns that an answer may hold besides status, step time and throughput."""

    ALL = "all"
    """All columns that this server and the estimator have, including those that later releases add."""
    THROUGHPUT = "throughput"
    """Status, step time and throughput, which every answer holds. On its own it asks for these alone."""
    INTERVAL = "interval"
    """Lower and upper bounds."""
    BREAKDOWN = "breakdown"
    """Breakdown of the step, and bottlenecks."""
    UTILIZATION = "utilization"
    """Utilization of each station."""
    STALENESS = "staleness"
    """Staleness of asynchronous updates."""
    MEMORY = "memory"
    """Memory per device."""
    WORK = "work"
    """Time and cost to finish."""
    EXTRA = "extra"
    """Further results of the estimator."""
    GOODPUT = "goodput"
    """Batch of each row as resolved or chosen, and goodput."""
    RISK = "risk"
    """Quantiles of time and cost to finish, and revocations."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelOptions(Value):
    """Which estimator answers, how fresh its model must be and how wide the interval is."""

    estimator: str = ""
    """Name of the estimator. Empty or "auto" = the service chooses."""
    estimator_version: str = ""
    """Version of the estimator. Empty = the version on the server's default track."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the estimator, by name. A parameter that the estimator does not list is refused (INVALID_FIELD)."""
    freshness: Freshness | None = None
    """How fresh the model must be."""
    allow_fallback: bool = False
    """Whether another estimator may answer if the named one refuses. A failure of the named one is always reported."""
    interval_coverage: float | None = None
    """Coverage of the interval. Absent = 0.9."""
    seed: int = 0
    """Seed of all random numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictOptions(Value):
    """How to predict."""

    model: ModelOptions | None = None
    """Which estimator answers, how fresh its model must be and how wide the interval is."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Columns wanted.

    Empty = INTERVAL, BREAKDOWN, UTILIZATION, STALENESS, MEMORY, WORK and EXTRA. Later releases do not extend this set,
    so answers do not grow.
    """
    fidelity: Fidelity | None = None
    """Whether the estimator's model or a simulation computes the answer."""
    simulated_steps_count: int | None = None
    """Steps that a simulation counts in each row after its warm-up: workers' cycles (asynchronous), else rounds.

    Absent = the estimator decides. Rows times steps are limited (LIMIT_EXCEEDED, simulated_steps_per_call). Only with
    FIDELITY_SIMULATE.
    """
