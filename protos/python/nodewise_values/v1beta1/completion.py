"""How long jobs take on machines that can be revoked.

How long jobs take on machines that can be revoked, when to pay for machines on demand, and when to switch from
synchronous to asynchronous training. For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """Result of an offer."""

    name: str = ""
    """Name of the offer."""
    status: RowStatus | None = None
    """ANSWERED or REFUSED. A refused row has only its name and its problem."""
    problem: Problem | None = None
    """Why the offer was refused."""
    time_seconds: CompletionSpread | None = None
    """Seconds until the job is done."""
    cost: CompletionSpread | None = None
    """Cost until the job is done."""
    revocations_mean: float | None = None
    """Mean number of nodes lost, including those that the provider's time limit ends.

    Absent = nodes are lost faster than work is saved.
    """
    deadline_probability: float | None = None
    """Probability that the job is done by the objective's deadline.

    Absent = there is no deadline, or the method gives no probabilities.
    """
    failure_probability: float | None = None
    """Probability that the job is never done. Absent = the method gives no probabilities."""
    breakdown: CompletionBreakdown | None = None
    """Breakdown of the mean time. Absent = no simulated run finished, or the method gives no breakdown."""
    ideal_seconds: float = 0.0
    """Seconds without node losses and checkpoints."""
    samples_per_second: float = 0.0
    """Throughput with all nodes running, samples per second."""
    checkpoints: CompletionSaves | None = None
    """Checkpoints of the job. Absent = the job saves none."""
    lifetimes: tuple[LifetimeBasis, ...] = ()
    """What the lifetimes of each group are based on."""
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader."""
    basis: Basis | None = None
    """What the throughput is based on. Absent = the request stated the throughput."""
    nodes: int = 0
    """Nodes at the start."""
    workers: int = 0
    """Workers on these nodes."""
    device_names: tuple[str, ...] = ()
    """Devices of these nodes, each once."""
    speed_log_spread: float | None = None
    """Standard deviation of ln(speed) of the throughput model, which the runs include. Absent = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSpread(Value):
    """A mean and quantiles."""

    mean: float | None = None
    """Mean over the runs that finished. Absent = no run finished."""
    standard_error: float | None = None
    """Standard error of the mean. Absent = not known."""
    p50: float | None = None
    """Median over all runs. Quantiles are absent if too many runs never finish, or if the method gives none."""
    p90: float | None = None
    """90th percentile."""
    p99: float | None = None
    """99th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionBreakdown(Value):
    """Parts of the mean time, in seconds. They add up to it."""

    compute_seconds: float = 0.0
    """Seconds of the work with all nodes running."""
    degraded_seconds: float = 0.0
    """Additional seconds because nodes were missing. Below 0 if replacement nodes are faster."""
    checkpoint_seconds: float = 0.0
    """Seconds of saving checkpoints."""
    lost_work_seconds: float = 0.0
    """Seconds of lost work and lost checkpoints."""
    restart_seconds: float = 0.0
    """Seconds of waiting for nodes, rendezvous and restarts."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionSaves(Value):
    """Checkpoints of a job."""

    seconds: float = 0.0
    """Seconds to save one checkpoint."""
    interval_samples: float = 0.0
    """Samples between two checkpoints."""
    interval_seconds: float = 0.0
    """Seconds between two checkpoints with all nodes running."""
    chosen: bool = False
    """Whether the interval was chosen by the server rather than stated."""
    young_interval_seconds: float | None = None
    """Young's optimal interval for the mean time between losses that go back to a checkpoint. Absent = no loss does."""
    daly_interval_seconds: float | None = None
    """Daly's optimal interval. Absent as above."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LifetimeBasis(Value):
    """What the lifetimes of a group are based on."""

    group: int = 0
    """Index of the group in its offer, from 0."""
    data_set: str = ""
    """Name of the observed lifetimes, or of the stated law."""
    device_name: str = ""
    """Observed device. Empty = not known."""
    region: str = ""
    """Region of the observations. Empty = not known."""
    measured_time: datetime | None = None
    """Latest end of the observations. Absent = not known."""
    machines_count: int = 0
    """Number of machines observed. 0 = a stated law."""
    law: str = ""
    """Law of the lifetimes: "empirical", "weibull", "exponential", "trace" or "stated"."""
    ks_distance: float | None = None
    """Largest distance between the law and the observations (Kolmogorov-Smirnov).

    Absent = the law is the observations themselves.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CompletionChoice(Value):
    """The offer to choose."""

    row: int = 0
    """Row of the offer."""
    rule: ObjectiveRule | None = None
    """The rule that chose the offer."""
    why: str = ""
    """Why it was chosen, in one sentence with its numbers."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandQuestion(Value):
    """When to pay for machines on demand, to meet a deadline at the least cost.

    Each rule is simulated from many starting times in a record of spot availability.
    """

    work_seconds: float = 0.0
    """Seconds of work of the job; the same on spot and on-demand machines."""
    deadline_seconds: float = 0.0
    """Seconds from the job's start by which it must be done."""
    switch_seconds: float = 0.0
    """Seconds from the request for either kind of machine until it works. They are paid for."""
    spot_price_per_hour: float = 0.0
    """Price per hour of the machines on spot."""
    on_demand_price_per_hour: float = 0.0
    """Price per hour of the same machines on demand."""
    availability: AvailabilityRecord | None = None
    """A record of availability. The plan learns from its first quarter and is simulated on the rest."""
    law: AvailabilityLaw | None = None
    """A stated law, from which a record is drawn."""
    learned_from: tuple[AvailabilityRecord, ...] = ()
    """Further records that the plan learns from."""
    nodes_needed: int | None = None
    """Number of nodes that must be available at once. Absent = 1."""
    tick_seconds: float | None = None
    """Seconds between two decisions. Absent = 600."""
    starts_count: int | None = None
    """Number of starting times to simulate. Absent = 1,000."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AvailabilityLaw(Value):
    """Alternating periods with and without spot machines, with exponentially distributed lengths."""

    available_mean_seconds: float = 0.0
    """Mean seconds of a period with spot machines."""
    unavailable_mean_seconds: float = 0.0
    """Mean seconds of a period without spot machines."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandAnswer(Value):
    """Results of the rules."""

    rules: tuple[OnDemandRule, ...] = ()
    """The rules, cheapest first."""
    rule: str = ""
    """The recommended rule: the cheapest of those that are never late."""
    why: str = ""
    """Why it is recommended, in one sentence with its numbers."""
    available_ratio: float = 0.0
    """Share of the simulated time in which spot machines were available."""
    latest_switch_seconds: float = 0.0
    """Latest second from the start at which to request machines on demand if no work was done by then."""
    starts_count: int = 0
    """Number of starting times that were simulated."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OnDemandRule(Value):
    """A rule for paying for machines on demand, and its results."""

    rule: str = ""
    """"on-demand", "greedy", "uniform-progress", "timed" or "planned"."""
    until_seconds: float | None = None
    """When a timed rule switches to machines on demand. Absent = another rule."""
    cost_mean: float = 0.0
    """Mean cost."""
    cost_p90: float = 0.0
    """Cost that 90 % of the starts do not exceed."""
    cost_ratio: float = 0.0
    """Mean cost divided by the cost of using only machines on demand."""
    late_ratio: float = 0.0
    """Share of the starts for which the job was late."""
    time_mean_seconds: float = 0.0
    """Mean seconds until the job was done."""
    spot_mean_seconds: float = 0.0
    """Mean seconds on spot machines."""
    on_demand_mean_seconds: float = 0.0
    """Mean seconds on machines on demand."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridQuestion(Value):
    """When to switch from synchronous to asynchronous training. Accuracy is never predicted."""

    synchronous_seconds: float | None = None
    """Seconds for all of the work in synchronous mode. Absent = predicted from the request's profile."""
    asynchronous_seconds: float | None = None
    """Seconds for all of the work in asynchronous mode. Absent = predicted."""
    nodes: CompletionGroup | None = None
    """Nodes that the job runs on, for predicted times. Only device, nodes and workers per node are used."""
    batch_per_worker_samples: int | None = None
    """Samples per worker and step, for predicted times. Absent = as in the job's evidence."""
    parameter_servers_count: int | None = None
    """Parameter servers, for predicted times. Absent = as in the job's evidence."""
    switch_seconds: float = 0.0
    """Seconds lost once at the switch."""
    fractions: tuple[float, ...] = ()
    """Shares of the work in synchronous mode to evaluate. Empty = 0, 0.05, 0.1, 0.25, 0.5, 0.75 and 1."""
    deadline_seconds: float | None = None
    """Seconds by which the job must be done. Absent = no deadline."""
    runs: tuple[HybridRun, ...] = ()
    """Earlier runs of this workload: their shares, and the accuracy that each reached."""
    least_accuracy: float | None = None
    """Accuracy that must be reached. Only the runs show which shares reach it."""
    slowdown_ratios: tuple[float, ...] = ()
    """Slowdown of each worker relative to the others, if some are slower: 2 = half as fast. One entry per worker."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridRun(Value):
    """An earlier run of a workload."""

    fraction: float = 0.0
    """Share of its work in synchronous mode."""
    accuracy: float = 0.0
    """Accuracy that the run reached."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridAnswer(Value):
    """Results for the shares of synchronous work."""

    problem: Problem | None = None
    """Why the question cannot be answered. Absent = it is answered."""
    synchronous_seconds: float = 0.0
    """Seconds for all of the work in synchronous mode."""
    asynchronous_seconds: float = 0.0
    """Seconds for all of the work in asynchronous mode."""
    points: tuple[HybridPoint, ...] = ()
    """One point for each requested share."""
    latest_fraction: float | None = None
    """Greatest share that is done in time. Absent = there is no deadline, or no share is in time."""
    feasible_fractions: tuple[float, ...] = ()
    """Shares that runs have shown to reach the accuracy, ascending."""
    chosen_fraction: float | None = None
    """The least of these shares that is done in time. Absent = none is known."""
    next_fraction: float | None = None
    """Share to try next if the job recurs.

    Absent = no accuracy was required, or further runs would show nothing new.
    """
    straggler_policies: tuple[StragglerPolicy, ...] = ()
    """Policies for slow workers, the fastest first. Empty = no worker is slow."""
    bases: tuple[Basis, ...] = ()
    """What the predicted times are based on: first the synchronous, then the asynchronous time.

    Empty = both were stated.
    """
    warnings: tuple[Notice, ...] = ()
    """Warnings for the reader."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HybridPoint(Value):
    """A share of the work in synchronous mode."""

    fraction: float = 0.0
    """The share."""
    time_seconds: float = 0.0
    """Seconds until all work is done."""
    in_time: bool | None = None
    """Whether the job is done by the deadline. Absent = there is no deadline."""
    measured_accuracy: float | None = None
    """Mean accuracy of the runs with exactly this share. Absent = there were none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StragglerPolicy(Value):
    """A policy for slow workers in synchronous training."""

    policy: str = ""
    """"wait", "drop" (continue without their results) or "asynchronous"."""
    dropped_count: int = 0
    """Number of workers whose results are not waited for."""
    time_seconds: float = 0.0
    """Seconds for all of the work with this policy."""
    batch_ratio: float = 0.0
    """Samples of a step divided by the samples of a step of all workers: the effect of dropped workers on the batch."""
