"""One pass over the graph: when every node begins and ends."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Floats, Ints
from nodewise_laws.object_code import object_code
from nodewise_replay.graph.graph import NO_NODE, Graph

__all__ = ["critical_path", "latest_ends", "sweep_times"]

Structure = tuple[NDArray[np.int32], Ints, NDArray[np.int32], NDArray[np.int32]]
"""Of a graph: ``order``, ``first_edge``, ``source``, ``step``."""


def sweep_times(
    graph: Graph, duration_ns: Ints | None = None, lag_ns: Ints | None = None, *, joined: bool = False
) -> tuple[Ints, Ints]:
    """Begin and end of every node: as early as the edges, the lags and the releases allow.

    Parameters
    ----------
    graph : Graph
    duration_ns : (nodes,) int64, optional
        Default: as recorded.
    lag_ns : (edges,) int64, optional
        Default: as recorded.
    joined : bool
        Whether a step begins where the replayed one before it ends. Otherwise every step begins as recorded, with what
        the steps before it left on the devices as recorded.

    Returns
    -------
    (begin_ns, end_ns)
    """
    begin, end = np.empty(len(graph), dtype=np.int64), np.empty(len(graph), dtype=np.int64)
    structure = (graph.order, graph.first_edge, graph.source, graph.step)
    lags = _column(graph.lag_ns if lag_ns is None else lag_ns)
    durations = _column(graph.duration_ns if duration_ns is None else duration_ns)
    _sweep(structure, lags, durations, graph.release_ns, graph.end_ns, int(joined), begin, end)
    return begin, end


def latest_ends(
    graph: Graph,
    order: NDArray[np.int32],
    group: NDArray[np.int32],
    duration_ns: Ints | Floats,
    lag_ns: Ints,
    release_ns: Ints,
    end_ns: Ints,
    latest_ns: Ints,
) -> None:
    """As ``sweep_times`` with ``joined``, for frequent calls: fills in the ends, and the latest end of each group.

    Parameters
    ----------
    order : (n,) int32
        The nodes to look at: of ``graph.order``, all that these wait for among them.
    group : (nodes,) int32
        Index into ``latest_ns``; -1 = in no group.
    duration_ns : (nodes,)
        Rounded to whole ones, and 0 at least. Those of more than 2^53 ns (104 days) lose their last digits.
    lag_ns : (edges,) int64
    release_ns : (nodes,) int64
    end_ns : (nodes,) int64
        Filled in; of other nodes it keeps what it holds.
    latest_ns : (groups,) int64
        Raised to the ends.
    """
    structure = (order, graph.first_edge, graph.source, group)
    durations = np.require(duration_ns, dtype=np.float64, requirements=["C", "W"])
    _sweep_ends(structure, _column(lag_ns), durations, release_ns, end_ns, latest_ns)


def critical_path(
    graph: Graph,
    begin_ns: Ints,
    end_ns: Ints,
    last: int,
    lag_ns: Ints | None = None,
    *,
    joined: bool = False,
) -> NDArray[np.int64]:
    """Nodes that determine when ``last`` ends, the first one first: each begins as soon as the one before lets it.

    Times are those of ``sweep_times`` with the same ``lag_ns`` and ``joined``.
    """
    path = np.empty(len(graph), dtype=np.int64)
    structure = (graph.order, graph.first_edge, graph.source, graph.step)
    lags = _column(graph.lag_ns if lag_ns is None else lag_ns)
    length = _trace_back(structure, lags, int(joined), begin_ns, end_ns, last, path)
    return path[:length][::-1]


def _column(values: Ints) -> Ints:
    """The same numbers in the one form that the compiled loops take."""
    return np.require(values, dtype=np.int64, requirements=["C", "W"])


@object_code
def _sweep(
    structure: Structure,
    lag_ns: Ints,
    duration_ns: Ints,
    release_ns: Ints,
    recorded_end_ns: Ints,
    joined: int,
    begin_ns: Ints,
    end_ns: Ints,
) -> None:
    """Fill in ``begin_ns`` and ``end_ns``; ``joined`` is 0 or 1."""
    order, first_edge, source, step = structure
    for position in range(len(order)):
        node = order[position]
        begin = release_ns[node]
        for edge in range(first_edge[node], first_edge[node + 1]):
            before = source[edge]
            earliest = lag_ns[edge] + (
                end_ns[before] if joined or step[before] == step[node] else recorded_end_ns[before]
            )
            begin = max(begin, earliest)
        begin_ns[node] = begin
        end_ns[node] = begin + duration_ns[node]


@object_code
def _sweep_ends(
    structure: Structure, lag_ns: Ints, duration_ns: Floats, release_ns: Ints, end_ns: Ints, latest_ns: Ints
) -> None:
    """Fill in ``end_ns`` and raise ``latest_ns``; the last of ``structure`` is the group of every node."""
    order, first_edge, source, group = structure
    for position in range(len(order)):
        # An unsigned index is not checked for counting from the end: this takes a third less time.
        node = np.uint32(order[position])
        begin = release_ns[node]
        for edge in range(first_edge[node], first_edge[node + np.uint32(1)]):
            begin = max(begin, lag_ns[np.uint64(edge)] + end_ns[np.uint32(source[np.uint64(edge)])])
        end = begin + int(np.rint(max(duration_ns[node], 0.0)))
        end_ns[node] = end
        if group[node] >= 0:
            latest_ns[group[node]] = max(latest_ns[group[node]], end)


@object_code
def _trace_back(
    structure: Structure, lag_ns: Ints, joined: int, begin_ns: Ints, end_ns: Ints, last: int, path: Ints
) -> int:
    """Fill in ``path`` from its end; returns its length. Of edges that bind equally the first one counts."""
    _, first_edge, source, step = structure
    node, length = last, 0
    while node >= 0:
        path[length] = node
        length += 1
        source_node = NO_NODE
        for edge in range(first_edge[node], first_edge[node + 1]):
            before = source[edge]
            if not joined and step[before] != step[node]:
                continue
            if end_ns[before] + lag_ns[edge] == begin_ns[node]:
                source_node = before
                break
        node = source_node
    return length
