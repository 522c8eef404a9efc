"""The part of the graph from one rank's trace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import EventKind, Ints, Trace
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.building.blocking import host_syncs
from nodewise_replay.building.contention import occupied_by
from nodewise_replay.building.host_collectives import host_collectives
from nodewise_replay.building.keys import device_keys, host_keys, mix
from nodewise_replay.building.lags import device_lags
from nodewise_replay.building.launch_order import streams
from nodewise_replay.building.queues import full_queues
from nodewise_replay.building.step_clocks import StepClock
from nodewise_replay.building.threads import handovers
from nodewise_replay.building.view import View, view_of
from nodewise_replay.building.waits import find_contradictions, stream_waits
from nodewise_replay.graph.graph import HELD_BY_NOTHING, EdgeKind, NodeKind, Origin
from nodewise_replay.graph.wiring import Edges, NodeColumns

__all__ = ["NODE_OF_EVENT", "RankPart", "rank_part"]

NODE_OF_EVENT: Final = np.array(
    [
        NodeKind.OPERATOR,
        NodeKind.GAP,
        NodeKind.CALL,
        NodeKind.KERNEL,
        NodeKind.COPY,
        NodeKind.FILL,
        NodeKind.OPERATOR,
    ],
    dtype=np.int8,
)
"""Kind of node by EventKind."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankPart:
    """Nodes and edges of one rank, numbered from 0: pieces of host time, device work, departures.

    Lanes and names of ``nodes`` are the trace's own; the name of host time outside all events is -1. ``row``,
    ``arrival`` and ``departure`` go together: the collectives whose span was recorded.
    """

    trace: Trace
    nodes: NodeColumns
    edges: Edges
    row: Ints
    arrival: Ints
    departure: Ints
    missing: dict[EdgeKind, int]
    main_lane: int
    warnings: tuple[str, ...] = ()


def rank_part(trace: Trace, clock: Clock, steps: StepClock) -> RankPart:
    """Build a rank's part; ``clock`` converts its times to the common clock, ``steps`` gives the time of each step."""
    return _Builder(view_of(trace, clock), steps).part()


