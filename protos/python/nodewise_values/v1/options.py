"""Options: who answers, how fresh and how sure the answer must be, and which columns it holds.

Absence, as on the whole wire: see configuration.proto.
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

    The refusal starts the fit, so that a later call finds it.
    """
    ALLOW_STALE = "allow_stale"
    """Answer from an older revision's model rather than wait for a fit.

    Answer from an older revision's model rather than wait for a fit; the answer says that it is stale, and the fit of
    the newest is started. Without any fitted model it waits.
    """
    WAIT = "wait"
    """Wait for the fit, and for the minimum revision."""


class Fidelity(Word):
    """How an answer is computed."""

    MODEL = "model"
    """By the estimator's model."""
    SIMULATE = "simulate"
    """By simulation, where the estimator has one; the interval is then the confidence interval of the simulation.

    Where it has none its model answers, with the warning NOT_SIMULATED. A simulation that the call's deadline would cut
    short ends with DEADLINE_EXCEEDED: a shorter one would be another answer.
    """


class PredictionColumn(Word):
    """Groups of columns that an answer may hold besides status, step time and throughput."""

    ALL = "all"
    """All that this server and the estimator have, columns of later releases included."""
    THROUGHPUT = "throughput"
    """Status, step time and throughput: they are always there. Asked for alone, nothing else is."""
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
    """What else the estimator has to say."""
    GOODPUT = "goodput"
    """Batch of each row as resolved or chosen, and goodput."""
    RISK = "risk"
    """Quantiles of time and cost to finish, and revocations."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelOptions(Value):
    """Who answers, how fresh the model must be and how wide the interval."""

    estimator: str = ""
    """Estimator's name. Empty or "auto" = the service chooses."""
    estimator_version: str = ""
    """Its version. Empty = the one that the server's default track holds."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Parameters of the estimator, by name; those that it does not list are refused (INVALID_FIELD)."""
    freshness: Freshness | None = None
    """How fresh the model must be."""
    allow_fallback: bool = False
    """Whether another estimator may answer if the one named refuses. A fault of the one named is always reported."""
    interval_coverage: float | None = None
    """Coverage of the interval. Absent = 0.9."""
    seed: int = 0
    """Seed of whatever is random."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictOptions(Value):
    """How to predict."""

    model: ModelOptions | None = None
    """Who answers, how fresh and how sure."""
    columns: tuple[PredictionColumn | None, ...] = ()
    """Columns wanted.

    Empty = INTERVAL, BREAKDOWN, UTILIZATION, STALENESS, MEMORY, WORK and EXTRA: this set is closed, so answers do not
    grow with later releases.
    """
    fidelity: Fidelity | None = None
    """Model or simulation."""
    simulated_steps_count: int | None = None
    """Steps that a simulation counts in each row after warming up: workers' cycles (asynchronous), else rounds.

    Absent = as many as the estimator thinks right. Rows times steps are capped (LIMIT_EXCEEDED,
    simulated_steps_per_call). Only with FIDELITY_SIMULATE.
    """
