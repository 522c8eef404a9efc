"""Objectives: what "best" means, and the recommendation that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

__all__ = [
    "KNEE",
    "BatchBounds",
    "CurrentConfiguration",
    "FewestDevices",
    "HighestThroughput",
    "Knee",
    "LeastCost",
    "LeastTime",
    "Objective",
    "Offer",
    "Recommendation",
    "RecommendationBound",
    "Rule",
    "StatisticalEfficiency",
]


MOST_BATCHES: Final = 32
"""Most batches that are tried for each row."""


class Rule:
    """How rows are compared, and the limits of the recommended row; None = no limit.

    ``max_nodes`` counts nodes as prices do: those of the workers and one for each parameter server. ``max_cost`` is in
    the prices' currency, ``deadline_s`` in seconds from now.
    """

    __slots__ = ()

    max_nodes: int | None = None
    max_cost: float | None = None
    deadline_s: float | None = None

    @property
    def compares_costs(self) -> bool:
        """Whether rows without a cost cannot be judged."""
        return self.max_cost is not None


@dataclass(frozen=True, slots=True)
class HighestThroughput(Rule):
    """Highest samples/s; among equals the fewest nodes."""


@dataclass(frozen=True, slots=True)
class Knee(Rule):
    """Largest n with X(n) - X(previous n) >= share x (n - previous n) x X(n_min) / n_min, X in samples/s."""

    share: float = 0.5


@dataclass(frozen=True, slots=True)
class LeastTime(Rule):
    """Least time to finish within a budget."""

    max_nodes: int | None = None
    max_cost: float | None = None


@dataclass(frozen=True, slots=True)
class LeastCost(Rule):
    """Least cost to finish within a deadline."""

    deadline_s: float | None = None

    @property
    def compares_costs(self) -> bool:
        """Always."""
        return True


@dataclass(frozen=True, slots=True)
class FewestDevices(Rule):
    """Fewest devices that finish within a deadline; among equals the least time."""

    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Nodes on offer, and their price.

    Attributes
    ----------
    device : str
        Accelerator of the node; ``""`` = any that has no offer of its own.
    price_per_node_hour : float
        Price of a node that runs workers or a parameter server.
    start_up_s : float
        Seconds until its nodes work, in which they are paid for.
    """

    name: str = ""
    device: str = ""
    price_per_node_hour: float = 0.0
    currency: str = ""
    start_up_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentConfiguration:
    """The current configuration: its row, seconds that a move loses, and the payback window; None = the work's."""

    row: int
    restart_cost_s: float = 0.0
    payback_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticalEfficiency:
    """Statistical efficiency: a sample at batch m counts (noise scale + initial batch) / (noise scale + m)."""

    gradient_noise_scale_samples: float
    initial_batch_samples: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBounds:
    """Global batches that may be chosen, and the most samples of a worker's micro-step; None = its share at once."""

    least: int
    most: int
    most_per_worker: int | None = None

    @property
    def candidates(self) -> tuple[int, ...]:
        """Whole batches between the bounds, both of them included, in a geometric series: at most ``MOST_BATCHES``."""
        steps = MOST_BATCHES - 1
        ratio = self.most / self.least
        return tuple(dict.fromkeys(round(self.least * ratio ** (step / steps)) for step in range(MOST_BATCHES)))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Objective:
    """The objective of a recommendation, with everything that it depends on.

    Attributes
    ----------
    rule : Rule
        How rows are compared.
    most_extrapolation : float
        Largest multiple of the measured scale that is recommended; 0 = no limit.
    confidence : float or None
        Judge by the bound that holds with this probability (above 0.5) instead of the point. Rows without a spread are
        not recommended then; if no row has one, all are judged by the point.
    remaining_samples, remaining_epochs : float or None
        Work left; epochs need the workload's samples per epoch. Neither = all of the workload's epochs, where known.
    offers : tuple of Offer
        Prices of nodes; empty = costs are not known.
    offers_of_rows : tuple of int or None
        The offer that each row names, -1 = none; None = no row does.
    current : CurrentConfiguration or None
        The configuration that a move is compared with.
    efficiency : StatisticalEfficiency or None
        If given, goodput is compared instead of throughput.
    batch_bounds : BatchBounds or None
        If given, rows without a global batch get the one of best goodput.
    """

    rule: Rule = Knee()
    most_extrapolation: float = 4.0
    confidence: float | None = None
    remaining_samples: float | None = None
    remaining_epochs: float | None = None
    offers: tuple[Offer, ...] = ()
    offers_of_rows: tuple[int, ...] | None = None
    current: CurrentConfiguration | None = None
    efficiency: StatisticalEfficiency | None = None
    batch_bounds: BatchBounds | None = None

    def of_rows(self, rows: Sequence[int]) -> Objective:
        """The objective for some rows of the question, in their order, without the comparison with the current row."""
        index = self.offers_of_rows
        if index is None and self.current is None:
            return self
        return replace(self, offers_of_rows=None if index is None else tuple(index[row] for row in rows), current=None)

    @property
    def currency(self) -> str:
        """The currency of the offers, which share one; empty without offers."""
        return self.offers[0].currency if self.offers else ""


KNEE: Final = Objective()
"""The default objective."""


class RecommendationBound(IntEnum):
    """The limit that kept a recommendation from being larger."""

    NOTHING = 0
    RANGE = 1
    EVIDENCE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended row, the rule that chose it, and the numbers behind it (names carry units).

    Attributes
    ----------
    offer : str
        Name of the row's offer; empty = none.
    samples_per_s, finish_s, cost : float or None
        Of that row, restart included where the job moves; None = not known.
    keeps_current : bool
        Whether it is the row that the job runs on now.
    bounded_by : RecommendationBound
        The limit of the search, where the largest row of all was chosen.
    """

    row: int
    nodes: int
    workers: int
    rule: str
    why: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    device: str = ""
    offer: str = ""
    samples_per_s: float | None = None
    finish_s: float | None = None
    cost: float | None = None
    keeps_current: bool = False
    bounded_by: RecommendationBound = RecommendationBound.NOTHING
