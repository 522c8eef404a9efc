"""How long a step of a job is, and what it consists of."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_replay.changes.exchanges import exchanges_of
from nodewise_replay.changes.scenario import Scenario
from nodewise_replay.graph.graph import EdgeKind, NodeKind
from nodewise_replay.graph.sweep import sweep_times
from nodewise_replay.replaying.measures import StepTimer

__all__ = ["PARTS", "step_parts", "step_seconds"]

PARTS: Final = ("compute", "communication", "waiting", "host")
"""Names of the parts of a step, exposed time each."""

_NOT_HELD: Final = np.iinfo(np.int64).min // 8


def step_seconds(scenario: Scenario, ranks: tuple[int, ...], lag_ns: Ints | None = None) -> float:
    """Typical time of a step, as ``StepTimer`` measures it, mean over some ranks.

    Steps run one after the other, each from where the one before leaves it. The first is left out where there are
    three: it begins as recorded, not as the changed job would have left it. Of the others the median counts: few steps
    are recorded, and one that something else held up would move their mean.
    """
    graph = scenario.graph
    lags = scenario.lag_ns if lag_ns is None else lag_ns
    _, end = sweep_times(graph, scenario.duration_ns, lags, joined=True)
    columns = [graph.ranks.index(rank) for rank in ranks]
    took = StepTimer(graph).times(end, joined=True).step_ns[:, columns]
    there = np.flatnonzero((took >= 0).all(axis=1))
    later_steps = there[1:] if len(there) > 2 else there
    return float(np.median(took[later_steps].mean(axis=1))) * 1e-9 if len(later_steps) else 0.0


def step_parts(scenario: Scenario, hub: int) -> Floats:
    """Seconds of the parts of a step, in the order of PARTS; the step is their sum.

    ``communication`` is how much shorter the step would be if exchanges took no time; ``waiting``, how much shorter
    still on average if no rank waited for another. Of what is left, ``compute`` is work of the device, or of operators
    where nothing runs on a device, and ``host`` the rest. A parameter server's own work is no part of its workers'
    step.
    """
    graph = scenario.graph
    ranks = tuple(rank for rank in graph.ranks if rank != hub)
    whole = step_seconds(scenario, ranks)
    exchanges = exchanges_of(scenario)
    duration = scenario.duration_ns.copy()
    duration[exchanges.transfer] = 0
    duration[exchanges.relay] = 0
    quick = scenario.with_durations(duration)
    at_once = min(step_seconds(quick, ranks), whole)
    alone_lag = scenario.lag_ns.copy()
    alone_lag[(graph.edge_kind == EdgeKind.COLLECTIVE) & (graph.kind[graph.target] == NodeKind.TRANSFER)] = _NOT_HELD
    alone = min(step_seconds(quick, ranks, alone_lag), at_once)
    compute = min(_compute_seconds(scenario, ranks), alone)
    return np.array([compute, whole - at_once, at_once - alone, alone - compute])


def _compute_seconds(scenario: Scenario, ranks: tuple[int, ...]) -> float:
    """Work of the device per step and rank; of operators on the threads that steps end on, where there is none."""
    graph = scenario.graph
    device = np.isin(graph.kind, (int(NodeKind.KERNEL), int(NodeKind.COPY), int(NodeKind.FILL)))
    work = device if device.any() else (graph.kind == NodeKind.OPERATOR) & np.isin(graph.lane, graph.main_lanes)
    mine = work & np.isin(graph.rank, ranks) & (graph.step >= 0)
    per_step = max(int((graph.steps.last_node[:, [graph.ranks.index(rank) for rank in ranks]] >= 0).sum()), 1)
    return float(scenario.duration_ns[mine].sum()) * 1e-9 / per_step
