"""A job as changed so far, and the means to change its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Trace
from nodewise_replay.changes.network import LATENCY_BYTES
from nodewise_replay.graph.graph import NO_NODE, CollectiveNodes, EdgeKind, Graph, NodeKind, Origin, StepBounds
from nodewise_replay.graph.wiring import Edges, NodeColumns, wire_graph

__all__ = ["GraphDraft", "Scenario", "is_piece"]

_WAITS = (int(EdgeKind.HOST_SYNC), int(EdgeKind.STREAM_WAIT))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scenario:
    """A graph, and what its nodes take and its edges demand now.

    Attributes
    ----------
    traces : mapping of rank to Trace
        Of the recording. An added rank has none; ``recorded_rank`` gives the rank that it copies.
    recorded_rank : mapping of int to int
        The recorded rank behind every rank of the graph.
    bytes : (nodes,) int64
        Of transfers, bytes of the exchange on each rank; -1 = not known, or no transfer.
    latency_bytes : float
        What a link would carry in the latency of an exchange, where the trace does not tell.
    rests_on : tuple of str
        What the changes so far were derived from, for people.
    """

    graph: Graph
    duration_ns: Ints
    lag_ns: Ints
    traces: Mapping[int, Trace]
    recorded_rank: Mapping[int, int]
    bytes: Ints
    latency_bytes: float = LATENCY_BYTES[1]
    rests_on: tuple[str, ...] = ()

    @staticmethod
    def from_recording(graph: Graph, traces: Mapping[int, Trace], duration_ns: Ints, lag_ns: Ints) -> Scenario:
        """Nothing changed yet."""
        rows = graph.collectives
        size = np.full(len(graph), -1, dtype=np.int64)
        for rank in graph.ranks:
            mine, table = rows.rank == rank, traces[rank].collectives
            own = np.maximum(table.in_bytes, table.out_bytes)
            np.maximum.at(size, rows.transfer[mine], own[rows.row[mine]])
        return Scenario(
            graph=graph,
            duration_ns=duration_ns,
            lag_ns=lag_ns,
            traces=traces,
            recorded_rank={rank: rank for rank in graph.ranks},
            bytes=size,
        )

    def with_durations(self, duration_ns: Ints, *rests_on: str) -> Scenario:
        """The same graph with other durations."""
        return replace(self, duration_ns=duration_ns, rests_on=(*self.rests_on, *rests_on))


class GraphDraft:
    """A graph while nodes and edges are added and taken away. Numbers of nodes hold until :meth:`scenario`."""

    def __init__(self, scenario: Scenario) -> None:
        graph = scenario.graph
        self._origin = scenario
        self._recorded = NodeColumns.of(graph, duration_ns=scenario.duration_ns.astype(np.int64))
        self._recorded_edges = Edges.of(graph, lag_ns=scenario.lag_ns)
        self._nodes, self._bytes = [self._recorded], [scenario.bytes]
        self._edges, self._rows = [self._recorded_edges], [graph.collectives]
        self._count = len(graph)
        self._dropped: list[Ints] = []
        self._heirs: list[tuple[Ints | int, Ints | int, Ints | int]] = []
        self._held_edges = np.ones(len(graph.source), dtype=np.bool_)

    def copy_nodes(self, nodes: Ints, sizes: Ints | None = None, **columns: Ints | int) -> Ints:
        """Append copies of nodes, with some columns (``sizes``: the bytes of transfers) replaced; their numbers."""
        copies = self._recorded.rows(nodes)
        self._nodes.append(replace(copies, **{name: np.full(len(nodes), own) for name, own in columns.items()}))
        self._bytes.append(self._origin.bytes[nodes] if sizes is None else sizes)
        self._count += len(nodes)
        return np.arange(self._count - len(nodes), self._count, dtype=np.int64)

    def add_edges(self, source: Ints, target: Ints, lag_ns: Ints | int, kind: EdgeKind | Ints) -> None:
        """Append edges that were not recorded."""
        self._edges.append(Edges.exact(source, target, lag_ns, kind, Origin.INFERRED))

    def copy_edges(self, edges: Ints, number_of: Ints) -> None:
        """Append copies of recorded edges whose ends are renumbered by ``number_of``."""
        self._edges.append(self._recorded_edges.rows(edges).renumber(number_of))

    def edges_into(self, nodes: Ints | int) -> Ints:
        """Recorded edges that lead to some nodes."""
        first = self._origin.graph.first_edge
        return np.concatenate([np.arange(first[node], first[node + 1]) for node in np.atleast_1d(nodes)])

    def lengthen(self, nodes: Ints, by_ns: Ints | int) -> None:
        """Add to the durations of recorded nodes, down to 0."""
        duration = self._recorded.duration_ns
        duration[nodes] = np.maximum(duration[nodes] + by_ns, 0)

    def drop_nodes(self, nodes: Ints) -> None:
        """Take nodes away with all their edges, but those out of a node that has an heir, and rows of collectives."""
        self._dropped.append(np.asarray(nodes, dtype=np.int64))

    def drop_edges(self, edges: Ints) -> None:
        """Take recorded edges away."""
        self._held_edges[edges] = False

    def inherit(self, nodes: Ints | int, heirs: Ints | int, order_heirs: Ints | int) -> None:
        """Let what waits for dropped nodes wait for their heirs, and what merely comes after them for others.

        NO_NODE in ``order_heirs``: nothing comes after it any more.
        """
        self._heirs.append((nodes, heirs, order_heirs))

    def add_rows(self, rows: CollectiveNodes) -> None:
        """Append rows of collectives."""
        self._rows.append(rows)

    def of_ranks(self, ranks: Sequence[int], note: str) -> Scenario:
        """The graph as drafted, without the other ranks."""
        graph = self._origin.graph
        self.drop_nodes(np.flatnonzero(~np.isin(graph.rank, ranks) & (graph.rank >= 0)))
        columns = [graph.ranks.index(rank) for rank in ranks]
        bounds = {name: getattr(graph.steps, name)[:, columns] for name in ("begin_ns", "end_ns", "last_node")}
        return self.scenario(note, steps=replace(graph.steps, **bounds), ranks=tuple(ranks), world_size=len(ranks))

    def scenario(
        self,
        *rests_on: str,
        recorded_rank: Mapping[int, int] | None = None,
        steps: StepBounds | None = None,
        **others: Any,
    ) -> Scenario:
        """The graph as drafted; ``steps`` in the draft's numbers, ``others`` of the graph's fields as they are."""
        origin, graph = self._origin, self._origin.graph
        is_kept = np.ones(self._count, dtype=np.bool_)
        for nodes in self._dropped:
            is_kept[nodes] = False
        heir = np.where(is_kept, np.arange(self._count), NO_NODE)
        order_heir = heir.copy()
        for lost_node, instead, in_order in self._heirs:
            heir[lost_node], order_heir[lost_node] = instead, in_order
        recorded, *added = self._edges
        edges = recorded.rows(self._held_edges).followed_by(*added)
        waits = np.isin(edges.edge_kind, _WAITS)
        edges = replace(edges, source=np.where(waits, heir[edges.source], order_heir[edges.source]))
        nodes_of_all = self._nodes[0].followed_by(*self._nodes[1:])
        columns, number = wire_graph(nodes_of_all, edges.rows(edges.source >= 0), is_kept)
        bounds = graph.steps if steps is None else steps
        last = np.where(bounds.last_node >= 0, number[np.maximum(bounds.last_node, 0)], NO_NODE)
        rows = self._rows[0].followed_by(*self._rows[1:]).among(is_kept, number)
        changed = replace(
            graph,
            **columns,
            **others,
            steps=replace(bounds, last_node=last),
            collectives=rows.rows(np.lexsort((rows.rank, rows.transfer))),
        )
        return replace(
            origin,
            graph=changed,
            duration_ns=changed.duration_ns,
            lag_ns=changed.lag_ns,
            recorded_rank=origin.recorded_rank if recorded_rank is None else recorded_rank,
            bytes=np.concatenate(self._bytes)[is_kept],
            rests_on=(*origin.rests_on, *rests_on),
        )


def is_piece(graph: Graph) -> NDArray[np.bool_]:
    """Nodes that are pieces of a host thread's time."""
    on_host = np.array([lane.is_host for _, lane in graph.lanes] + [False], dtype=np.bool_)
    mask: NDArray[np.bool_] = on_host[graph.lane] & (graph.kind != NodeKind.TRANSFER)
    return mask
