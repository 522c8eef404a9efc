"""Streams that wait for other streams: as recorded, or made out from what the framework's calls mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, SyncKind
from nodewise_replay.graph.vocabulary import COMMUNICATION_RECORD, EVENT_RECORD, LIBRARY_SPAN, STREAM_WAIT
from nodewise_replay.graph.view import View

__all__ = ["DeviceOrder", "StreamWaits", "device_order", "stream_waits"]

ROUNDING_NS = 1_000
"""Recorders round times to a microsecond: an end may seem that much later than the begin that it allowed."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceOrder:
    """Device work in the order in which it was launched, per stream. Positions are those of ``View.device``."""

    lanes: tuple[int, ...]
    positions: dict[int, Ints]
    launched_ns: dict[int, Ints]

    def last_before(self, lane: int, time_ns: int) -> int:
        """How many of a stream's were launched before a time."""
        return int(np.searchsorted(self.launched_ns[lane], time_ns, "left")) if lane in self.positions else 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamWaits:
    """Which work waits for which other stream's: positions in ``View.device``."""

    waiter: Ints
    awaited: Ints
    found: NDArray[np.bool_]
    missing: int


def device_order(view: View) -> DeviceOrder:
    """Sort every stream's work by launch, where need be by begin."""
    lane = view.lane[view.device]
    positions, launched = {}, {}
    for number in np.unique(lane):
        of_lane = np.flatnonzero(lane == number)
        of_lane = of_lane[np.argsort(view.launched_ns[of_lane], kind="stable")]
        positions[int(number)] = of_lane
        launched[int(number)] = view.launched_ns[of_lane]
    return DeviceOrder(lanes=tuple(positions), positions=positions, launched_ns=launched)


def stream_waits(view: View, order: DeviceOrder, collective: NDArray[np.bool_]) -> StreamWaits:
    """Make out what every recorded call of a stream wait makes wait for what.

    Parameters
    ----------
    view : View
    order : DeviceOrder
    collective : (device events,) bool
        Which work is a collective's.
    """
    return _Inference(view, order, collective).all_waits()


