"""Completion on machines that can be taken away: how it is estimated, and what becomes of a job on an offer."""

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
    """How completion is estimated.

    Attributes
    ----------
    simulates : bool
        By runs against drawn lives, else by closed forms: means alone.
    runs : int
        Of each offer.
    deadline_s : float or None
        What probabilities are told of.
    saves_cost : bool
        Whether intervals between saves are chosen for cost instead of time.
    now_s : float
        Today, in seconds since 1970: how old lifetimes are.
    budget : Budget or None
        Time left; no part of the question. Where it is over, DEADLINE_EXCEEDED is raised.
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
    """An offer with all that is needed to tell what becomes of the job there.

    Attributes
    ----------
    samples : float
        Work.
    speeds : float array
        Samples/s with so many nodes of each group alive: one axis per group, from 0 to its capacity. Sets that cannot
        come about hold 0.
    log_spread : float
        Standard deviation of ln(speed) that these are known to; 0 = they are certain.
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
    """Mean over the runs that were done, its standard error, and quantiles over all runs; None = there is none."""

    mean: float | None = None
    standard_error: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBreakdown:
    """Parts of the mean time; they add up to it. Degraded below 0: who came in the place of the lost is faster."""

    compute_s: float
    degraded_s: float
    checkpoint_s: float
    lost_work_s: float
    restart_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionSaves:
    """Saves: seconds of one, work between two, whether that was chosen, and Young's and Daly's (None = no losses)."""

    seconds: float
    interval_samples: float
    interval_s: float
    chosen: bool
    young_interval_s: float | None = None
    daly_interval_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What becomes of a job on an offer.

    Attributes
    ----------
    time_s, cost : CompletionSpread
        Until it is done.
    revocations_mean : float or None
        Nodes lost; None = no mean exists.
    deadline_probability, failure_probability : float or None
        To be done by the deadline, and never; None = not told.
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
