"""Objectives: what "best" means, and the recommendation that follows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "FewestDevices",
    "HighestThroughput",
    "Knee",
    "LeastCost",
    "LeastTime",
    "Objective",
    "Prices",
    "Recommendation",
    "Rule",
]


@dataclass(frozen=True, slots=True)
class HighestThroughput:
    """Highest samples/s; among equals the fewest nodes."""


@dataclass(frozen=True, slots=True)
class Knee:
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min, X in samples/s."""

    share: float = 0.5


@dataclass(frozen=True, slots=True)
class LeastTime:
    """Least time to finish within a budget; None = no limit.

    ``max_nodes`` counts nodes as prices do: those of the workers and one for each parameter server. ``max_cost`` is in
    the prices' currency.
    """

    max_nodes: int | None = None
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class LeastCost:
    """Least cost to finish within ``deadline_s`` seconds from now; None = no deadline."""

    deadline_s: float | None = None


@dataclass(frozen=True, slots=True)
class FewestDevices:
    """Fewest devices that finish within ``deadline_s`` seconds from now; among equals the least time."""

    deadline_s: float


Rule = HighestThroughput | Knee | LeastTime | LeastCost | FewestDevices


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Price of one node for one hour, by accelerator; ``""`` is the price of any other."""

    per_node_hour: Mapping[str, float]
    currency: str = ""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Objective:
    """What is asked for.

    Attributes
    ----------
    rule : Rule
        How rows are compared.
    confidence : float or None
        Judge by the bound that holds with this probability (above 0.5) instead of the point. Rows without a spread are
        not recommended then; if no row has one, all are judged by the point.
    remaining_samples, remaining_epochs : float or None
        Work left; epochs need the workload's samples per epoch. Neither = all of the workload's epochs, where known.
    prices : Prices or None
        What nodes cost.
    """

    rule: Rule
    confidence: float | None = None
    remaining_samples: float | None = None
    remaining_epochs: float | None = None
    prices: Prices | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended row, the rule that chose it, and the numbers behind it (names carry units)."""

    row: int
    nodes: int
    workers: int
    rule: str
    why: str
    numbers: Mapping[str, float] = field(default_factory=dict)
