"""The role of every node of the graph: compute, communication, loading, copies, the host's own work."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, Trace
from nodewise_diagnosis.functions import Calls
from nodewise_diagnosis.vocabulary import LAUNCH, LOADING, OPTIMIZER
from nodewise_replay.alignment.clocks import Clock, Clocks
from nodewise_replay.building.nesting import cut_host_threads
from nodewise_replay.graph.graph import EdgeKind, Graph, NodeKind, matching

__all__ = ["Role", "Roles", "roles_of"]

_FOREIGN_SHARE = 0.1
"""A span around an exchange is part of it if other operators take at most this share of it."""


_OTHERS = 0.5
"""A function without loading takes more than this share of time that is then not loading."""


class Role(IntEnum):
    """The role of a node."""

    HOST = 0
    """The host's own work: operators that launch, calls, time between events."""
    COMPUTE = 1
    """Kernels; where nothing runs on a device, operators."""
    COMMUNICATION = 2
    """Transfers, and what a host does as part of an exchange."""
    LOADING = 3
    """Getting the next batch."""
    COPY = 4
    """Copies and fills on a device."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Roles:
    """Columns by node.

    Attributes
    ----------
    role : (nodes,) int8
    exchange : (nodes,) int64
        The transfer node that a node of communication belongs to; -1 = none, or not known.
    optimizer : (nodes,) bool
        Whether it runs within an optimiser's step.
    main : (nodes,) bool
        Whether it is on the thread that goes from step to step.
    device : bool
        Whether anything runs on a device, recorded or not.
    launched_alone : int
        Calls that launch kernels in a job of which no work on devices was recorded.
    """

    role: NDArray[np.int8]
    exchange: Ints
    optimizer: NDArray[np.bool_]
    main: NDArray[np.bool_]
    device: bool
    launched_alone: int


def roles_of(graph: Graph, traces: Sequence[Trace], clocks: Clocks | None = None) -> Roles:
    """Determine the roles; ``traces`` by rank, ``clocks`` as the graph was built with."""
    kind = graph.kind
    has_device = bool(np.isin(kind, (NodeKind.KERNEL, NodeKind.COPY, NodeKind.FILL)).any())
    role = np.full(len(graph), Role.HOST, dtype=np.int8)
    role[kind == NodeKind.KERNEL] = Role.COMPUTE
    role[(kind == NodeKind.COPY) | (kind == NodeKind.FILL)] = Role.COPY
    launched_alone = 0 if has_device else int(((kind == NodeKind.CALL) & graph.match_names(LAUNCH)).sum())
    has_device |= launched_alone > 0
    if not has_device:
        role[kind == NodeKind.OPERATOR] = Role.COMPUTE
    exchange = np.full(len(graph), -1, dtype=np.int64)
    optimizer = np.zeros(len(graph), dtype=np.bool_)
    rows = graph.collectives
    by_rank = {trace.rank: trace for trace in traces}
    for rank in graph.ranks:
        trace = by_rank[rank]
        nodes = np.flatnonzero((graph.rank == rank) & (graph.event >= 0))
        spans = _Spans(trace)
        loading, of_row, optimizing = spans.inside(LOADING), spans.exchanges(), spans.inside(OPTIMIZER)
        event = graph.event[nodes]
        on_host = ~np.isin(kind[nodes], (NodeKind.KERNEL, NodeKind.COPY, NodeKind.FILL))
        role[nodes[loading[event] & on_host]] = Role.LOADING
        optimizer[nodes] = optimizing[event]
        of_rank = np.flatnonzero(rows.rank == rank)
        transfer_of = np.full(len(trace.collectives) + 1, -1, dtype=np.int64)
        transfer_of[rows.row[of_rank]] = rows.transfer[of_rank]
        transfer_nodes = np.where(of_row[event] >= 0, transfer_of[of_row[event]], -1)
        part = on_host & (transfer_nodes >= 0)
        role[nodes[part]], exchange[nodes[part]] = Role.COMMUNICATION, transfer_nodes[part]
    _relays(graph, role, exchange)
    role[kind == NodeKind.TRANSFER] = Role.COMMUNICATION
    transfers = np.flatnonzero(kind == NodeKind.TRANSFER)
    exchange[transfers] = transfers
    role[rows.departure], exchange[rows.departure] = Role.COMMUNICATION, rows.transfer
    role[rows.arrival] = np.where(graph.duration_ns[rows.arrival] == 0, Role.COMMUNICATION, role[rows.arrival])
    main = np.isin(graph.lane, graph.main_lanes)
    hands = clocks.clocks if clocks is not None else (Clock(),) * len(graph.ranks)
    for rank, clock in zip(graph.ranks, hands, strict=True):
        _first_gaps(graph, by_rank[rank], clock, role, main)
    return Roles(
        role=role, exchange=exchange, optimizer=optimizer, main=main, device=has_device, launched_alone=launched_alone
    )


class _Spans:
    """Events of a rank's host and the events around them."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._on_host = np.array([lane.is_host for lane in trace.lanes], dtype=np.bool_)[trace.lane]
        self._order = np.flatnonzero(self._on_host)
        self._parent = cut_host_threads(self._order, trace.lane, trace.begin_ns, trace.duration_ns).parent
        self._steps = np.isin(trace.begin_ns, trace.steps.begin_ns) & np.isin(trace.end_ns, trace.steps.end_ns)

    def inside(self, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
        """Events with such a name and all events within them."""
        has_name = matching(self._trace.names, pattern)[self._trace.name]
        return self._spread(np.where(has_name & ~self._steps, 1, -1)) >= 0

    def exchanges(self) -> Ints:
        """Row of ``collectives`` that an event on the caller's own thread is part of; -1 = none.

        The surroundings count as well: the outermost named span with hardly anything else in it.
        """
        trace, table = self._trace, self._trace.collectives
        mark = np.full(len(trace), -1, dtype=np.int64)
        rows = np.flatnonzero((np.asarray(table.event) >= 0) & self._on_host[np.maximum(table.event, 0)])
        if not len(rows):
            return mark
        own = np.zeros(len(trace), dtype=np.bool_)
        own[table.event[rows]] = True
        calls = table.call[rows]
        own[calls[calls >= 0]] = True
        own = self._spread(np.where(own, 1, -1)) >= 0
        operators = trace.kind == EventKind.OPERATOR
        sums = np.where(operators & ~own, trace.duration_ns, 0).astype(np.float64).tolist()
        parents, whole = self._parent.tolist(), operators.tolist()
        for event in self._order[::-1].tolist():  # children after their parents: sums go up
            outer = parents[event]
            if outer >= 0 and not whole[outer]:
                sums[outer] += sums[event]
        foreign = np.array(sums)
        span = (trace.kind == EventKind.ANNOTATION) & ~self._steps & (foreign <= _FOREIGN_SHARE * trace.duration_ns)
        for row in rows:
            event = int(table.event[row])
            outer = event
            while self._parent[outer] >= 0 and (own[self._parent[outer]] or span[self._parent[outer]]):
                outer = int(self._parent[outer])
            if mark[outer] < 0:
                mark[outer] = row
            mark[event] = row
        return self._spread(mark)

    def _spread(self, mark: Ints) -> Ints:
        """Give every event without a mark that of the event around it."""
        mark = mark.copy()
        inner = np.flatnonzero(self._parent >= 0)
        while True:
            children = inner[(mark[inner] < 0) & (mark[self._parent[inner]] >= 0)]
            if not len(children):
                return mark
            mark[children] = mark[self._parent[children]]


def _relays(graph: Graph, role: NDArray[np.int8], exchange: Ints) -> None:
    """Threads that continue after a collective of the host: their work is part of it."""
    rows = graph.collectives
    of_departure = np.full(len(graph), -1, dtype=np.int64)
    of_departure[rows.departure] = rows.transfer
    target = graph.target
    sync_edges = np.flatnonzero((graph.edge_kind == EdgeKind.HOST_SYNC) & (of_departure[graph.source] >= 0))
    sync_edges = sync_edges[
        (graph.kind[target[sync_edges]] <= NodeKind.CALL) & ~np.isin(graph.lane[target[sync_edges]], graph.main_lanes)
    ]
    departures = np.full(len(graph), -1, dtype=np.int64)
    departures[target[sync_edges]] = of_departure[graph.source[sync_edges]]
    for lane in np.unique(graph.lane[target[sync_edges]]):
        nodes = np.flatnonzero(graph.lane == lane)
        position = np.maximum.accumulate(np.where(departures[nodes] >= 0, np.arange(len(nodes)), -1))
        is_known = (position >= 0) & (graph.event[nodes] >= 0)
        exchange[nodes[is_known]] = departures[nodes[np.maximum(position, 0)]][is_known]
        role[nodes[is_known]] = Role.COMMUNICATION


def _first_gaps(graph: Graph, trace: Trace, clock: Clock, role: NDArray[np.int8], main: NDArray[np.bool_]) -> None:
    """Where a step shows no loading, its thread's time before the first operator counts as loading.

    Not where functions of other names take it.
    """
    of_rank = np.flatnonzero(main & (graph.rank == trace.rank))
    functions: dict[int, Calls] = {}
    for step in np.unique(graph.step[of_rank]):
        nodes = of_rank[graph.step[of_rank] == step]
        if (role[nodes] == Role.LOADING).any():
            continue
        work = np.flatnonzero(graph.kind[nodes] != NodeKind.GAP)
        first = nodes[: work[0]] if len(work) else nodes[:0]
        for node in first[role[first] == Role.HOST].tolist():
            lane = int(graph.lane[node])
            if lane not in functions:
                functions[lane] = Calls.functions(graph, trace, clock).of_lane(lane)
            own = functions[lane].own(int(graph.begin_ns[node]), int(graph.end_ns[node]))
            others = sum(took for name, took in own.items() if not LOADING.search(name))
            if others <= _OTHERS * (graph.end_ns[node] - graph.begin_ns[node]):
                role[node] = Role.LOADING
