"""Nodes and edges while they are gathered, and how they are wired into a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.graph.columns import Columns
from nodewise_replay.graph.graph import EdgeKind, Origin
from nodewise_replay.graph.ordering import first_rows, topological_order

__all__ = ["Edges", "NodeColumns", "wire_graph"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NodeColumns(Columns):
    """As in ``Graph``."""

    kind: NDArray[np.int8]
    rank: NDArray[np.int32]
    lane: NDArray[np.int32]
    step: NDArray[np.int32]
    event: Ints
    name: NDArray[np.int32]
    duration_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    release_ns: Ints
    key: Ints


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Edges(Columns):
    """As in ``Graph``, in any order."""

    source: Ints
    target: Ints
    lag_ns: Ints
    explained_lag_ns: Ints
    edge_kind: NDArray[np.int8]
    origin: NDArray[np.int8]
    binding: NDArray[np.bool_]

    @staticmethod
    def exact(
        source: Ints, target: Ints, lag_ns: Ints | int, kind: EdgeKind | Ints, origin: Origin | Ints = Origin.FOUND
    ) -> Edges:
        """Edges with lags that are exact. Of lags, kinds and origins there is one each, or one for all."""
        count = len(source)
        lag = np.full(count, lag_ns, dtype=np.int64)
        return Edges(
            source=source,
            target=target,
            lag_ns=lag,
            explained_lag_ns=lag,
            edge_kind=np.full(count, kind, dtype=np.int8),
            origin=np.full(count, origin, dtype=np.int8),
            binding=np.ones(count, dtype=np.bool_),
        )

    @staticmethod
    def none() -> Edges:
        """No edges."""
        empty = np.zeros(0, dtype=np.int64)
        return Edges.exact(empty, empty, 0, EdgeKind.HOST)

    def shift(self, by: int) -> Edges:
        """The same edges between nodes whose numbers are higher by an offset."""
        return replace(self, source=self.source + by, target=self.target + by)

    def renumber(self, number: Ints) -> Edges:
        """The same edges between nodes of other numbers."""
        return replace(self, source=number[self.source], target=number[self.target])


def wire_graph(nodes: NodeColumns, edges: Edges, is_kept: NDArray[np.bool_]) -> tuple[dict[str, Any], Ints]:
    """Columns of the graph of some nodes and the edges among them, and the number that every node has in it.

    Raises
    ------
    NodewiseError
        CONTRADICTORY_FACTS if nodes wait for each other in a circle.
    """
    number = np.cumsum(is_kept) - 1
    inside = np.flatnonzero(is_kept[edges.source] & is_kept[edges.target])
    inside = inside[np.argsort(number[edges.target[inside]], kind="stable")]
    source = number[edges.source[inside]].astype(np.int32)
    first_edge = first_rows(number[edges.target[inside]], int(is_kept.sum()))
    # Before rows are copied: ordering takes as much memory for a while.
    order = topological_order(first_edge, source)
    columns = edges.rows(inside).by_name()
    del columns["target"]
    return {
        **nodes.rows(is_kept).by_name(),
        **columns,
        "source": source,
        "first_edge": first_edge,
        "order": order,
    }, number
