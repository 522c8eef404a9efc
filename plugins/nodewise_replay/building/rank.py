"""The part of the graph that one rank's trace gives."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, Trace
from nodewise_replay.alignment.clocks import Clock
from nodewise_replay.building.blocking import host_syncs
from nodewise_replay.building.contention import occupied_by
from nodewise_replay.building.host_collectives import host_collectives
from nodewise_replay.building.keys import device_keys, host_keys, mixed
from nodewise_replay.building.lags import device_lags
from nodewise_replay.building.step_clocks import StepClock
from nodewise_replay.building.threads import handovers
from nodewise_replay.building.view import View, viewed
from nodewise_replay.building.waits import device_order, stream_waits
from nodewise_replay.graph.edges import EdgeList
from nodewise_replay.graph.graph import HELD_BY_NOTHING, EdgeKind, NodeKind, Origin

__all__ = ["RankPart", "rank_part"]

_DEVICE_NODE = {
    int(EventKind.KERNEL): int(NodeKind.KERNEL),
    int(EventKind.COPY): int(NodeKind.COPY),
    int(EventKind.FILL): int(NodeKind.FILL),
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RankPart:
    """Nodes and edges of one rank, numbered from 0: pieces of host time, device work, departures.

    ``row``, ``arrival`` and ``departure`` go together: the collectives whose span was recorded.
    """

    trace: Trace
    kind: NDArray[np.int8]
    lane: NDArray[np.int32]
    step: NDArray[np.int32]
    event: Ints
    duration_ns: Ints
    begin_ns: Ints
    end_ns: Ints
    key: Ints
    release_ns: Ints
    edges: EdgeList
    row: Ints
    arrival: Ints
    departure: Ints
    missing: dict[EdgeKind, int]
    warnings: tuple[str, ...]
    main_lane: int


def rank_part(trace: Trace, clock: Clock, steps: StepClock) -> RankPart:
    """Build a rank's part; ``clock`` brings its times to the common ones, ``steps`` says which step is when."""
    return _Builder(viewed(trace, clock), steps).part()


