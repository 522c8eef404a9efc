"""Planned changes of a job: from spot to on demand by a deadline, from synchronous to asynchronous training."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.domain.lifetimes import AvailabilityLaw, AvailabilityRecord
from nodewise.domain.predictions import Notice

__all__ = [
    "HybridOutcome",
    "HybridPoint",
    "HybridRun",
    "HybridTimes",
    "OnDemandOutcome",
    "OnDemandQuestion",
    "OnDemandRule",
    "StragglerPolicy",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandQuestion:
    """When to pay for machines on demand, so that the job meets a deadline at the least cost.

    Attributes
    ----------
    work_s, deadline_s : float
        Length of the job on either kind of machine; by when it must be done, from its start.
    switch_s : float
        From requesting either kind of machine to working on it; this time is paid for.
    spot_per_h, on_demand_per_h : float
        Prices of all the machines.
    availability : AvailabilityRecord or AvailabilityLaw
        Availability that rules are simulated against.
    learned_from : tuple of AvailabilityRecord
        Other records that the plan is learned from.
    nodes_needed : int
        Nodes that the job needs at the same time.
    tick_s : float
        Seconds between two decisions.
    starts : int
        Number of starts that are simulated.
    """

    work_s: float
    deadline_s: float
    switch_s: float = 0.0
    spot_per_h: float
    on_demand_per_h: float
    availability: AvailabilityRecord | AvailabilityLaw
    learned_from: tuple[AvailabilityRecord, ...] = ()
    nodes_needed: int = 1
    tick_s: float = 600.0
    starts: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandRule:
    """Results of a rule; ``until_s`` is when a timed rule switches to on demand."""

    rule: str
    until_s: float | None = None
    cost_mean: float
    cost_p90: float
    cost_ratio: float
    late_ratio: float
    time_mean_s: float
    spot_mean_s: float
    on_demand_mean_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OnDemandOutcome:
    """Rules, cheapest first; the recommended one and why; and when on demand must start if no work is done before."""

    rules: tuple[OnDemandRule, ...]
    rule: str
    why: str
    available_ratio: float
    latest_switch_s: float
    starts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridRun:
    """A run of a workload: share of its work done synchronously, and the accuracy that it reached."""

    fraction: float
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridTimes:
    """Synchronous first, asynchronous after: times of all the work in one mode, and the requested mixtures.

    Times of 0 are still to be predicted. ``slowdowns`` state how much slower than the others each worker is; empty =
    none is.
    """

    synchronous_s: float = 0.0
    asynchronous_s: float = 0.0
    switch_s: float = 0.0
    fractions: tuple[float, ...] = ()
    deadline_s: float | None = None
    runs: tuple[HybridRun, ...] = ()
    least_accuracy: float | None = None
    slowdowns: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridPoint:
    """A share of the work done synchronously; None = no deadline, or no run of just this share."""

    fraction: float
    time_s: float
    in_time: bool | None = None
    measured_accuracy: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StragglerPolicy:
    """A policy for slow workers: ``wait``, ``drop`` or ``asynchronous``."""

    policy: str
    dropped: int
    time_s: float
    batch_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridOutcome:
    """Times of switching; fractions as in the contract's HybridAnswer."""

    synchronous_s: float
    asynchronous_s: float
    points: tuple[HybridPoint, ...] = ()
    latest_fraction: float | None = None
    feasible_fractions: tuple[float, ...] = ()
    chosen_fraction: float | None = None
    next_fraction: float | None = None
    straggler_policies: tuple[StragglerPolicy, ...] = ()
    warnings: tuple[Notice, ...] = ()
