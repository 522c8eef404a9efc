"""A job as changed so far, and the means to change its graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints, Lane, Trace
from nodewise_replay.changes.network import LATENCY_BYTES
from nodewise_replay.graph.graph import NO_NODE, CollectiveNodes, EdgeKind, Graph, NodeKind, Origin, StepBounds
from nodewise_replay.graph.ordering import first_rows, ordered

__all__ = ["GraphDraft", "Scenario", "is_piece"]

_WAITS = (int(EdgeKind.HOST_SYNC), int(EdgeKind.STREAM_WAIT))
_NODE_COLUMNS = ("kind", "rank", "lane", "step", "event", "name", "begin_ns", "end_ns", "release_ns", "key")
_EDGE_COLUMNS = ("source", "lag_ns", "explained_lag_ns", "edge_kind", "origin", "binding")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scenario:
    """A graph, and what its nodes take and its edges demand now.

    Attributes
    ----------
    traces : mapping of rank to Trace
        Of the recording. A rank that was added has none; ``recorded_rank`` says whose copy it is.
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
    def recorded(graph: Graph, traces: Mapping[int, Trace], duration_ns: Ints, lag_ns: Ints) -> Scenario:
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

    def timed(self, duration_ns: Ints, *rests_on: str) -> Scenario:
        """The same graph with other durations."""
        return replace(self, duration_ns=duration_ns, rests_on=(*self.rests_on, *rests_on))


