"""What becomes of a job on machines that can be taken away; when to pay for firm ones; when to switch synchronisation.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.objective import ObjectiveRule
from nodewise_values.v1.prediction import Basis, RowStatus
from nodewise_values.v1.problem import Notice, Problem
from nodewise_values.v1beta1.completion_offer import AvailabilityRecord, CompletionGroup
from nodewise_values.value import Value

__all__ = [
    "AvailabilityLaw",
    "CompletionBreakdown",
    "CompletionChoice",
    "CompletionRow",
    "CompletionSaves",
    "CompletionSpread",
    "HybridAnswer",
    "HybridPoint",
    "HybridQuestion",
    "HybridRun",
    "LifetimeBasis",
    "OnDemandAnswer",
    "OnDemandQuestion",
    "OnDemandRule",
    "StragglerPolicy",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionRow(Value):
    """What became of an offer."""

    name: str = ""
    """The offer's name."""
    status: RowStatus | None = None
    """ANSWERED or REFUSED. Of a refused row nothing but the name and the problem is said."""
    problem: Problem | None = None
    """Why it was refused."""
    time_seconds: CompletionSpread | None = None
    """Seconds until the job is done."""
    cost: CompletionSpread | None = None
    """What that costs."""
    revocations_mean: float | None = None
    """Mean number of nodes lost, to the provider's cap too. Absent = losses come faster than work is saved."""
    deadline_probability: float | None = None
    """Probability to be done by the objective's deadline.

    Absent = there is none, or the method tells no probabilities.
    """
    failure_probability: float | None = None
    """Probability never to be done. Absent = the method tells no probabilities."""
    breakdown: CompletionBreakdown | None = None
    """Where the mean time goes. Absent = no run was done, or the method does not tell."""
    ideal_seconds: float = 0.0
    """Seconds without losses and saves."""
    samples_per_second: float = 0.0
    """Throughput with everybody alive."""
    checkpoints: CompletionSaves | None = None
    """Saves. Absent = nothing is saved."""
    lifetimes: tuple[LifetimeBasis, ...] = ()
    """What the lives of each group rest on."""
    warnings: tuple[Notice, ...] = ()
    """What the reader should know."""
    basis: Basis | None = None
    """What the throughput rests on. Absent = it was stated."""
    nodes: int = 0
    """Nodes at the start."""
    workers: int = 0
    """Workers on them."""
    device_names: tuple[str, ...] = ()
    """Their devices, each once."""
    speed_log_spread: float | None = None
    """Relative standard deviation of the throughput model that the runs include, of ln(speed). Absent = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSpread(Value):
    """A mean and quantiles."""

    mean: float | None = None
    """Over the runs that were done. Absent = no run was."""
    standard_error: float | None = None
    """Of the mean. Absent = not known."""
    p50: float | None = None
    """Not exceeded in half of all runs.

    Quantiles are absent where so many runs are never done, or where none are told.
    """
    p90: float | None = None
    """In 90 %."""
    p99: float | None = None
    """In 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionBreakdown(Value):
    """Parts of the mean time; they add up to it."""

    compute_seconds: float = 0.0
    """The work with everybody alive."""
    degraded_seconds: float = 0.0
    """More, because some were missing. Below 0 where those that came in their place are faster."""
    checkpoint_seconds: float = 0.0
    """Saves."""
    lost_work_seconds: float = 0.0
    """Work and saves that were lost."""
    restart_seconds: float = 0.0
    """Waiting for nodes, rendezvous, restarts."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSaves(Value):
    """Saves of a job."""

    seconds: float = 0.0
    """Seconds of one."""
    interval_samples: float = 0.0
    """Work between two, samples."""
    interval_seconds: float = 0.0
    """The same as seconds with everybody alive."""
    chosen: bool = False
    """It was chosen, instead of stated."""
    young_interval_seconds: float | None = None
    """Young's interval at the mean time between losses that go back to a save. Absent = none does."""
    daly_interval_seconds: float | None = None
    """Daly's."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeBasis(Value):
    """What the lives of a group rest on."""

    group: int = 0
    """Place of the group in its offer, from 0."""
    data_set: str = ""
    """Name of the observations, or of what was stated in their place."""
    device_name: str = ""
    """Device observed. Empty = not known."""
    region: str = ""
    """Where. Empty = not known."""
    measured_time: datetime | None = None
    """When observing ended, at the latest. Absent = not known."""
    machines_count: int = 0
    """Machines observed. 0 = a law that was stated."""
    law: str = ""
    """"empirical", "weibull", "exponential", "trace" or "stated"."""
    ks_distance: float | None = None
    """Largest distance between the law and what was observed (Kolmogorov-Smirnov). Absent = it is what was observed."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionChoice(Value):
    """The offer to take."""

    row: int = 0
    """Its row."""
    rule: ObjectiveRule | None = None
    """The rule that chose it."""
    why: str = ""
    """Why, in one sentence with its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandQuestion(Value):
    """When to pay for machines on demand, so as to be done by a deadline for the least money.

    When to pay for machines on demand, so as to be done by a deadline for the least money: rules are played against a
    record of availability from many starts.
    """

    work_seconds: float = 0.0
    """Length of the job on either kind of machine."""
    deadline_seconds: float = 0.0
    """By when it must be done, from its start."""
    switch_seconds: float = 0.0
    """From asking for either kind to working on it, which is paid for."""
    spot_price_per_hour: float = 0.0
    """Price of the machines per hour on spot."""
    on_demand_price_per_hour: float = 0.0
    """Price of the same on demand."""
    availability: AvailabilityRecord | None = None
    """A record. Its first quarter teaches the plan, the rest is played."""
    law: AvailabilityLaw | None = None
    """A stated law, of which a record is drawn."""
    learned_from: tuple[AvailabilityRecord, ...] = ()
    """Other records that teach the plan."""
    nodes_needed: int | None = None
    """Nodes that must be there at once. Absent = 1."""
    tick_seconds: float | None = None
    """How often it is decided. Absent = 600."""
    starts_count: int | None = None
    """Starts that are played. Absent = 1,000."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AvailabilityLaw(Value):
    """Runs with and without spot, of exponential length."""

    available_mean_seconds: float = 0.0
    """Mean length of a run with spot."""
    unavailable_mean_seconds: float = 0.0
    """Mean length of a run without."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandAnswer(Value):
    """What each rule came to."""

    rules: tuple[OnDemandRule, ...] = ()
    """The rules, cheapest first."""
    rule: str = ""
    """The one to take: the cheapest of those that are never late."""
    why: str = ""
    """Why, in one sentence with its numbers."""
    available_ratio: float = 0.0
    """Share of time with spot, where it was played."""
    latest_switch_seconds: float = 0.0
    """When on demand must be asked for at the latest, if nothing was done by then."""
    starts_count: int = 0
    """Starts that were played."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandRule(Value):
    """A rule of when to pay for on demand."""

    rule: str = ""
    """"on-demand", "greedy", "uniform-progress", "timed" or "planned"."""
    until_seconds: float | None = None
    """When a timed rule goes on demand. Absent = of another rule."""
    cost_mean: float = 0.0
    """Mean cost."""
    cost_p90: float = 0.0
    """Cost not exceeded from 90 % of the starts."""
    cost_ratio: float = 0.0
    """Mean cost over that of on demand only."""
    late_ratio: float = 0.0
    """Share of starts after which it was late."""
    time_mean_seconds: float = 0.0
    """Mean seconds until it was done."""
    spot_mean_seconds: float = 0.0
    """Mean seconds on spot."""
    on_demand_mean_seconds: float = 0.0
    """Mean seconds on demand."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridQuestion(Value):
    """Synchronous first, asynchronous after: when to switch. Accuracy is never predicted."""

    synchronous_seconds: float | None = None
    """All of the work done synchronously. Absent = predicted from the request's profile."""
    asynchronous_seconds: float | None = None
    """All of it done asynchronously. Absent = predicted."""
    nodes: CompletionGroup | None = None
    """The nodes that it runs on, where times are predicted; only device, nodes, workers per node are used."""
    batch_per_worker_samples: int | None = None
    """Samples per worker and step, where times are predicted. Absent = as the job's evidence has it."""
    parameter_servers_count: int | None = None
    """Parameter servers, where times are predicted. Absent = as the job's evidence has it."""
    switch_seconds: float = 0.0
    """Seconds lost once at the switch."""
    fractions: tuple[float, ...] = ()
    """Shares of the work done synchronously that are asked about. Empty = 0, 0.05, 0.1, 0.25, 0.5, 0.75 and 1."""
    deadline_seconds: float | None = None
    """By when it must be done. Absent = no deadline."""
    runs: tuple[HybridRun, ...] = ()
    """Runs of this workload: shares, and the accuracy that each reached."""
    least_accuracy: float | None = None
    """Accuracy that must be reached; which shares do is told by the runs alone."""
    slowdown_ratios: tuple[float, ...] = ()
    """How much slower than the others each worker is, where some are: 2 = half as fast. One for each worker."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridRun(Value):
    """A run of a workload."""

    fraction: float = 0.0
    """Share of its work done synchronously."""
    accuracy: float = 0.0
    """Accuracy that it reached."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridAnswer(Value):
    """Times of switching."""

    problem: Problem | None = None
    """Why it cannot be answered. Absent = it is."""
    synchronous_seconds: float = 0.0
    """All of the work done synchronously."""
    asynchronous_seconds: float = 0.0
    """All of it done asynchronously."""
    points: tuple[HybridPoint, ...] = ()
    """One for each share that was asked about."""
    latest_fraction: float | None = None
    """Greatest share that is done in time. Absent = there is no deadline, or no share is."""
    feasible_fractions: tuple[float, ...] = ()
    """Shares that runs have shown to reach the accuracy, ascending."""
    chosen_fraction: float | None = None
    """Of these the least one that is done in time. Absent = none is known."""
    next_fraction: float | None = None
    """Share to try next in a job that recurs. Absent = no accuracy was asked for, or runs have told all there is."""
    straggler_policies: tuple[StragglerPolicy, ...] = ()
    """What may be done about slow workers, fastest first. Empty = there are none."""
    bases: tuple[Basis, ...] = ()
    """What the predicted times rest on: the synchronous, then the asynchronous. Empty = they were stated."""
    warnings: tuple[Notice, ...] = ()
    """What the reader should know."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridPoint(Value):
    """A share of the work done synchronously."""

    fraction: float = 0.0
    """The share."""
    time_seconds: float = 0.0
    """Seconds until all is done."""
    in_time: bool | None = None
    """Whether that is in time. Absent = there is no deadline."""
    measured_accuracy: float | None = None
    """Accuracy that runs of just this share reached on average. Absent = there was none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StragglerPolicy(Value):
    """What may be done about slow workers in synchronous training."""

    policy: str = ""
    """"wait", "drop" (go on without their results) or "asynchronous"."""
    dropped_count: int = 0
    """Workers whose results are not waited for."""
    time_seconds: float = 0.0
    """Seconds of all the work so."""
    batch_ratio: float = 0.0
    """Samples of a step over those of all workers: what dropping does to the batch."""
