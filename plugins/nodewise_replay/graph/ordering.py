"""An order in which every node comes after all that it waits for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, NodewiseError, Reason
from nodewise_laws.object_code import object_code

__all__ = ["a_circle", "first_rows", "in_circles", "occurrences", "topological_order"]


def topological_order(first_edge: Ints, source: NDArray[np.integer]) -> NDArray[np.int32]:
    """Order nodes by Kahn's algorithm (1962).

    Parameters
    ----------
    first_edge : (nodes + 1,) int64
        The edges into node v are ``first_edge[v]`` to ``first_edge[v + 1]``.
    source : (edges,) int

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS if nodes wait for each other in a circle.
    """
    target = np.repeat(np.arange(len(first_edge) - 1, dtype=np.int64), np.diff(first_edge))
    order, waiting = _remove_sources(source, target, len(first_edge) - 1)
    left = int((waiting > 0).sum())
    if left:
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS,
            f"traces: {left} nodes wait for each other in a cycle; remove the cyclic dependencies",
            {"nodes": str(left)},
        )
    return order


def first_rows(group: NDArray[np.integer], count: int) -> Ints:
    """Where each of ``count`` groups begins once rows are sorted by group; the end of the last one follows."""
    first = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(group, minlength=count), out=first[1:])
    return first


def occurrences(group: Ints, order: Ints) -> Ints:
    """Which of its group every row is, from 0, in an order that keeps groups together."""
    ordered_group = group[order]
    fresh = np.append(True, ordered_group[1:] != ordered_group[:-1])[: len(order)]
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.arange(len(order)) - np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    return which


def in_circles(count: int, source: Ints, target: Ints) -> NDArray[np.bool_]:
    """Edges among ``count`` nodes whose both ends are in or between cycles."""
    in_cycle = _remove_sources(source, target, count)[1] > 0
    circles: NDArray[np.bool_] = in_cycle[source] & in_cycle[target]
    return circles


def a_circle(count: int, source: Ints, target: Ints) -> list[int]:
    """Edges of one circle among ``count`` nodes, each from where the one before leads; empty = there is none."""
    cycle_nodes = np.flatnonzero(in_circles(count, source, target))
    if not len(cycle_nodes):
        return []
    into = dict(zip(target[cycle_nodes].tolist(), cycle_nodes.tolist()))
    place_by_node: dict[int, int] = {}
    path: list[int] = []
    node = int(target[cycle_nodes[0]])
    while node not in place_by_node:  # whatever is stuck waits for something that is
        place_by_node[node] = len(path)
        path.append(into[node])
        node = int(source[path[-1]])
    return path[place_by_node[node] :][::-1]


def _remove_sources(source: NDArray[np.integer], target: Ints, count: int) -> tuple[NDArray[np.int32], Ints]:
    """Nodes in order, and for how many each still waits at the end: 0 unless it is in a circle, or behind one."""
    after = np.argsort(source, kind="stable")
    waiting = np.bincount(target, minlength=count).astype(np.int64)
    order = np.empty(count, dtype=np.int32)
    _order(waiting, first_rows(source, count), target[after], order)
    return order, waiting


@object_code
def _order(waiting: Ints, first_after: Ints, targets: Ints, order: NDArray[np.int32]) -> int:
    """Fill in ``order``; returns how many nodes were reached. ``waiting`` stays above 0 where none comes."""
    count_placed = 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            order[count_placed] = node
            count_placed += 1
    position = 0
    while position < count_placed:
        node = order[position]
        position += 1
        for edge in range(first_after[node], first_after[node + 1]):
            target = targets[edge]
            waiting[target] -= 1
            if waiting[target] == 0:
                order[count_placed] = target
                count_placed += 1
    return count_placed
