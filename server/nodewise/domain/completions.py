"""Completion on machines that can be revoked: the terms of an estimate, and a job's outcome on an offer."""

from __future__ import annotations

from dataclasses import dataclass, field

from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats
from nodewise.domain.completion_offers import CompletionOffer
from nodewise.domain.lifetimes import LifetimeBasis
from nodewise.domain.predictions import Notice

__all__ = [
    "Completion",
    "CompletionBreakdown",
    "CompletionCase",
    "CompletionSaves",
    "CompletionSpread",
    "CompletionTerms",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionTerms:
    """Terms of an estimate of completion.

    Attributes
    ----------
    simulates : bool
        Whether runs against random lifetimes are simulated; else closed forms give means alone.
    runs : int
        Runs of each offer.
    deadline_s : float or None
        Deadline of the probabilities; None = none.
    saves_cost : bool
        Whether intervals between checkpoints minimise cost instead of time.
    now_s : float
        Current time, in seconds since 1970; lifetimes have an age by it.
    budget : Budget or None
        Time left, not a part of the question; DEADLINE_EXCEEDED is raised once it is used up.
    """

    simulates: bool = True
    runs: int = 10_000
    seed: int = 0
    deadline_s: float | None = None
    saves_cost: bool = False
    now_s: float = 0.0
    budget: Budget | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompletionCase:
    """An offer with everything that an estimate of the job's completion there needs.

    Attributes
    ----------
    samples : float
        Work.
    speeds : float array
        Samples/s by the number of live nodes of each group: one axis per group, from 0 to its capacity; 0 for sets that
        cannot occur.
    log_spread : float
        Standard deviation of ln(speed); 0 = the speeds are certain.
    """

    offer: CompletionOffer
    samples: float
    speeds: Floats
    log_spread: float = 0.0

    @property
    def full_speed(self) -> float:
        """Samples/s with all nodes of the start alive."""
        return float(self.speeds[tuple(group.nodes for group in self.offer.groups)])


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionSpread:
    """Mean over the runs that finished, its standard error, and quantiles over all runs; None = undefined."""

    mean: float | None = None
    standard_error: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBreakdown:
    """Parts of the mean time; they add up to it. ``degraded_s`` is below 0 where the replacements are faster."""

    compute_s: float
    degraded_s: float
    checkpoint_s: float
    lost_work_s: float
    restart_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionSaves:
    """Checkpoints: seconds of one, work between two, whether that was chosen, Young's and Daly's (None = no losses)."""

    seconds: float
    interval_samples: float
    interval_s: float
    chosen: bool
    young_interval_s: float | None = None
    daly_interval_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The outcome of a job on an offer.

    Attributes
    ----------
    time_s, cost : CompletionSpread
        Until the job finishes.
    revocations_mean : float or None
        Nodes lost; None = no mean exists.
    deadline_probability, failure_probability : float or None
        Of finishing by the deadline, and of never finishing; None = not estimated.
    """

    time_s: CompletionSpread
    cost: CompletionSpread
    ideal_s: float
    revocations_mean: float | None = None
    deadline_probability: float | None = None
    failure_probability: float | None = None
    breakdown: CompletionBreakdown | None = None
    checkpoints: CompletionSaves | None = None
    lifetimes: tuple[LifetimeBasis, ...] = ()
    warnings: tuple[Notice, ...] = ()
