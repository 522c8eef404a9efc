"""Objectives: what "best" means, and the recommendation that follows."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.value import Value

__all__ = [
    "FewestDevices",
    "HighestThroughput",
    "Knee",
    "LeastCost",
    "LeastTime",
    "NamedNumber",
    "Objective",
    "Price",
    "Recommendation",
    "Work",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Objective(Value):
    """What is asked for.

    Throughput is compared in samples per second; where the batch is not known, in mini-batches per second, and the
    recommendation says so.
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
    confidence: float = 0.0
    """Judge by the bound of the interval that holds with this probability instead of the point.

    Judge by the bound of the interval that holds with this probability instead of the point, above 0.5, at most 0.9999.
    0 = by the point.
    """
    work: Work | None = None
    """Work left.

    Absent = all of the workload's epochs, where the profile says how many there are and of how many samples; needed
    wherever a time or a cost is.
    """
    prices: tuple[Price, ...] = ()
    """Prices, by device."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HighestThroughput(Value):
    """Highest throughput."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Knee(Value):
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min, X in samples/s."""

    share: float = 0.0
    """Share of the smallest configuration's throughput per node that each further node must bring, above 0, at most 1.

    0 = 0.5.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastTime(Value):
    """Least time to finish."""

    max_nodes: int = 0
    """At most this many nodes, those of parameter servers included. 0 = no limit."""
    max_cost: float = 0.0
    """At most this cost in the prices' currency. 0 = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LeastCost(Value):
    """Least cost."""

    deadline_seconds: float = 0.0
    """Finish within this many seconds from now. 0 = no deadline."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FewestDevices(Value):
    """Fewest devices that finish in time; among equals the least time."""

    deadline_seconds: float = 0.0
    """Finish within this many seconds from now, above 0."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Work(Value):
    """Work left to do."""

    samples: float | None = None
    """Samples left to train on; needs a known batch, in the question or in the job's evidence."""
    epochs: float | None = None
    """Epochs left; needs the workload's samples per epoch."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Price(Value):
    """What a node costs.

    A row with groups of workers on several devices is charged in proportion to the workers on each.
    """

    device_name: str = ""
    """Accelerator of the node. Empty = any device without a price of its own."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour, parameter servers' nodes are charged alike."""
    currency: str = ""
    """Currency, for people. All prices of a request share one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Recommendation(Value):
    """The recommended row and why."""

    row: int = 0
    """Row of the predictions."""
    nodes: int = 0
    """Its nodes."""
    workers: int = 0
    """Its workers."""
    rule: str = ""
    """The rule that chose it, e.g. "knee"."""
    why: str = ""
    """The rule applied, in one sentence with its numbers."""
    numbers: tuple[NamedNumber, ...] = ()
    """The numbers behind it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamedNumber(Value):
    """A number with a name that carries its unit."""

    name: str = ""
    """Name with unit, e.g. "gain_samples_per_second"."""
    value: float = 0.0
    """Value."""