class _Inference:
    """The rules, which need the thread's launches before and after a wait."""

    def __init__(self, view: View, order: DeviceOrder, collective: NDArray[np.bool_]) -> None:
        self._view, self._order, self._collective = view, order, collective
        trace = view.trace
        self._begin = view.begin_ns[view.device]
        self._end = view.end_ns[view.device]
        self._stream = view.lane[view.device]
        linked = np.flatnonzero(view.launch >= 0)
        linked = linked[np.argsort(view.launched_ns[linked], kind="stable")]
        thread = view.lane[view.launch[linked]]
        self._of_thread = {int(lane): linked[thread == lane] for lane in np.unique(thread)}
        self._in_record = enclosing(view, view.named(COMMUNICATION_RECORD))
        self._in_library = enclosing(view, view.named(LIBRARY_SPAN))
        self._calls = np.flatnonzero(
            view.named(STREAM_WAIT) & (trace.kind == EventKind.CALL) & (view.nesting.rest >= 0)
        )
        self._communication = {int(lane) for lane in np.unique(self._stream[collective])}
        self._waited = np.zeros(len(view.device), dtype=np.bool_)

    def all_waits(self) -> StreamWaits:
        stated, unresolved = self._stated()
        waits: list[tuple[int, int, bool]] = []
        missing = 0
        for call in self._calls:
            if int(call) in stated:
                waits.extend((waiter, awaited, True) for waiter, awaited in stated[int(call)])
                continue
            if self._in_library[call] >= 0:
                continue  # the library's own order, on its own streams
            found = self._inferred(int(call))
            if found is None:
                missing += 1
            waits.extend((waiter, awaited, False) for waiter, awaited in found or ())
        unique = list(dict.fromkeys(waits))
        return StreamWaits(
            waiter=np.array([wait[0] for wait in unique], dtype=np.int64),
            awaited=np.array([wait[1] for wait in unique], dtype=np.int64),
            found=np.array([wait[2] for wait in unique], dtype=np.bool_),
            missing=missing + unresolved,
        )

    def _stated(self) -> tuple[dict[int, list[tuple[int, int]]], int]:
        """Return waits that the trace states, by call, and how many of its records cannot be resolved."""
        syncs, trace, view = self._view.trace.syncs, self._view.trace, self._view
        records = np.flatnonzero(syncs.kind == SyncKind.STREAM_WAIT)
        if not len(records):
            return {}, 0
        recorded = np.flatnonzero(view.named(EVENT_RECORD) & (trace.kind == EventKind.CALL))
        call_of = {int(trace.correlation[call]): int(call) for call in self._calls}
        record_of = {int(trace.correlation[call]): int(call) for call in recorded}
        stated: dict[int, list[tuple[int, int]]] = {}
        unresolved = 0
        for row in records:
            call, record = call_of.get(int(syncs.correlation[row])), record_of.get(int(syncs.awaited_correlation[row]))
            waiter, awaited = int(syncs.lane[row]), int(syncs.awaited_lane[row])
            if call is None or record is None or awaited < 0:
                unresolved += 1
                continue
            before = self._order.last_before(awaited, int(view.begin_ns[record]))
            following = self._next_on(waiter, int(view.begin_ns[call]))
            stated[call] = (
                [(following, int(self._order.positions[awaited][before - 1]))] if before and following >= 0 else []
            )
        return stated, unresolved

    def _inferred(self, call: int) -> list[tuple[int, int]] | None:
        """Return what a call makes wait; None where that cannot be made out."""
        thread, time = int(self._view.lane[call]), int(self._view.begin_ns[call])
        launches = self._of_thread.get(thread)
        if launches is None:
            return None
        next_place = int(np.searchsorted(self._view.launched_ns[launches], time, "left"))
        record = int(self._in_record[call])
        if record >= 0:
            until = self._view.end_ns[record]
            within = launches[next_place:]
            within = within[self._view.launched_ns[within] < until]
            own = within[self._collective[within]]
            if len(own):
                return self._before_collective(launches[:next_place], int(own[0]), time)
        if next_place == len(launches):
            return []  # nothing that was recorded comes after
        following = launches[next_place:]
        ordinary = following[~self._collective[following]]
        if not len(ordinary):
            return []
        waiter = self._first_on_stream(int(ordinary[0]))
        if record >= 0 or self._view.nesting.parent[call] < 0:
            return self._for_collective(waiter, time)
        return self._for_stream(waiter, time)

    def _before_collective(self, earlier: Ints, collective: int, time: int) -> list[tuple[int, int]] | None:
        """The communication's stream waits for the thread's current one: that of its last launch."""
        ordinary = earlier[~self._collective[earlier]]
        if not len(ordinary):
            return []
        stream = int(self._stream[ordinary[-1]])
        awaited = self._latest(stream, time, collective)
        return [(collective, awaited)] if awaited >= 0 else []

    def _for_collective(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """Work waits for a collective: of those launched before, the last that had ended when the work began."""
        found = [self._latest(lane, time, waiter) for lane in self._communication if lane != self._stream[waiter]]
        found = [place for place in found if place >= 0]
        return [(waiter, max(found, key=lambda place: int(self._end[place])))] if found else None

    def _for_stream(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """A stream waits for all that was put on another: only one whose last work had ended can be it."""
        for communication in (False, True):
            best = -1
            for lane in self._order.lanes:
                if lane == self._stream[waiter] or (lane in self._communication) != communication:
                    continue
                count = self._order.last_before(lane, time)
                if not count:
                    continue
                last = int(self._order.positions[lane][count - 1])
                if self._end[last] <= self._begin[waiter] + ROUNDING_NS and (
                    best < 0 or self._end[last] > self._end[best]
                ):
                    best = last
            if best >= 0:
                return [(waiter, best)]
        return None

    def _latest(self, lane: int, time: int, waiter: int) -> int:
        """Of a stream's work launched before a time, the last that had ended when the waiter began; -1 = none."""
        count = self._order.last_before(lane, time)
        candidates = self._order.positions[lane][:count]
        ended = self._end[candidates] <= self._begin[waiter] + ROUNDING_NS
        found = np.flatnonzero(ended[::-1])
        return int(candidates[count - 1 - found[0]]) if len(found) else -1

    def _first_on_stream(self, place: int) -> int:
        return place

    def _next_on(self, lane: int, time: int) -> int:
        """The first work launched onto a stream after a time; -1 = none."""
        if lane not in self._order.positions:
            return -1
        count = int(np.searchsorted(self._order.launched_ns[lane], time, "left"))
        return int(self._order.positions[lane][count]) if count < len(self._order.positions[lane]) else -1


def enclosing(view: View, marked: NDArray[np.bool_]) -> Ints:
    """For every event, the outermost marked event around it, itself included; -1 = none."""
    parent = view.nesting.parent
    found = np.where(marked, np.arange(len(parent)), -1)
    # Parents precede their children, level by level.
    depth = np.flatnonzero(parent >= 0)
    while len(depth):
        outer = found[parent[depth]]
        better = (outer >= 0) & (outer != found[depth])
        if not better.any():
            break
        found[depth[better]] = outer[better]
    return found