class GraphDraft:
    """A graph while nodes and edges are added and taken away. Numbers of nodes hold until :meth:`scenario`."""

    def __init__(self, scenario: Scenario) -> None:
        graph = scenario.graph
        self._origin = scenario
        self._graph = graph
        self._nodes: dict[str, list[NDArray[np.int64]]] = {
            name: [np.asarray(getattr(graph, name), dtype=np.int64)] for name in _NODE_COLUMNS
        }
        self._nodes["duration"] = [np.asarray(scenario.duration_ns, dtype=np.int64)]
        self._nodes["bytes"] = [scenario.bytes]
        self._edges: dict[str, list[NDArray[np.int64]]] = {
            name: [np.asarray(getattr(graph, name), dtype=np.int64)] for name in _EDGE_COLUMNS
        }
        self._edges["lag_ns"] = [np.asarray(scenario.lag_ns, dtype=np.int64)]
        self._edges["target"] = [graph.target]
        self._count, self._edge_count = len(graph), len(graph.source)
        self._dropped: list[Ints] = []
        self._dropped_edges: list[Ints] = []
        self._heirs: dict[int, tuple[int, int]] = {}
        self._rows: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
        self._dropped_rows = np.zeros(len(graph.collectives), dtype=np.bool_)

    def copy_nodes(self, nodes: Ints, **columns: Ints | int) -> Ints:
        """Append copies of nodes, with some columns (or ``duration``, ``bytes``) replaced; returns their numbers."""
        for name, parts in self._nodes.items():
            own = columns.get(name)
            first = parts[0][nodes] if own is None else np.broadcast_to(np.asarray(own, dtype=np.int64), (len(nodes),))
            parts.append(first)
        numbers = self._count + np.arange(len(nodes), dtype=np.int64)
        self._count += len(nodes)
        return numbers

    def add_edges(
        self, source: Ints, target: Ints, lag_ns: Ints | int, kind: EdgeKind | Ints, *, inferred: bool = True
    ) -> None:
        """Append edges."""
        count = len(source)

        def column(values: Ints | int) -> NDArray[np.int64]:
            return np.broadcast_to(np.asarray(values, dtype=np.int64), (count,))

        origin = int(Origin.INFERRED if inferred else Origin.FOUND)
        values = {
            "source": column(source),
            "target": column(target),
            "lag_ns": column(lag_ns),
            "explained_lag_ns": column(lag_ns),
            "edge_kind": column(np.asarray(kind, dtype=np.int64)),
            "origin": column(origin),
            "binding": column(1),
        }
        for name, parts in self._edges.items():
            parts.append(values[name])

    def copy_edges(self, edges: Ints, number_of: Ints) -> None:
        """Append copies of edges whose ends are renumbered by ``number_of``."""
        for name, parts in self._edges.items():
            values = parts[0][edges]
            parts.append(number_of[values] if name in ("source", "target") else values)

    def lengthen(self, node: int, by_ns: int) -> None:
        """Add to the duration of a recorded node, down to 0."""
        own = self._nodes["duration"]
        if own[0] is self._origin.duration_ns:
            own[0] = own[0].copy()
        own[0][node] = max(int(own[0][node]) + by_ns, 0)

    def drop_nodes(self, nodes: Ints) -> None:
        """Take nodes away with all their edges, but those out of a node that has an heir."""
        self._dropped.append(np.asarray(nodes, dtype=np.int64))

    def drop_edges(self, edges: Ints) -> None:
        """Take recorded edges away."""
        self._dropped_edges.append(np.asarray(edges, dtype=np.int64))

    def inherit(self, node: int, heir: int, order_heir: int = NO_NODE) -> None:
        """Let whatever waits for a dropped node wait for ``heir``, and what merely comes after it for ``order_heir``.

        NO_NODE for ``order_heir``: nothing comes after it any more.
        """
        self._heirs[node] = (heir, order_heir)

    def add_rows(self, transfer: Ints, rank: Ints, arrival: Ints, departure: Ints, row: Ints) -> None:
        """Append rows of collectives."""
        self._rows.append((transfer, rank, arrival, departure, row))

    def drop_rows(self, rows: NDArray[np.bool_]) -> None:
        """Take rows of the recorded collectives away."""
        self._dropped_rows |= rows

    def scenario(
        self,
        *,
        ranks: Sequence[int] | None = None,
        world_size: int | None = None,
        lanes: tuple[tuple[int, Lane], ...] | None = None,
        steps: StepBounds | None = None,
        recorded_rank: Mapping[int, int] | None = None,
        rests_on: tuple[str, ...] = (),
    ) -> Scenario:
        """The graph as drafted; ``steps`` in the draft's numbers."""
        graph = self._graph
        columns = {name: np.concatenate(parts) for name, parts in self._nodes.items()}
        edges = {name: np.concatenate(parts) for name, parts in self._edges.items()}
        kept = np.ones(self._count, dtype=np.bool_)
        for nodes in self._dropped:
            kept[nodes] = False
        heir = np.where(kept, np.arange(self._count), NO_NODE)
        order_heir = heir.copy()
        for node, (other, in_order) in self._heirs.items():
            heir[node], order_heir[node] = other, in_order
        held = np.ones(len(edges["source"]), dtype=np.bool_)
        for lost in self._dropped_edges:
            held[lost] = False
        waits = np.isin(edges["edge_kind"], _WAITS)
        edges["source"] = np.where(waits, heir[edges["source"]], order_heir[edges["source"]])
        held &= (edges["source"] >= 0) & kept[edges["target"]]
        number = np.cumsum(kept) - 1
        target = number[edges["target"][held]]
        by_target = np.argsort(target, kind="stable")
        edges = {name: values[held][by_target] for name, values in edges.items()}
        first_edge = first_rows(target, int(kept.sum()))
        edges["source"] = number[edges["source"]].astype(np.int32)
        columns = {name: values[kept] for name, values in columns.items()}

        def typed(values: Mapping[str, NDArray[np.int64]], names: Sequence[str]) -> dict[str, Any]:
            """Columns as the graph has them."""
            return {name: values[name].astype(getattr(graph, name).dtype, copy=False) for name in names}

        bounds = graph.steps if steps is None else steps
        last = np.where(bounds.last_node >= 0, number[np.maximum(bounds.last_node, 0)], NO_NODE)
        changed = replace(
            graph,
            **typed(columns, _NODE_COLUMNS),
            **typed(edges, _EDGE_COLUMNS),
            duration_ns=columns["duration"],
            first_edge=first_edge,
            order=ordered(first_edge, edges["source"]),
            lanes=graph.lanes if lanes is None else lanes,
            ranks=graph.ranks if ranks is None else tuple(ranks),
            world_size=graph.world_size if world_size is None else world_size,
            steps=replace(bounds, last_node=last),
            collectives=self._collectives(number),
        )
        origin = self._origin
        return replace(
            origin,
            graph=changed,
            duration_ns=changed.duration_ns,
            lag_ns=changed.lag_ns,
            recorded_rank=origin.recorded_rank if recorded_rank is None else recorded_rank,
            bytes=columns["bytes"],
            rests_on=(*origin.rests_on, *rests_on),
        )

    def _collectives(self, number: Ints) -> CollectiveNodes:
        """Rows by transfer node, then by rank."""
        rows, held = self._graph.collectives, ~self._dropped_rows
        parts = [(rows.transfer[held], rows.rank[held], rows.arrival[held], rows.departure[held], rows.row[held])]
        parts += self._rows
        transfer, rank, arrival, departure, row = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.lexsort((rank, transfer))
        return CollectiveNodes(
            transfer=number[transfer[order]],
            rank=rank[order],
            arrival=number[arrival[order]],
            departure=number[departure[order]],
            row=row[order],
        )


def is_piece(graph: Graph) -> NDArray[np.bool_]:
    """Nodes that are pieces of a host thread's time."""
    on_host = np.array([lane.is_host for _, lane in graph.lanes] + [False], dtype=np.bool_)
    found: NDArray[np.bool_] = on_host[graph.lane] & (graph.kind != NodeKind.TRANSFER)
    return found