class _Builder:
    def __init__(self, view: View, steps: StepClock) -> None:
        self._view = view
        self._pieces, self._work = len(view.nesting.owner), len(view.device)
        self._event_step = steps.step_of(view.begin_ns)
        self._edges: list[Edges] = []
        self._missing: dict[EdgeKind, int] = {}

    def part(self) -> RankPart:
        view = self._view
        self._nodes = self._pieces_and_work()
        row, arrival, departure = self._collectives()
        first_of_lane = self._first_of_lane = np.ones(self._pieces, dtype=np.bool_)
        of_lane = self._nodes.lane[: self._pieces]
        first_of_lane[1:] = of_lane[1:] != of_lane[:-1]
        following = np.flatnonzero(~first_of_lane)
        self._add(following - 1, following, EdgeKind.HOST)
        piece, awaited = handovers(view)
        self._wait(piece, awaited)
        self._add(awaited, piece, EdgeKind.HOST, Origin.INFERRED)
        self._device()
        self._queues()
        self._forward_backward()
        edges = Edges.none().followed_by(*self._edges)
        # The recording of a thread may begin with a known wait.
        holds = np.zeros(len(self._nodes), dtype=np.bool_)
        holds[edges.target] = True
        unheld = np.flatnonzero(first_of_lane & ~holds[: self._pieces])
        unanchored = self._pieces + np.flatnonzero(view.launch < 0)
        self._nodes.release_ns[unheld] = view.nesting.begin_ns[unheld]
        self._nodes.release_ns[unanchored] = self._nodes.begin_ns[unanchored]
        return RankPart(
            trace=view.trace,
            nodes=self._nodes,
            edges=edges,
            row=row,
            arrival=arrival,
            departure=departure,
            missing=self._missing,
            main_lane=view.main_lane,
        )

    def _add(self, source: Ints, target: Ints, kind: EdgeKind, origin: Origin | Ints = Origin.FOUND) -> None:
        """Add edges without lags."""
        self._edges.append(Edges.exact(source, target, 0, kind, origin))

    def _pieces_and_work(self) -> NodeColumns:
        """Pieces of host time, then work of the device."""
        view, nesting, event_step = self._view, self._view.nesting, self._event_step
        trace, device = view.trace, view.device
        owner, following = nesting.owner, nesting.next_event
        anchor = np.where(following >= 0, following, owner)
        # Work of the device belongs to the step that launched it.
        work_step = np.where(view.launch >= 0, event_step[np.maximum(view.launch, 0)], event_step[device])
        host_key = host_keys(view, event_step)
        owner_kind = np.where(owner >= 0, trace.kind[np.maximum(owner, 0)], -1)
        host_kind = np.full(self._pieces, int(NodeKind.OPERATOR), dtype=np.int8)
        host_kind[(owner_kind < 0) | (owner_kind == EventKind.ANNOTATION)] = NodeKind.GAP
        host_kind[owner_kind == EventKind.CALL] = NodeKind.CALL
        event = np.concatenate((owner, device))
        begin = np.concatenate((nesting.begin_ns, view.begin_ns[device]))
        end = np.concatenate((nesting.end_ns, view.end_ns[device]))
        piece_key = mix(host_key[anchor], (following >= 0).astype(np.int64))
        work_key = device_keys(view, host_key, work_step)
        return NodeColumns(
            kind=np.concatenate((host_kind, NODE_OF_EVENT[trace.kind[device]])),
            rank=np.full(len(event), trace.rank, dtype=np.int32),
            lane=np.concatenate((trace.lane[anchor], trace.lane[device])).astype(np.int32),
            step=np.concatenate((event_step[anchor], work_step)).astype(np.int32),
            event=event,
            name=np.where(event >= 0, trace.name[np.maximum(event, 0)], np.int32(-1)),
            duration_ns=end - begin,
            begin_ns=begin,
            end_ns=end,
            release_ns=np.full(len(event), HELD_BY_NOTHING, dtype=np.int64),
            key=mix(np.concatenate((piece_key, work_key)), trace.rank + 11),
        )

    def _collectives(self) -> tuple[Ints, Ints, Ints]:
        """Collectives on streams get a node of departure; those on host threads have their pieces.

        Returns rows of the trace's collectives, and the nodes of arrival and departure of each.
        """
        view, rows = self._view, self._view.trace.collectives
        event = np.asarray(rows.event)
        place = np.where(event >= 0, view.place[event], -1)
        on_stream = np.flatnonzero(place >= 0)
        self._host = host_collectives(view, self._event_step)
        work = self._pieces + place[on_stream]
        departure = len(self._nodes) + np.arange(len(on_stream))
        self._is_collective = np.zeros(self._work, dtype=np.bool_)
        self._is_collective[place[on_stream]] = True
        self._end_node = self._pieces + np.arange(self._work)
        self._end_node[place[on_stream]] = departure
        came = self._nodes.rows(work)
        left = NodeColumns.of(
            came,
            kind=np.full(len(work), int(NodeKind.DEPARTURE), dtype=np.int8),
            begin_ns=came.end_ns,
            duration_ns=np.zeros(len(work), dtype=np.int64),
            key=mix(came.key, 1),
        )
        nodes = self._nodes = self._nodes.followed_by(left)
        nodes.kind[work] = NodeKind.ARRIVAL
        nodes.duration_ns[work] = 0
        nodes.end_ns[work] = nodes.begin_ns[work]
        nodes.kind[self._host.departure] = NodeKind.DEPARTURE
        return (
            np.concatenate((on_stream, self._host.row)),
            np.concatenate((work, self._host.arrival)),
            np.concatenate((departure, self._host.departure)),
        )

    def _wait(self, piece: Ints, awaited: Ints) -> None:
        """Reduce pieces to the time after the last of their dependencies."""
        nodes = self._nodes
        over = np.where(self._first_of_lane, HELD_BY_NOTHING, self._view.nesting.begin_ns)
        np.maximum.at(over, piece, np.minimum(nodes.end_ns[awaited], nodes.end_ns[piece]))
        nodes.duration_ns[piece] = nodes.end_ns[piece] - over[piece]

    def _device(self) -> None:
        """Launches, streams, waits of streams and of the host."""
        view, nesting, nodes = self._view, self._view.nesting, self._nodes
        by_stream = streams(view)
        waits = stream_waits(view, by_stream, self._is_collective)
        work = self._pieces + np.arange(self._work)
        linked, unlinked = np.flatnonzero(view.launch >= 0), np.flatnonzero(view.launch < 0)
        same = np.flatnonzero(np.diff(view.lane[view.device]) == 0) + 1
        anchors = self._anchors(unlinked)
        anchored = anchors >= 0
        ends, waiters = self._end_node[waits.awaited], work[waits.waiter]
        real = waits.origin != Origin.INFERRED
        real[~real] = ~find_contradictions(nodes, ends[~real], waiters[~real])
        launches = (nesting.before[view.launch[linked]], work[linked])
        edges = Edges.exact(*launches, 0, EdgeKind.LAUNCH).followed_by(
            Edges.exact(anchors[anchored], work[unlinked[anchored]], 0, EdgeKind.LAUNCH, Origin.INFERRED),
            Edges.exact(self._end_node[same - 1], work[same], 0, EdgeKind.STREAM),
            Edges.exact(ends[real], waiters[real], 0, EdgeKind.STREAM_WAIT, waits.origin[real]),
        )

        def occupy(target: Ints, ready: Ints) -> Ints:
            return occupied_by(target, ready, nodes, work)

        self._edges.append(device_lags(edges, nodes.end_ns, nodes.begin_ns, nodes.kind, occupy))
        syncs = host_syncs(view, by_stream)
        self._missing |= {EdgeKind.LAUNCH: len(unlinked)} if len(unlinked) else {}
        self._missing |= {EdgeKind.STREAM_WAIT: waits.missing, EdgeKind.HOST_SYNC: syncs.missing}
        target, source = nesting.rest[syncs.waiter], self._end_node[syncs.awaited]
        self._add(source, target, EdgeKind.HOST_SYNC, syncs.origin)
        wait_begin_ns = nodes.begin_ns.copy()
        np.maximum.at(wait_begin_ns, target, np.minimum(nodes.end_ns[source], nodes.end_ns[target]))
        nodes.duration_ns[target] = nodes.end_ns[target] - wait_begin_ns[target]
        self._full_queues(syncs.waiter)

    def _full_queues(self, waiting: Ints) -> None:
        """Reduce launches that block on a full queue to the usual time; ``waiting`` calls block for another reason."""
        nodes, queues = self._nodes, full_queues(self._view)
        free = ~np.isin(queues.call, waiting)
        target, source = self._view.nesting.rest[queues.call[free]], self._end_node[queues.awaited[free]]
        nodes.duration_ns[target] = np.minimum(nodes.duration_ns[target], queues.usual_ns)
        lag = nodes.end_ns[target] - nodes.duration_ns[target] - nodes.end_ns[source]
        self._edges.append(Edges.exact(source, target, lag, EdgeKind.QUEUE, Origin.INFERRED))

    def _anchors(self, unlinked: Ints) -> Ints:
        """The main thread's last boundary before work whose launch was not recorded."""
        main = np.flatnonzero(self._nodes.lane[: self._pieces] == self._view.main_lane)
        begins = self._view.begin_ns[self._view.device[unlinked]]
        at = np.searchsorted(self._view.nesting.end_ns[main], begins, "right") - 1
        return np.where(at >= 0, main[np.maximum(at, 0)], -1) if len(main) else np.full(len(unlinked), -1)

    def _queues(self) -> None:
        """Collectives on threads of the host: queued by the call that issued them, waited for by other threads."""
        host = self._host
        arrival = host.queued
        nodes = self._nodes
        if len(arrival):
            # The thread's own order is among its pieces already: this adds which of the two was waited for.
            chained = arrival[arrival > 0]
            chained = chained[nodes.lane[chained - 1] == nodes.lane[chained]]
            issued = Edges.exact(host.issue, arrival, 0, EdgeKind.LAUNCH)
            edges = issued.followed_by(Edges.exact(chained - 1, chained, 0, EdgeKind.STREAM))
            nodes.duration_ns[arrival] = 0
            nodes.kind[arrival] = NodeKind.ARRIVAL
            nodes.begin_ns[arrival] = nodes.end_ns[arrival]
            self._edges.append(device_lags(edges, nodes.end_ns, nodes.end_ns, nodes.kind))
        self._add(host.awaited, host.waiting, EdgeKind.HOST_SYNC, Origin.INFERRED)
        self._wait(host.waiting, host.awaited)

    def _forward_backward(self) -> None:
        view, nesting, trace = self._view, self._view.nesting, self._view.trace
        numbered = np.flatnonzero((trace.sequence >= 0) & (nesting.rest >= 0) & (trace.kind == EventKind.OPERATOR))
        backward = numbered[trace.forward_lane[numbered] >= 0]
        forward = numbered[trace.forward_lane[numbered] < 0]
        if not len(backward) or not len(forward):
            return
        forward = forward[np.lexsort((forward, trace.sequence[forward]))]
        at = np.searchsorted(trace.sequence[forward], trace.sequence[backward], "right") - 1
        same = (at >= 0) & (trace.sequence[forward[np.maximum(at, 0)]] == trace.sequence[backward])
        source, backward = forward[at[same]], backward[same]
        in_order = (view.end_ns[source] <= view.begin_ns[backward]) & (view.lane[source] != view.lane[backward])
        source, backward = source[in_order], backward[in_order]
        self._add(nesting.rest[source], nesting.before[backward] + 1, EdgeKind.FORWARD_BACKWARD)
