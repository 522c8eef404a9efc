"""An order in which every node comes after all that it waits for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, NodewiseError, Reason
from nodewise_laws.compiled import compiled

__all__ = ["ordered"]


def ordered(first_edge: Ints, source: NDArray[np.int32]) -> NDArray[np.int32]:
    """Order nodes by Kahn's algorithm (1962).

    Parameters
    ----------
    first_edge : (nodes + 1,) int64
        The edges into node v are ``first_edge[v]`` to ``first_edge[v + 1]``.
    source : (edges,) int32

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS if nodes wait for each other in a circle.
    """
    count = len(first_edge) - 1
    after = np.argsort(source, kind="stable")
    targets = np.repeat(np.arange(count, dtype=np.int64), np.diff(first_edge))[after]
    first_after = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(source, minlength=count), out=first_after[1:])
    order = np.empty(count, dtype=np.int32)
    done = _order(np.diff(first_edge), first_after, targets, order)
    if done < count:
        raise NodewiseError(
            Reason.CONTRADICTORY_FACTS,
            f"traces: {count - done} nodes wait for each other in a circle; what is before what must have an order",
            {"nodes": str(count - done)},
        )
    return order


@compiled
def _order(waiting: Ints, first_after: Ints, targets: Ints, order: NDArray[np.int32]) -> int:
    """Fill in ``order``; returns how many nodes were reached. ``waiting`` is used up."""
    filled = 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            order[filled] = node
            filled += 1
    position = 0
    while position < filled:
        node = order[position]
        position += 1
        for edge in range(first_after[node], first_after[node + 1]):
            target = targets[edge]
            waiting[target] -= 1
            if waiting[target] == 0:
                order[filled] = target
                filled += 1
    return filled
