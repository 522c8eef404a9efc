"""Time from the end of what work waits for to the begin of the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.building.contention import SHORTEST_WAIT_NS
from nodewise_replay.building.nesting import ROUNDING_NS
from nodewise_replay.graph.graph import HELD_BY_NOTHING, EdgeKind, Origin
from nodewise_replay.graph.wiring import Edges

__all__ = ["device_lags"]

_DEFAULT_LAUNCH_NS: Final = 5_000
"""Launch latency where a trace shows none outside of a queue: a few microseconds."""


def device_lags(
    edges: Edges,
    end_ns: Ints,
    begin_ns: Ints,
    kind: NDArray[np.int8],
    occupied: Callable[[Ints, Ints], Ints] | None = None,
) -> Edges:
    """Give edges into device work their lags.

    Work begins when the last of its dependencies allows it; only this edge shows its lag, which is recorded exactly.
    The lag of every other edge is at most the time that passed, and assumed typical of its kind where that kind was the
    last: of launches the lower quartile, of work after work, whose times add up along a stream, the mean.

    Parameters
    ----------
    edges : Edges
        Kinds LAUNCH, STREAM and STREAM_WAIT, without lags. A launch's source is the piece of host time that ends where
        the call begins.
    end_ns, begin_ns, kind : (nodes,)
    occupied : callable, optional
        Of targets and of the times when they were ready, ns: the work that kept each from the device, -1 = none. It
        becomes a binding edge.
    """
    source, target, edge_kind = edges.source, edges.target, edges.edge_kind
    elapsed_ns = begin_ns[target] - end_ns[source]
    # A source that is not over when the target begins: rounding, or (a launch) clocks of host and device apart.
    elapsed_ns = np.maximum(elapsed_ns, np.where(edge_kind == EdgeKind.LAUNCH, 0, -ROUNDING_NS))
    launch = edge_kind == EdgeKind.LAUNCH
    size = int(target.max()) + 1 if len(target) else 0
    launched = np.full(size, HELD_BY_NOTHING, dtype=np.int64)
    np.maximum.at(launched, target[launch], end_ns[source[launch]])
    busy = np.full(size, HELD_BY_NOTHING, dtype=np.int64)
    np.maximum.at(busy, target[~launch], end_ns[source[~launch]])
    typical = np.zeros(len(target), dtype=np.int64)
    for node_kind in np.flatnonzero(np.bincount(kind[target])):
        of_kind = launch & (kind[target] == node_kind)
        free = of_kind & (busy[target] <= launched[target])
        if not free.any():
            free = launch & (busy[target] <= launched[target])
        typical[of_kind] = _typical(elapsed_ns[free]) if free.any() else _DEFAULT_LAUNCH_NS
    longest = int(typical.max(initial=0))
    queued = ~launch & (launched[target] + 2 * longest <= end_ns[source]) & (end_ns[source] == busy[target])
    for one in (EdgeKind.STREAM, EdgeKind.STREAM_WAIT):
        samples = queued & (edge_kind == one)
        if not samples.any():
            samples = queued
        typical[edge_kind == one] = _between(elapsed_ns[samples])
    lag = np.minimum(typical, elapsed_ns)
    earliest = end_ns[source] + lag
    # The edge that lets its target go last binds; of equal ones the first.
    rank = np.lexsort((-np.arange(len(target)), earliest, target))
    last = np.ones(len(target), dtype=np.bool_)
    last[:-1] = target[rank][1:] != target[rank][:-1]
    binding = np.zeros(len(target), dtype=np.bool_)
    binding[rank[last]] = True
    contention = Edges.none()
    if occupied is not None:
        last_edges = np.flatnonzero(binding)
        other = occupied(target[last_edges], earliest[last_edges])
        has_holder = other >= 0
        binding[last_edges[has_holder]] = False
        holder, waiter = other[has_holder], target[last_edges[has_holder]]
        passed_to = begin_ns[waiter] - end_ns[holder]
        contention = Edges.exact(holder, waiter, passed_to, EdgeKind.CONTENTION, Origin.INFERRED)
    explained = lag.copy()
    # A launch onto an idle stream takes the time that passed; of all other waits the part beyond typical is
    # unexplained.
    unqueued = binding & launch & (busy[target] <= launched[target])
    explained[unqueued] = elapsed_ns[unqueued]
    lag[binding] = elapsed_ns[binding]
    with_lags = replace(edges, lag_ns=lag, explained_lag_ns=explained, binding=binding)
    return contention.followed_by(with_lags) if len(contention) else with_lags


def _typical(elapsed_ns: Ints) -> int:
    """Lower quartile: unexplained waits lengthen the recorded times, and nothing shortens them."""
    return int(np.percentile(elapsed_ns, 25, method="lower"))


def _between(elapsed_ns: Ints) -> int:
    """Mean time from one piece of queued work to the next, without those that must have waited for something else."""
    ordinary = elapsed_ns[elapsed_ns < SHORTEST_WAIT_NS]
    return max(0, round(float(ordinary.mean()))) if len(ordinary) else 0
