"""Objectives: what "best" means, the inputs that decide it, and the recommendation that follows.

For what an absent or empty value means, see configuration.proto.
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
    """The largest scale at which more nodes still pay."""
    LEAST_TIME = "least_time"
    """Least time."""
    LEAST_COST = "least_cost"
    """Least cost."""
    FEWEST_DEVICES = "fewest_devices"
    """Fewest devices."""


class CapacityTier(Word):
    """Whether capacity can be revoked."""

    ON_DEMAND = "on_demand"
    """Not revoked until the job returns it."""
    SPOT = "spot"
    """May be revoked at any time."""
    RESERVED = "reserved"
    """Paid for whether it is used or not."""


class RecommendationBound(Word):
    """Why no larger row was recommended, although the largest row that may be recommended still pays."""

    RANGE = "range"
    """The question has no larger row."""
    EVIDENCE = "evidence"
    """Larger rows lie beyond Objective.max_extrapolation_ratio.

    A run measured at the recommended row lets a later question recommend larger ones.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Objective(Value):
    """What the caller wants.

    An absent objective, or one without a rule, means the knee, in Predict, BatchPredict and SuggestMeasurements alike.
    (Plan compares splits rather than scales and states its own default.) Objectives compare throughput in samples per
    second. Where the batch is not known they compare mini-batches per second, and the recommendation says so. Where the
    question states the gradient noise scale they compare goodput.
    """

    highest_throughput: HighestThroughput | None = None
    """Highest throughput; among equals, the fewest nodes."""
    knee: Knee | None = None
    """The largest scale at which more nodes still pay."""
    least_time: LeastTime | None = None
    """Least time within a budget of nodes or cost."""
    least_cost: LeastCost | None = None
    """Least cost within a deadline."""
    fewest_devices: FewestDevices | None = None
    """Fewest devices within a deadline."""
    confidence: float | None = None
    """Compare rows by the bound of the interval that holds with this probability.

    Absent = compare by the predicted value itself.
    """
    max_extrapolation_ratio: float | None = None
    """Largest scale to recommend.

    Largest scale to recommend, as a multiple of the most nodes and the most workers that a run of the job was measured
    on. Larger rows are still predicted but not recommended, except for the current configuration. Absent = 4; 0 = any
    row may be recommended. Without a measured run there is no limit. Where phase timings identify more than their own
    scale, extrapolation_ratios counts instead. Completion and Plan ignore this field.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HighestThroughput(Value):
    """Highest throughput."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Knee(Value):
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min, X in samples/s."""

    share: float | None = None
    """Share of the smallest configuration's throughput per node that each further node must add. Absent = 0.5."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastTime(Value):
    """Least time to finish."""

    max_nodes: int | None = None
    """Most nodes, including those of parameter servers. Absent = no limit."""
    max_cost: float | None = None
    """Highest cost, in the offers' currency. Absent = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastCost(Value):
    """Least cost."""

    deadline_seconds: float | None = None
    """Seconds from now within which the job must finish. Absent = no deadline."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FewestDevices(Value):
    """Fewest devices that finish by the deadline; among equals, the least time."""

    deadline_seconds: float = 0.0
    """Seconds from now within which the job must finish. Must be given."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Work(Value):
    """Work left to do.

    Absent = all of the workload's epochs, if the profile states their number and their samples. Needed by every
    objective of time or cost. The work is always done in full: no method predicts whether training converges earlier.
    """

    samples: float | None = None
    """Samples left to train on. Needs a known batch, in the question or in the job's evidence."""
    epochs: float | None = None
    """Epochs left. Needs the workload's samples per epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Offer(Value):
    """Nodes that are available, and what they cost.

    A row names its offer (Configurations.offer_names). A row that names none gets the only offer for its device, else
    the only offer without a device. If several offers apply, the question is refused and the row must name one. A row
    with groups of workers on several devices is charged in proportion to the workers on each.
    """

    name: str = ""
    """Name, unique in the request. Needed only if rows name offers."""
    device_name: str = ""
    """Accelerator of the node. Empty = any device without an offer of its own."""
    tier: CapacityTier | None = None
    """Whether the nodes can be revoked."""
    region: str = ""
    """Region or zone, e.g. "us-east-1a". Empty = not known."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour. Nodes of parameter servers cost the same."""
    currency: str = ""
    """Currency, for people. All offers of a request use the same one."""
    start_up_seconds: float = 0.0
    """Seconds from the order until the nodes work. They are paid for, and count in the time and the cost to finish."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StatisticalEfficiency(Value):
    """How much a sample is worth at another batch.

    How much a sample is worth at another batch: goodput is samples per second times (noise scale + initial batch) /
    (noise scale + batch).
    """

    gradient_noise_scale_samples: float = 0.0
    """Gradient noise scale of the training at present."""
    initial_batch_samples: float = 0.0
    """Global batch at which the efficiency of a sample is 1."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchBounds(Value):
    """Batches that the service may choose.

    Each row that states no global batch gets the one with the best goodput, from a geometric series of at most 32
    batches between the bounds.
    """

    min_global_batch_samples: float = 0.0
    """Least global batch."""
    max_global_batch_samples: float = 0.0
    """Greatest global batch."""
    max_batch_per_worker_samples: float | None = None
    """Most samples that a worker can process in a micro-step; larger batches are accumulated.

    Absent = a worker processes its share in one micro-step.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CurrentConfiguration(Value):
    """The configuration that the job runs on now. Another row is recommended only if the move pays."""

    row: int = 0
    """Row of the question that holds it."""
    restart_cost_seconds: float = 0.0
    """Seconds lost when the job moves to another configuration."""
    payback_seconds: float | None = None
    """Seconds within which the move must pay for itself.

    Absent = the seconds of the work left, or 3600 if the work is not known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Recommendation(Value):
    """The recommended row, and why."""

    row: int = 0
    """Row of the predictions."""
    nodes: int = 0
    """Nodes of the row."""
    workers: int = 0
    """Workers of the row."""
    device_name: str = ""
    """Device of the row; if the row has groups, that of the first group."""
    offer_name: str = ""
    """Offer of the row. Empty = none."""
    samples_per_second: float | None = None
    """Throughput of the row, samples per second. Absent = its batch is not known."""
    finish_seconds: float | None = None
    """Seconds until the work is done on this row, including a restart. Absent = no work is known."""
    cost: float | None = None
    """Cost of that work. Absent = no offer was given."""
    rule: ObjectiveRule | None = None
    """The rule that chose the row."""
    why: str = ""
    """How the rule chose the row, in one sentence with its numbers."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers in that sentence."""
    keeps_current: bool = False
    """The row is the job's current configuration."""
    bounded_by: RecommendationBound | None = None
    """Why no larger row was recommended."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamedNumber(Value):
    """A number with a name that carries its unit."""

    name: str = ""
    """Name with unit, e.g. "gain_samples_per_second"."""
    value: float = 0.0
    """Value."""
