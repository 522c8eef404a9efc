"""Objectives: what "best" means, what it is computed from, and the recommendation that follows.

Absence, as on the whole wire: see configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.value import Value, Word

__all__ = [
    "BatchBounds",
    "CapacityTier",
    "CurrentConfiguration",
    "FewestDevices",
    "HighestThroughput",
    "Knee",
    "LeastCost",
    "LeastTime",
    "NamedNumber",
    "Objective",
    "ObjectiveRule",
    "Offer",
    "Recommendation",
    "RecommendationBound",
    "StatisticalEfficiency",
    "Work",
]


class ObjectiveRule(Word):
    """Rules of objectives."""

    HIGHEST_THROUGHPUT = "highest_throughput"
    """Highest throughput."""
    KNEE = "knee"
    """Where more nodes stop paying."""
    LEAST_TIME = "least_time"
    """Least time."""
    LEAST_COST = "least_cost"
    """Least cost."""
    FEWEST_DEVICES = "fewest_devices"
    """Fewest devices."""


class CapacityTier(Word):
    """How firmly capacity is held."""

    ON_DEMAND = "on_demand"
    """Held until it is given back."""
    SPOT = "spot"
    """May be revoked at any time."""
    RESERVED = "reserved"
    """Paid whether it is used or not."""


class RecommendationBound(Word):
    """What kept a recommendation from being larger, though the largest row that could be recommended still pays."""

    RANGE = "range"
    """No larger row was asked about."""
    EVIDENCE = "evidence"
    """Larger rows lie beyond Objective.max_extrapolation_ratio.

    Larger rows lie beyond Objective.max_extrapolation_ratio; a run measured at the recommended one lets a later
    question look further.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Objective(Value):
    """What is asked for.

    An absent objective, or one without a rule, means the knee: in Predict, BatchPredict and SuggestMeasurements alike.
    (Plan compares splits rather than scales, and says there what it means.) Throughput is compared in samples per
    second; where the batch is not known, in mini-batches per second, and the recommendation says so; where the question
    tells the gradient noise scale, in goodput.
    """

    highest_throughput: HighestThroughput | None = None
    """Highest throughput; among equals the fewest nodes."""
    knee: Knee | None = None
    """Where more nodes stop paying."""
    least_time: LeastTime | None = None
    """Least time within a budget of nodes or cost."""
    least_cost: LeastCost | None = None
    """Least cost within a deadline."""
    fewest_devices: FewestDevices | None = None
    """Fewest devices within a deadline."""
    confidence: float | None = None
    """Judge by the bound of the interval that holds with this probability. Absent = by the point."""
    max_extrapolation_ratio: float | None = None
    """Recommend no row of more nodes.

    Recommend no row of more nodes, or more workers, than this many times the most that a run of the job was measured
    on, but the current one. Such rows are predicted all the same. Absent = 4; 0 = recommend any row. Without a measured
    run nothing is held back. Where phase timings identify more than their own scale, extrapolation_ratios counts
    instead. Completion and Plan do not look at it.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HighestThroughput(Value):
    """Highest throughput."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Knee(Value):
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min, X in samples/s."""

    share: float | None = None
    """Share of the smallest configuration's throughput per node that each further node must bring. Absent = 0.5."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastTime(Value):
    """Least time to finish."""

    max_nodes: int | None = None
    """At most this many nodes, those of parameter servers included. Absent = no limit."""
    max_cost: float | None = None
    """At most this cost in the offers' currency. Absent = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastCost(Value):
    """Least cost."""

    deadline_seconds: float | None = None
    """Finish within this many seconds from now. Absent = no deadline."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FewestDevices(Value):
    """Fewest devices that finish in time; among equals the least time."""

    deadline_seconds: float = 0.0
    """Finish within this many seconds from now. Must be given."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Work(Value):
    """Work left to do.

    Absent = all of the workload's epochs, where the profile says how many there are and of how many samples; needed
    wherever a time or a cost decides. Nothing here ends early: whether training converges before is never predicted.
    """

    samples: float | None = None
    """Samples left to train on; needs a known batch, in the question or in the job's evidence."""
    epochs: float | None = None
    """Epochs left; needs the workload's samples per epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Offer(Value):
    """Nodes that can be had, and what they cost.

    A row names its offer (Configurations.offer_names); a row that names none has the only offer of its device, else the
    only one without a device. Where several fit the question is refused: they must be named. A row with groups of
    workers on several devices is charged in proportion to the workers on each.
    """

    name: str = ""
    """Name, unique in the request. Needed only where rows name offers."""
    device_name: str = ""
    """Accelerator of the node. Empty = any device without an offer of its own."""
    tier: CapacityTier | None = None
    """How firmly it is held."""
    region: str = ""
    """Where, e.g. "us-east-1a". Empty = not known."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour; parameter servers' nodes are charged alike."""
    currency: str = ""
    """Currency, for people. All offers of a request share one."""
    start_up_seconds: float = 0.0
    """Seconds until its nodes work, in which they are paid for: part of the time and the cost to finish."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StatisticalEfficiency(Value):
    """What another batch is worth.

    What another batch is worth: goodput is samples per second times (noise scale + initial batch) / (noise scale +
    batch).
    """

    gradient_noise_scale_samples: float = 0.0
    """Gradient noise scale of the training now."""
    initial_batch_samples: float = 0.0
    """Global batch that samples are worth one each at."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchBounds(Value):
    """Batches that may be chosen.

    With them, each row that states no global batch gets the one of best goodput, out of a geometric series of at most
    32 between the bounds.
    """

    min_global_batch_samples: float = 0.0
    """Least global batch."""
    max_global_batch_samples: float = 0.0
    """Greatest global batch."""
    max_batch_per_worker_samples: float | None = None
    """Most samples that a worker can take in a micro-step; more are accumulated.

    Absent = a worker takes its share at once.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CurrentConfiguration(Value):
    """What the job runs on now: another row is recommended only where moving there pays."""

    row: int = 0
    """Its row in the question."""
    restart_cost_seconds: float = 0.0
    """Seconds lost when the job moves."""
    payback_seconds: float | None = None
    """Seconds in which the move must have paid for itself.

    Absent = those of the work left, or 3600 where it is not known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Recommendation(Value):
    """The recommended row and why."""

    row: int = 0
    """Row of the predictions."""
    nodes: int = 0
    """Its nodes."""
    workers: int = 0
    """Its workers."""
    device_name: str = ""
    """Its device; of a row with groups, that of the first."""
    offer_name: str = ""
    """Its offer. Empty = none."""
    samples_per_second: float | None = None
    """Its throughput, samples per second. Absent = its batch is not known."""
    finish_seconds: float | None = None
    """Seconds until the work is done there, restart included. Absent = no work is known."""
    cost: float | None = None
    """Cost of that work. Absent = no offer was given."""
    rule: ObjectiveRule | None = None
    """The rule that chose it."""
    why: str = ""
    """The rule applied, in one sentence with its numbers."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers behind it."""
    keeps_current: bool = False
    """It is the row that the job runs on now."""
    bounded_by: RecommendationBound | None = None
    """What kept it from being larger."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamedNumber(Value):
    """A number with a name that carries its unit."""

    name: str = ""
    """Name with unit, e.g. "gain_samples_per_second"."""
    value: float = 0.0
    """Value."""