class _Builder:
    def __init__(self, view: View, steps: StepClock) -> None:
        self._view, self._steps = view, steps
        self._pieces, self._work = len(view.nesting.owner), len(view.device)
        self._edges = EdgeList()
        self._missing: dict[EdgeKind, int] = {}

    def part(self) -> RankPart:
        view, nesting = self._view, self._view.nesting
        self._columns()
        self._collectives()
        first_of_lane = self._first_of_lane = np.ones(self._pieces, dtype=np.bool_)
        of_lane = self.lane[: self._pieces]
        first_of_lane[1:] = of_lane[1:] != of_lane[:-1]
        following = np.flatnonzero(~first_of_lane)
        self._edges.add(following - 1, following, 0, EdgeKind.HOST)
        self._handovers()
        self._device()
        self._queues()
        self._forward_backward()
        release = np.full(len(self.kind), HELD_BY_NOTHING, dtype=np.int64)
        # The recording of a thread may begin with a wait that is known.
        _, target, *_ = self._edges.columns()
        held = np.zeros(len(self.kind), dtype=np.bool_)
        held[target] = True
        unheld = np.flatnonzero(first_of_lane & ~held[: self._pieces])
        release[unheld] = nesting.begin_ns[unheld]
        unanchored = self._pieces + np.flatnonzero(view.launch < 0)
        release[unanchored] = self.begin[unanchored]
        return RankPart(
            trace=view.trace,
            kind=self.kind,
            lane=self.lane,
            step=self.step,
            event=self.event,
            duration_ns=self.duration,
            begin_ns=self.begin,
            end_ns=self.end,
            key=self.key,
            release_ns=release,
            edges=self._edges,
            row=self._row,
            arrival=self._arrival,
            departure=self._departure,
            missing=self._missing,
            warnings=(),
            main_lane=view.main_lane,
        )

    def _columns(self) -> None:
        view, nesting = self._view, self._view.nesting
        trace, device = view.trace, view.device
        owner, following = nesting.owner, nesting.next_event
        anchor = np.where(following >= 0, following, owner)
        event_step = self._steps.step_of(view.begin_ns)
        # Work of the device belongs to the step that launched it.
        work_step = np.where(view.launch >= 0, event_step[np.maximum(view.launch, 0)], event_step[device])
        host_key = host_keys(view, event_step)
        owner_kind = np.where(owner >= 0, trace.kind[np.maximum(owner, 0)], -1)
        host_kind = np.full(self._pieces, int(NodeKind.OPERATOR), dtype=np.int8)
        host_kind[(owner_kind < 0) | (owner_kind == EventKind.ANNOTATION)] = NodeKind.GAP
        host_kind[owner_kind == EventKind.CALL] = NodeKind.CALL
        work_kind = np.full(self._work, int(NodeKind.KERNEL), dtype=np.int8)
        for recorded, node in _DEVICE_NODE.items():
            work_kind[trace.kind[device] == recorded] = node
        rank_digest = trace.rank + 11
        self._event_step = event_step
        self.kind = np.concatenate((host_kind, work_kind))
        self.lane = np.concatenate((trace.lane[anchor], trace.lane[device])).astype(np.int32)
        self.step = np.concatenate((event_step[anchor], work_step)).astype(np.int32)
        self.event = np.concatenate((owner, device))
        self.begin = np.concatenate((nesting.begin_ns, view.begin_ns[device]))
        self.end = np.concatenate((nesting.end_ns, view.end_ns[device]))
        piece_key = mixed(host_key[anchor], (following >= 0).astype(np.int64))
        self.key = mixed(np.concatenate((piece_key, device_keys(view, host_key, work_step))), rank_digest)
        self.duration = self.end - self.begin

    def _collectives(self) -> None:
        """Collectives on streams get a node of departure; those on host threads have their pieces."""
        view, rows = self._view, self._view.trace.collectives
        event = np.asarray(rows.event)
        place = np.where(event >= 0, view.place[event], -1)
        on_stream = np.flatnonzero(place >= 0)
        self._host = host_collectives(view, self._event_step)
        work = self._pieces + place[on_stream]
        departure = len(self.kind) + np.arange(len(on_stream))
        self._is_collective = np.zeros(self._work, dtype=np.bool_)
        self._is_collective[place[on_stream]] = True
        self._end_node = self._pieces + np.arange(self._work)
        self._end_node[place[on_stream]] = departure
        self.kind = np.concatenate((self.kind, np.full(len(on_stream), int(NodeKind.DEPARTURE), dtype=np.int8)))
        self.lane = np.concatenate((self.lane, self.lane[work]))
        self.step = np.concatenate((self.step, self.step[work]))
        self.event = np.concatenate((self.event, self.event[work]))
        self.key = np.concatenate((self.key, mixed(self.key[work], 1)))
        self.begin = np.concatenate((self.begin, self.end[work]))
        self.duration = np.concatenate((self.duration, np.zeros(len(on_stream), dtype=np.int64)))
        self.end = np.concatenate((self.end, self.end[work]))
        self.kind[work] = NodeKind.ARRIVAL
        self.duration[work] = 0
        self.end[work] = self.begin[work]
        self.kind[self._host.departure] = NodeKind.DEPARTURE
        self._row = np.concatenate((on_stream, self._host.row))
        self._arrival = np.concatenate((work, self._host.arrival))
        self._departure = np.concatenate((departure, self._host.departure))

    def _handovers(self) -> None:
        """Waits of host threads for each other end with what they wait for."""
        found = handovers(self._view)
        self._wait(found.piece, found.awaited)
        self._edges.add(found.awaited, found.piece, 0, EdgeKind.HOST, Origin.INFERRED)

    def _wait(self, piece: Ints, awaited: Ints) -> None:
        """Leave of pieces only what passed after the last of what they wait for."""
        over = np.where(self._first_of_lane, HELD_BY_NOTHING, self._view.nesting.begin_ns)
        np.maximum.at(over, piece, np.minimum(self.end[awaited], self.end[piece]))
        self.duration[piece] = self.end[piece] - over[piece]

    def _device(self) -> None:
        """Launches, streams, waits of streams and of the host."""
        view, nesting = self._view, self._view.nesting
        order = device_order(view)
        waits = stream_waits(view, order, self._is_collective)
        linked = np.flatnonzero(view.launch >= 0)
        same = np.flatnonzero(np.diff(view.lane[view.device]) == 0) + 1
        lists = EdgeList()
        lists.add(nesting.before[view.launch[linked]], self._pieces + linked, 0, EdgeKind.LAUNCH)
        unlinked = np.flatnonzero(view.launch < 0)
        if len(unlinked):
            anchors = self._anchors(unlinked)
            held = anchors >= 0
            lists.add(anchors[held], self._pieces + unlinked[held], 0, EdgeKind.LAUNCH, Origin.INFERRED)
            self._missing[EdgeKind.LAUNCH] = len(unlinked)
        lists.add(self._end_node[same - 1], self._pieces + same, 0, EdgeKind.STREAM)
        for found in (True, False):
            of_origin = waits.found == found
            lists.add(
                self._end_node[waits.awaited[of_origin]],
                self._pieces + waits.waiter[of_origin],
                0,
                EdgeKind.STREAM_WAIT,
                Origin.FOUND if found else Origin.INFERRED,
            )
        self._missing[EdgeKind.STREAM_WAIT] = waits.missing
        work = self._pieces + np.arange(self._work)

        def occupied(target: Ints, ready: Ints) -> Ints:
            return occupied_by(target, ready, self.begin, self.end, self.lane, self.kind, work)

        self._edges.extend(device_lags(lists, self.end, self.begin, self.kind, occupied))
        syncs = host_syncs(view, order)
        self._missing[EdgeKind.HOST_SYNC] = syncs.missing
        target = nesting.rest[syncs.call]
        source = self._end_node[syncs.awaited]
        for found in (True, False):
            of_origin = syncs.found == found
            self._edges.add(
                source[of_origin],
                target[of_origin],
                0,
                EdgeKind.HOST_SYNC,
                Origin.FOUND if found else Origin.INFERRED,
            )
        waited = self.begin.copy()
        np.maximum.at(waited, target, np.minimum(self.end[source], self.end[target]))
        self.duration[target] = self.end[target] - waited[target]

    def _anchors(self, unlinked: Ints) -> Ints:
        """The main thread's last boundary before work whose launch was not recorded."""
        main = np.flatnonzero(self.lane[: self._pieces] == self._view.main_lane)
        begins = self._view.begin_ns[self._view.device[unlinked]]
        at = np.searchsorted(self._view.nesting.end_ns[main], begins, "right") - 1
        return np.where(at >= 0, main[np.maximum(at, 0)], -1) if len(main) else np.full(len(unlinked), -1)

    def _queues(self) -> None:
        """Collectives on threads of the host: queued by the call that issued them, waited for by other threads."""
        found = self._host
        arrival = found.queued
        if len(arrival):
            lists = EdgeList()
            lists.add(found.issue, arrival, 0, EdgeKind.LAUNCH)
            # The thread's own order is among its pieces already: here it tells which of the two was waited for.
            chained = arrival[arrival > 0]
            chained = chained[self.lane[chained - 1] == self.lane[chained]]
            lists.add(chained - 1, chained, 0, EdgeKind.STREAM)
            self.duration[arrival] = 0
            self.kind[arrival] = NodeKind.ARRIVAL
            self.begin[arrival] = self.end[arrival]
            self._edges.extend(device_lags(lists, self.end, self.end, self.kind))
        self._edges.add(found.awaited, found.waiting, 0, EdgeKind.HOST_SYNC, Origin.INFERRED)
        self._wait(found.waiting, found.awaited)

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
        told = (view.end_ns[source] <= view.begin_ns[backward]) & (view.lane[source] != view.lane[backward])
        source, backward = source[told], backward[told]
        self._edges.add(nesting.rest[source], nesting.before[backward] + 1, 0, EdgeKind.FORWARD_BACKWARD)
