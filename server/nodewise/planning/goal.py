"""Goals: what a search minimises and the limits it keeps, as columns that grow with the step time.

For a fixed number of devices and samples every key and every limit is monotone in the step time and in the memory, in
floating point too: each is a chain of monotone operations. So a lower bound of the step time gives a lower bound of
every key. The operations are those of ``estimation.answer.objectives``, in their order: what is within a limit here is
within it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import invalid_field
from nodewise.domain.objective import FewestDevices, Knee, LeastCost, LeastTime, Objective
from nodewise.domain.planning import PlanConstraints
from nodewise.domain.workload import Workload
from nodewise.estimation.answer.objectives import work_of
from nodewise.estimation.answer.offers import offer_of_device
from nodewise.planning.checked_model import Values

__all__ = ["KEYS", "Goal", "Limit", "goal_of"]

KEYS: Final = 3
"""Keys of a row, compared in their order; the canonical order of configurations decides what is left."""

ROUNDING: Final = 2.0**-50
"""Of a few operations."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Values of some rows and the most that they may be."""

    name: str
    values: Floats
    most: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Goal:
    """An objective over the configurations of a space.

    Attributes
    ----------
    objective : Objective
        As asked.
    work_samples : float or None
        Work left, where it is known.
    price_per_node_s, start_up_s : mapping of device to float
        What its node costs in a second, and the seconds until it works; empty = no offers.
    by_excess : bool
        Least missing memory instead of the objective: what comes closest to fitting.
    """

    objective: Objective
    work_samples: float | None
    price_per_node_s: Mapping[str, float] = field(default_factory=dict)
    start_up_s: Mapping[str, float] = field(default_factory=dict)
    by_excess: bool = False

    @property
    def by_scale(self) -> bool:
        """Whether the best of each scale is wanted, not the best of all."""
        return isinstance(self.objective.rule, Knee) and not self.by_excess

    def keys(self, rows: Configurations, step_s: Floats, memory_bytes: Floats, excess_bytes: Floats) -> Floats:
        """What is minimised, of shape (KEYS, rows)."""
        devices = rows.devices_held().astype(np.float64)
        slowness = -_rate(rows, step_s)
        if self.by_excess:
            return np.stack((excess_bytes, devices, slowness))
        rule = self.objective.rule
        if isinstance(rule, LeastTime | FewestDevices) and self.work_samples and any(self.start_up_s.values()):
            slowness = self._finish_s(rows, step_s)  # else the rate orders times, without a division's rounding
        if isinstance(rule, FewestDevices):
            return np.stack((devices, slowness, memory_bytes))
        if isinstance(rule, LeastCost):
            return np.stack((self._cost(rows, step_s), devices, memory_bytes))
        return np.stack((slowness, devices, memory_bytes))

    def limits(self, rows: Configurations, step_s: Floats) -> list[Limit]:
        """What must not be exceeded."""
        rule = self.objective.rule
        found: list[Limit] = []
        if self.by_excess:
            return found
        if rule.max_nodes is not None:
            found.append(Limit("max_nodes", rows.nodes_held().astype(np.float64), rule.max_nodes))
        if rule.max_cost is not None:
            found.append(Limit("max_cost", self._cost(rows, step_s), rule.max_cost))
        if rule.deadline_s is not None:
            found.append(Limit("deadline_seconds", self._finish_s(rows, step_s), rule.deadline_s))
        return found

    def needed(self, name: str, rows: Configurations, values: Values) -> tuple[float, float]:
        """What the first row needs of a limit, and the most that it may."""
        limit = next(each for each in self.limits(rows, values.step_s) if each.name == name)
        return float(limit.values[0]), limit.most

    def _finish_s(self, rows: Configurations, step_s: Floats) -> Floats:
        assert self.work_samples is not None  # goal_of refuses limits without work
        finish_s: Floats = self.work_samples / _rate(rows, step_s)
        # Asynchronous rates are multiplied in another order there: what is within a limit here must be within it there.
        finish_s = np.where(rows.steps_by_worker(), finish_s * (1.0 + ROUNDING), finish_s)
        return finish_s + self._of_devices(rows, self.start_up_s)

    def _cost(self, rows: Configurations, step_s: Floats) -> Floats:
        per_node_s = self._of_devices(rows, self.price_per_node_s)
        per_s = per_node_s * rows.nodes + per_node_s * np.maximum(rows.parameter_servers, 0)
        cost: Floats = self._finish_s(rows, step_s) * per_s
        return cost

    def _of_devices(self, rows: Configurations, known: Mapping[str, float]) -> Floats:
        found: Floats = np.array([known.get(name, 0.0) for name in rows.devices])[rows.device_index]
        return found

    def scales(self, prefixes: Configurations) -> Ints:
        """The column whose values are compared by the knee: nodes, or workers where all have the same nodes."""
        varied = len(prefixes) < 2 or bool((prefixes.nodes != prefixes.nodes[0]).any())
        return prefixes.nodes if varied else prefixes.workers


def _rate(rows: Configurations, step_s: Floats) -> Floats:
    """Samples per second; of asynchronous replicas too: each trains its share of the global batch in a step time."""
    return (1.0 / step_s) * rows.global_batch


def goal_of(objective: Objective, workload: Workload, constraints: PlanConstraints) -> Goal:
    """What an objective asks of a space.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the rule needs work, a data set's size or prices that were not given, or a confidence.
    """
    if objective.confidence is not None:
        text = "must be absent: a search compares points; the predictions of what it finds have their intervals"
        raise invalid_field("objective.confidence", text)
    work = work_of(objective, workload, is_known=True)
    offers = objective.offers
    found = {pool.device: offers[offer_of_device(offers, pool.device)] for pool in constraints.pools if offers}
    if objective.rule.compares_costs and (not offers or work is None):
        raise invalid_field("work" if offers else "offers", "must be given: the rule compares costs")
    return Goal(
        objective=objective,
        work_samples=work,
        price_per_node_s={device: offer.price_per_node_hour / 3600.0 for device, offer in found.items()},
        start_up_s={device: offer.start_up_s for device, offer in found.items()},
    )
