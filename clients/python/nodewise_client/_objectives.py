"""Objectives: what "best" means."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from nodewise_protos.v1 import objective_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestThroughput:
    """Highest throughput; among equals the fewest nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """Where more nodes stop paying."""

    share: float = 0.5
    """Share of the smallest configuration's throughput per node that each further node must bring."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastTime:
    """Least time within a budget of nodes or cost. Needs the work left; with `max_cost`, prices too."""

    max_nodes: int = 0
    """0 = no limit."""
    max_cost: float = 0.0
    """In the prices' currency; 0 = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastCost:
    """Least cost within a deadline. Needs the work left and prices."""

    deadline_s: float = 0.0
    """Seconds from now; 0 = no deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FewestDevices:
    """Fewest devices that finish in time; among equals the least time. Needs the work left."""

    deadline_s: float
    """Seconds from now, above 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work left to do: samples or epochs."""

    samples: float | None = None
    epochs: float | None = None
    """Needs the workload's samples per epoch."""

    def __post_init__(self) -> None:
        if (self.samples is None) == (self.epochs is None):
            raise ValueError("work is either samples or epochs: give one of the two")


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a node costs."""

    per_node_hour: float
    device: str = ""
    """Accelerator of the node; empty = any device without a price of its own."""
    currency: str = ""
    """For people; all prices of a request share one."""


Rule: TypeAlias = HighestThroughput | Knee | LeastTime | LeastCost | FewestDevices


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """A rule and what it needs. A rule that needs nothing may stand alone, without an Objective around it."""

    rule: Rule | None = None
    """None = no recommendation; time and cost to finish are still answered where work and prices are given."""
    confidence: float | None = None
    """Judge by the bound of the interval that holds with this probability; None = by the point."""
    work: Work | None = None
    prices: Iterable[Price] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "prices", tuple(self.prices))


def objective_to_wire(given: Objective | Rule | None) -> objective_pb2.Objective | None:
    """An objective, or a rule alone, as its message."""
    if given is None:
        return None
    objective = given if isinstance(given, Objective) else Objective(rule=given)
    message = objective_pb2.Objective(confidence=objective.confidence or 0.0)
    match objective.rule:
        case HighestThroughput():
            message.highest_throughput.SetInParent()
        case Knee(share=share):
            message.knee.share = share
            message.knee.SetInParent()
        case LeastTime(max_nodes=max_nodes, max_cost=max_cost):
            message.least_time.SetInParent()
            message.least_time.max_nodes = max_nodes
            message.least_time.max_cost = max_cost
        case LeastCost(deadline_s=deadline_s):
            message.least_cost.SetInParent()
            message.least_cost.deadline_seconds = deadline_s
        case FewestDevices(deadline_s=deadline_s):
            message.fewest_devices.SetInParent()
            message.fewest_devices.deadline_seconds = deadline_s
        case None:
            pass
    if objective.work is not None:
        if objective.work.samples is not None:
            message.work.samples = objective.work.samples
        elif objective.work.epochs is not None:
            message.work.epochs = objective.work.epochs
    for price in objective.prices:
        message.prices.add(device_name=price.device, price_per_node_hour=price.per_node_hour, currency=price.currency)
    return message


def objective_from_wire(message: objective_pb2.Objective) -> Objective:
    """The objective that a message holds; without a rule where it names none."""
    rule: Rule | None = None
    match message.WhichOneof("rule"):
        case "highest_throughput":
            rule = HighestThroughput()
        case "knee":
            rule = Knee(share=message.knee.share or 0.5)
        case "least_time":
            rule = LeastTime(max_nodes=message.least_time.max_nodes, max_cost=message.least_time.max_cost)
        case "least_cost":
            rule = LeastCost(deadline_s=message.least_cost.deadline_seconds)
        case "fewest_devices":
            rule = FewestDevices(deadline_s=message.fewest_devices.deadline_seconds)
    work = None
    if message.work.WhichOneof("amount") is not None:
        epochs = message.work.WhichOneof("amount") == "epochs"
        work = Work(epochs=message.work.epochs) if epochs else Work(samples=message.work.samples)
    return Objective(
        rule=rule,
        confidence=message.confidence or None,
        work=work,
        prices=[
            Price(per_node_hour=price.price_per_node_hour, device=price.device_name, currency=price.currency)
            for price in message.prices
        ],
    )
