"""Streams that wait for other streams: as recorded, or made out from what the framework's calls mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, SyncKind
from nodewise_replay.building.call_names import COMMUNICATION_RECORD, EVENT_RECORD, LIBRARY_SPAN, STREAM_WAIT
from nodewise_replay.building.view import View, numbers_in

__all__ = ["DeviceOrder", "StreamWaits", "device_order", "stream_waits"]

ROUNDING_NS = 1_000
"""Recorders round times to a microsecond: an end may seem that much later than the begin that it allowed."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DeviceOrder:
    """Device work in the order in which it was launched, per stream. Positions are those of ``View.device``."""

    lanes: tuple[int, ...]
    positions: dict[int, Ints]
    launched_ns: dict[int, Ints]
    ends_ns: dict[int, Ints]

    def launched_before(self, lane: int, time_ns: int) -> int:
        """How many of a stream's were launched before a time."""
        return int(np.searchsorted(self.launched_ns[lane], time_ns, "left")) if lane in self.positions else 0

    def latest(self, lane: int, launched_before_ns: int, ended_by_ns: int) -> int:
        """Of a stream's work launched before a time, the last that had ended by another; -1 = none."""
        count = self.launched_before(lane, launched_before_ns)
        # Ends ascend along a stream.
        count = min(count, int(np.searchsorted(self.ends_ns[lane], ended_by_ns, "right"))) if count else 0
        return int(self.positions[lane][count - 1]) if count else -1


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
    positions, launched, ends = {}, {}, {}
    for number in numbers_in(lane, len(view.trace.lanes)):
        of_lane = np.flatnonzero(lane == number)
        of_lane = of_lane[np.argsort(view.launched_ns[of_lane], kind="stable")]
        positions[int(number)] = of_lane
        launched[int(number)] = view.launched_ns[of_lane]
        ends[int(number)] = np.maximum.accumulate(view.end_ns[view.device[of_lane]])
    return DeviceOrder(lanes=tuple(positions), positions=positions, launched_ns=launched, ends_ns=ends)


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Launches:
    """What a thread launched, by time; ``last`` and ``next`` are places of work that is no collective."""

    place: Ints
    time_ns: Ints
    last: Ints
    next: Ints
    next_collective: Ints

    @staticmethod
    def of(view: View, place: Ints, collective: NDArray[np.bool_]) -> _Launches:
        exchange = collective[place]
        index = np.arange(len(place))
        return _Launches(
            place=place,
            time_ns=view.launched_ns[place],
            last=np.maximum.accumulate(np.where(exchange, -1, index)),
            next=np.minimum.accumulate(np.where(exchange, len(place), index)[::-1])[::-1],
            next_collective=np.minimum.accumulate(np.where(exchange, index, len(place))[::-1])[::-1],
        )

    def around(self, time_ns: int) -> tuple[int, int, int]:
        """The last work before a time, the first after it, and the first collective after it; -1 = none."""
        at, count = int(np.searchsorted(self.time_ns, time_ns, "left")), len(self.place)
        last = int(self.last[at - 1]) if at else -1
        after, exchange = (int(self.next[at]), int(self.next_collective[at])) if at < count else (count, count)
        return (
            int(self.place[last]) if last >= 0 else -1,
            int(self.place[after]) if after < count else -1,
            int(self.place[exchange]) if exchange < count else -1,
        )


class _Inference:
    """The rules, which need the thread's launches before and after a wait."""

    def __init__(self, view: View, order: DeviceOrder, collective: NDArray[np.bool_]) -> None:
        self._view, self._order = view, order
        trace = view.trace
        self._begin = view.begin_ns[view.device]
        self._end = view.end_ns[view.device]
        self._stream = view.lane[view.device]
        self._of_thread = {
            lane: _Launches.of(view, launched, collective) for lane, launched in view.launched_by_thread().items()
        }
        self._in_record = enclosing(view, view.named(COMMUNICATION_RECORD))
        self._in_library = enclosing(view, view.named(LIBRARY_SPAN))
        self._calls = np.flatnonzero(
            view.named(STREAM_WAIT) & (trace.kind == EventKind.CALL) & (view.nesting.rest >= 0)
        )
        self._communication = set(numbers_in(self._stream[collective], len(trace.lanes)).tolist())

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
            before = self._order.launched_before(awaited, int(view.begin_ns[record]))
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
        before, after, exchange = launches.around(time)
        record = int(self._in_record[call])
        if record >= 0 and exchange >= 0 and self._view.launched_ns[exchange] < self._view.end_ns[record]:
            return self._before_collective(before, exchange, time)
        if after < 0:
            return []  # nothing that was recorded comes after
        waiter = after
        if record >= 0 or self._view.nesting.parent[call] < 0:
            return self._for_collective(waiter, time)
        return self._for_stream(waiter, time)

    def _before_collective(self, last: int, collective: int, time: int) -> list[tuple[int, int]] | None:
        """The communication's stream waits for the thread's current one: that of its last launch."""
        awaited = self._latest(int(self._stream[last]), time, collective) if last >= 0 else -1
        return [(collective, awaited)] if awaited >= 0 else []

    def _for_collective(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """Work waits for a collective: of those launched before, the last that had ended when the work began."""
        found = [self._latest(lane, time, waiter) for lane in self._communication if lane != self._stream[waiter]]
        found = [place for place in found if place >= 0]
        if not found:
            return self._unknown(waiter, time, self._communication)
        return [(waiter, max(found, key=lambda place: int(self._end[place])))]

    def _for_stream(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """A stream waits for all that was put on another: only one whose last work had ended can be it."""
        for communication in (False, True):
            best = -1
            for lane in self._order.lanes:
                if lane == self._stream[waiter] or (lane in self._communication) != communication:
                    continue
                count = self._order.launched_before(lane, time)
                if not count:
                    continue
                last = int(self._order.positions[lane][count - 1])
                if self._end[last] <= self._begin[waiter] + ROUNDING_NS and (
                    best < 0 or self._end[last] > self._end[best]
                ):
                    best = last
            if best >= 0:
                return [(waiter, best)]
        return self._unknown(waiter, time, self._order.lanes)

    def _unknown(self, waiter: int, time: int, lanes: Iterable[int]) -> list[tuple[int, int]] | None:
        """None where all streams that it may wait for contradict the trace; where one has no work, that may be it."""
        others = [lane for lane in lanes if lane != self._stream[waiter]]
        known = [self._order.launched_before(lane, time) > 0 for lane in others]
        return None if known and all(known) else []

    def _latest(self, lane: int, time: int, waiter: int) -> int:
        """Of a stream's work launched before a time, the last that had ended when the waiter began; -1 = none."""
        return self._order.latest(lane, time, int(self._begin[waiter]) + ROUNDING_NS)

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
