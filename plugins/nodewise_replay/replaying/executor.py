"""Execution with devices that choose: for changes that may reorder what runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_laws.compiled import compiled
from nodewise_replay.graph.graph import Graph

__all__ = ["executed"]

_COLUMNS = 3
"""Of a queue: priority, time, node."""


def executed(
    graph: Graph, device: Ints, priority: Ints, duration_ns: Ints | None = None, lag_ns: Ints | None = None
) -> tuple[Ints, Ints]:
    """Begin and end of every node where each device does one thing at a time and takes what is most urgent.

    Whenever a device is free it takes, of the nodes that may begin by then, the one with the least priority, then the
    one that was ready first, then the one with the least number; what runs is not interrupted. The order on devices
    that the edges state is kept.

    Parameters
    ----------
    graph : Graph
    device : (nodes,) int64
        From 0; -1 = runs whenever it is ready.
    priority : (nodes,) int64
        Less is sooner.
    duration_ns : (nodes,) int64, optional
    lag_ns : (edges,) int64, optional
        Default: as recorded.

    Returns
    -------
    (begin_ns, end_ns)
    """
    count = len(graph)
    durations = np.array(graph.duration_ns if duration_ns is None else duration_ns, dtype=np.int64)
    lags = np.array(graph.lag_ns if lag_ns is None else lag_ns, dtype=np.int64)
    after = np.argsort(graph.source, kind="stable")
    first_after = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(graph.source, minlength=count), out=first_after[1:])
    targets = graph.target[after]
    # A device of its own for everything that needs none.
    own = np.array(device, dtype=np.int64)
    alone = np.flatnonzero(own < 0)
    own[alone] = int(own.max(initial=-1)) + 1 + np.arange(len(alone))
    devices = int(own.max(initial=-1)) + 1
    load = np.bincount(own, minlength=devices)
    first_place = np.zeros(devices + 1, dtype=np.int64)
    np.cumsum(load, out=first_place[1:])
    begin, end = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    _execute(
        first_after,
        targets,
        lags[after],
        durations,
        own,
        np.array(priority, dtype=np.int64),
        np.diff(graph.first_edge),
        np.array(graph.release_ns, dtype=np.int64),
        np.zeros(devices, dtype=np.int64) + np.iinfo(np.int64).min // 4,
        first_place,
        np.zeros(devices, dtype=np.int64),
        np.empty((count, _COLUMNS), dtype=np.int64),
        np.empty((3 * count + 1, _COLUMNS), dtype=np.int64),
        begin,
        end,
    )
    return begin, end


@compiled
def _execute(
    first_after: Ints,
    targets: Ints,
    lag_ns: Ints,
    duration_ns: Ints,
    device: Ints,
    priority: Ints,
    waiting: Ints,
    ready_ns: Ints,
    free_ns: Ints,
    first_place: Ints,
    queued: Ints,
    queues: NDArray[np.int64],
    agenda: NDArray[np.int64],
    begin_ns: Ints,
    end_ns: Ints,
) -> int:
    """Fill in ``begin_ns`` and ``end_ns``; returns how many nodes ran.

    The agenda holds (time, kind, which): kind 0 = a node becomes ready, kind 1 = a device may be free. All that happens
    at one time is known before a device chooses.
    """
    size, done = 0, 0
    for node in range(len(waiting)):
        if waiting[node] == 0:
            size = _push(agenda, 0, size, ready_ns[node], 0, node)
    while size > 0:
        now, kind, which = agenda[0, 0], agenda[0, 1], agenda[0, 2]
        size = _pop(agenda, 0, size)
        if kind == 0:
            own = device[which]
            queued[own] = _push(queues, first_place[own], queued[own], priority[which], now, which)
            size = _push(agenda, 0, size, max(now, free_ns[own]), 1, own)
            continue
        if queued[which] == 0 or free_ns[which] > now:
            continue
        node = queues[first_place[which], 2]
        queued[which] = _pop(queues, first_place[which], queued[which])
        begin_ns[node] = now
        end_ns[node] = now + duration_ns[node]
        free_ns[which] = end_ns[node]
        done += 1
        for edge in range(first_after[node], first_after[node + 1]):
            target = targets[edge]
            ready_ns[target] = max(ready_ns[target], end_ns[node] + lag_ns[edge])
            waiting[target] -= 1
            if waiting[target] == 0:
                # Never before now: a negative lag cannot undo what was decided.
                size = _push(agenda, 0, size, max(now, ready_ns[target]), 0, target)
        if queued[which] > 0:
            size = _push(agenda, 0, size, end_ns[node], 1, which)
    return done


@compiled
def _push(heap: NDArray[np.int64], base: int, size: int, first: int, second: int, third: int) -> int:
    """Put a row into a binary heap whose root is row ``base``; returns its new size."""
    place = size
    while place > 0:
        parent = (place - 1) // 2
        if not _before(first, second, third, heap, base + parent):
            break
        _move(heap, base + parent, base + place)
        place = parent
    heap[base + place, 0], heap[base + place, 1], heap[base + place, 2] = first, second, third
    return size + 1


@compiled
def _pop(heap: NDArray[np.int64], base: int, size: int) -> int:
    """Take the root out of a heap; returns its new size."""
    size -= 1
    first, second, third = heap[base + size, 0], heap[base + size, 1], heap[base + size, 2]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= size:
            break
        if child + 1 < size and _before(
            heap[base + child + 1, 0], heap[base + child + 1, 1], heap[base + child + 1, 2], heap, base + child
        ):
            child += 1
        if _before(first, second, third, heap, base + child):
            break
        _move(heap, base + child, base + place)
        place = child
    if size > 0:
        heap[base + place, 0], heap[base + place, 1], heap[base + place, 2] = first, second, third
    return size


@compiled
def _move(heap: NDArray[np.int64], row: int, to: int) -> None:
    """Copy a row of a heap to another place."""
    for column in range(_COLUMNS):
        heap[to, column] = heap[row, column]


@compiled
def _before(first: int, second: int, third: int, heap: NDArray[np.int64], row: int) -> bool:
    """Whether a row comes before another one of a heap."""
    if first != heap[row, 0]:
        return bool(first < heap[row, 0])
    if second != heap[row, 1]:
        return bool(second < heap[row, 1])
    return bool(third < heap[row, 2])
