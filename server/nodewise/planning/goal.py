"""Goals: the keys that a search minimises and its limits, as columns that grow with the step time.

For a fixed number of devices and samples every key and every limit is monotone in the step time and in the memory, in
floating-point arithmetic too: each is a chain of monotone operations. So a lower bound of the step time gives a lower
bound of every key. The operations and their order are those of ``estimation.answer.objectives``: a row that is within a
limit here is within it there.
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
"""Keys of a row, compared in their order; the canonical order of configurations decides between equal keys."""

ROUNDING: Final = 2.0**-50
"""Relative rounding error of a few floating-point operations."""


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """Values of some rows and the largest allowed value."""

    name: str
    values: Floats
    most: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Goal:
    """An objective over the configurations of a space.

    Attributes
    ----------
    objective : Objective
        As in the question.
    work_samples : float or None
        Work that remains, in samples; None = not known.
    price_per_node_s, start_up_s : mapping of device to float
        Price of a node of the device per second, and seconds until it starts to work; empty = no offers.
    by_excess : bool
        Minimise the missing memory instead of the objective: the best row is the one that comes closest to fitting.
    """

    objective: Objective
    work_samples: float | None
    price_per_node_s: Mapping[str, float] = field(default_factory=dict)
    start_up_s: Mapping[str, float] = field(default_factory=dict)
    by_excess: bool = False

    @property
    def by_scale(self) -> bool:
        """Whether to search for the best row of each scale instead of the best of all."""
        return isinstance(self.objective.rule, Knee) and not self.by_excess

    def keys(self, rows: Configurations, step_s: Floats, memory_bytes: Floats, excess_bytes: Floats) -> Floats:
        """The keys to minimise, of shape (KEYS, rows)."""
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
        """The limits that a row must not exceed."""
        rule = self.objective.rule
        limits: list[Limit] = []
        if self.by_excess:
            return limits
        if rule.max_nodes is not None:
            limits.append(Limit("max_nodes", rows.nodes_held().astype(np.float64), rule.max_nodes))
        if rule.max_cost is not None:
            limits.append(Limit("max_cost", self._cost(rows, step_s), rule.max_cost))
        if rule.deadline_s is not None:
            limits.append(Limit("deadline_seconds", self._finish_s(rows, step_s), rule.deadline_s))
        return limits

    def requirement(self, name: str, rows: Configurations, values: Values) -> tuple[float, float]:
        """The first row's value of a limit, and the largest allowed value."""
        limit = next(each for each in self.limits(rows, values.step_s) if each.name == name)
        return float(limit.values[0]), limit.most

    def _finish_s(self, rows: Configurations, step_s: Floats) -> Floats:
        assert self.work_samples is not None  # goal_of refuses limits without work
        finish_s: Floats = self.work_samples / _rate(rows, step_s)
        # Predictions multiply asynchronous rates in another order: a row within a limit here must be within it there.
        finish_s = np.where(rows.steps_by_worker(), finish_s * (1.0 + ROUNDING), finish_s)
        return finish_s + self._of_devices(rows, self.start_up_s)

    def _cost(self, rows: Configurations, step_s: Floats) -> Floats:
        per_node_s = self._of_devices(rows, self.price_per_node_s)
        per_s = per_node_s * rows.nodes + per_node_s * np.maximum(rows.parameter_servers, 0)
        cost: Floats = self._finish_s(rows, step_s) * per_s
        return cost

    def _of_devices(self, rows: Configurations, by_device: Mapping[str, float]) -> Floats:
        column: Floats = np.array([by_device.get(name, 0.0) for name in rows.devices])[rows.device_index]
        return column

    def scales(self, prefixes: Configurations) -> Ints:
        """The column that the knee compares: nodes, or workers where all prefixes have the same number of nodes."""
        node_counts_differ = len(prefixes) < 2 or bool((prefixes.nodes != prefixes.nodes[0]).any())
        return prefixes.nodes if node_counts_differ else prefixes.workers


def _rate(rows: Configurations, step_s: Floats) -> Floats:
    """Samples per second, also of asynchronous replicas: each trains its share of the global batch in a step time."""
    return (1.0 / step_s) * rows.global_batch


def goal_of(objective: Objective, workload: Workload, constraints: PlanConstraints) -> Goal:
    """The goal of an objective over a space.

    Raises
    ------
    NodewiseError
        INVALID_FIELD when the rule needs work, a data set's size or prices that the question does not state, or when
        the objective states a confidence.
    """
    if objective.confidence is not None:
        text = "must be absent: a plan compares step times without their intervals, which the predictions state"
        raise invalid_field("objective.confidence", text)
    work = work_of(objective, workload, is_known=True)
    offers = objective.offers
    by_device = {pool.device: offers[offer_of_device(offers, pool.device)] for pool in constraints.pools if offers}
    if objective.rule.compares_costs and (not offers or work is None):
        raise invalid_field("work" if offers else "offers", "must be given: the rule of the objective compares costs")
    return Goal(
        objective=objective,
        work_samples=work,
        price_per_node_s={device: offer.price_per_node_hour / 3600.0 for device, offer in by_device.items()},
        start_up_s={device: offer.start_up_s for device, offer in by_device.items()},
    )
