"""Calls in which the host waits for the device: as recorded, or made out from what the calls mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, SyncKind
from nodewise_replay.building.call_names import BLOCKING_COPY, DEVICE_SYNC, EVENT_SYNC, PAGEABLE_TO_HOST, STREAM_SYNC
from nodewise_replay.building.view import View
from nodewise_replay.building.waits import ROUNDING_NS, DeviceOrder

__all__ = ["HostSyncs", "host_syncs"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HostSyncs:
    """Which call waits for which work: events of calls, positions in ``View.device``."""

    call: Ints
    awaited: Ints
    found: NDArray[np.bool_]
    missing: int


def host_syncs(view: View, order: DeviceOrder) -> HostSyncs:
    """Make out what every blocking call waits for.

    No call is taken to wait for work that ended after it: what it means (all streams, the stream of the thread's last
    launch) is narrowed to what does not contradict the trace.
    """
    return _Inference(view, order).all_syncs()


class _Inference:
    def __init__(self, view: View, order: DeviceOrder) -> None:
        self._view, self._order = view, order
        self._end = view.end_ns[view.device]
        self._stream = view.lane[view.device]
        self._of_thread = view.launched_by_thread()
        self._found: list[tuple[int, int, bool]] = []
        self._missing = 0

    def all_syncs(self) -> HostSyncs:
        view = self._view
        stated = self._stated()
        is_call = (view.trace.kind == EventKind.CALL) & (view.nesting.rest >= 0)
        for call in np.flatnonzero(is_call & view.named(DEVICE_SYNC)):
            self._wait_for_lanes(int(call), self._order.lanes, found=True)
        for call in np.flatnonzero(is_call & view.named(STREAM_SYNC)):
            lane, _ = stated.get(int(call), (-1, 0))
            if lane >= 0:
                self._wait_for_lanes(int(call), (lane,), found=True)
            else:
                self._wait_for_current(int(call))
        for call in np.flatnonzero(is_call & view.named(EVENT_SYNC)):
            lane, recorded_ns = stated.get(int(call), (-1, 0))
            if lane >= 0:
                last = self._order.latest(lane, recorded_ns, int(view.end_ns[call]) + ROUNDING_NS)
                self._found.extend([(int(call), last, True)] if last >= 0 else [])
            else:
                self._wait_for_event(int(call))
        self._copies(is_call)
        return HostSyncs(
            call=np.array([sync[0] for sync in self._found], dtype=np.int64),
            awaited=np.array([sync[1] for sync in self._found], dtype=np.int64),
            found=np.array([sync[2] for sync in self._found], dtype=np.bool_),
            missing=self._missing,
        )

    def _stated(self) -> dict[int, tuple[int, int]]:
        """The stream that a recorded synchronisation waits for, by call, and up to what was put on it by when."""
        trace, syncs = self._view.trace, self._view.trace.syncs
        rows = np.flatnonzero((syncs.kind == SyncKind.STREAM) | (syncs.kind == SyncKind.EVENT))
        if not len(rows):
            return {}
        calls = np.flatnonzero(trace.kind == EventKind.CALL)
        call_of = {int(trace.correlation[call]): int(call) for call in calls}
        lanes = np.where(syncs.awaited_lane[rows] >= 0, syncs.awaited_lane[rows], syncs.lane[rows])
        found = {}
        for row, lane in zip(rows, lanes, strict=True):
            call = call_of.get(int(syncs.correlation[row]))
            if call is not None:
                event = call_of.get(int(syncs.awaited_correlation[row]), call)
                found[call] = (int(lane), int(self._view.begin_ns[event]))
        return found

    def _copies(self, is_call: NDArray[np.bool_]) -> None:
        """Copies that block inside the call: from and to memory that the device cannot reach by itself."""
        view = self._view
        linked = np.flatnonzero(view.launch >= 0)
        call, work = view.launch[linked], view.device[linked]
        pageable = view.named(PAGEABLE_TO_HOST) & (view.trace.kind == EventKind.COPY)
        blocks = is_call[call] & (view.named(BLOCKING_COPY)[call] | pageable[work])
        blocks &= self._end[linked] <= view.end_ns[call] + ROUNDING_NS
        self._found.extend(
            (int(one), int(place), True) for one, place in zip(call[blocks], linked[blocks], strict=True)
        )

    def _wait_for_lanes(self, call: int, lanes: tuple[int, ...], *, found: bool) -> None:
        """Everything launched onto the streams before the call."""
        begin, end = int(self._view.begin_ns[call]), int(self._view.end_ns[call])
        contradicted = False
        for lane in lanes:
            count = self._order.launched_before(lane, begin)
            if not count:
                continue
            last = int(self._order.positions[lane][count - 1])
            if self._end[last] <= end + ROUNDING_NS:
                self._found.append((call, last, found))
            else:
                contradicted = True
        self._missing += contradicted

    def _wait_for_current(self, call: int) -> None:
        """The stream of the thread's last launch; where that contradicts the trace, any whose last work had ended."""
        view = self._view
        begin, end = int(view.begin_ns[call]), int(view.end_ns[call])
        launches = self._of_thread.get(int(view.lane[call]), np.zeros(0, dtype=np.int64))
        place = int(np.searchsorted(view.launched_ns[launches], begin, "left"))
        if place:
            lane = int(self._stream[launches[place - 1]])
            last = int(self._order.positions[lane][self._order.launched_before(lane, begin) - 1])
            if self._end[last] <= end + ROUNDING_NS:
                self._found.append((call, last, False))
                return
        self._wait_for_event(call)

    def _wait_for_event(self, call: int) -> None:
        """The last work, on any stream, that ended while the call blocked."""
        begin, end = int(self._view.begin_ns[call]), int(self._view.end_ns[call])
        best = -1
        for lane in self._order.lanes:
            last = self._order.latest(lane, begin, end)
            if last >= 0 and self._end[last] > begin and (best < 0 or self._end[last] > self._end[best]):
                best = last
        if best >= 0:
            self._found.append((call, best, False))
