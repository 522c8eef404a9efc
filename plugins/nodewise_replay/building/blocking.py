"""Calls in which the host waits for the device: as recorded, or made out from what the calls mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, SyncKind
from nodewise_replay.building.call_names import BLOCKING_COPY, DEVICE_SYNC, EVENT_SYNC, PAGEABLE_TO_HOST, STREAM_SYNC
from nodewise_replay.building.launch_order import Streams, launched_by_thread
from nodewise_replay.building.nesting import ROUNDING_NS
from nodewise_replay.building.view import View
from nodewise_replay.building.waits import Wait, Waits
from nodewise_replay.graph.graph import Origin

__all__ = ["host_syncs"]


_BLOCKS_NS: Final = 100_000
"""An asynchronous copy returns after about ten microseconds."""


def host_syncs(view: View, streams: Streams) -> Waits:
    """Make out what every blocking call waits for.

    No call is taken to wait for work that ended after it: what it means (all streams, the stream of the thread's last
    launch) is narrowed to what does not contradict the trace.
    """
    return _Inference(view, streams).all_syncs()


class _Inference:
    def __init__(self, view: View, streams: Streams) -> None:
        self._view, self._streams = view, streams
        self._end = view.end_ns[view.device]
        self._stream = view.lane[view.device]
        self._of_thread = launched_by_thread(view)
        self._found: list[Wait] = []
        self._missing = 0

    def all_syncs(self) -> Waits:
        view, recorded_waits = self._view, self._recorded_waits()
        is_call = (view.trace.kind == EventKind.CALL) & (view.nesting.rest >= 0)
        for call in np.flatnonzero(is_call & view.match_names(DEVICE_SYNC)).tolist():
            self._wait_for_lanes(call, self._streams)
        for call in np.flatnonzero(is_call & view.match_names(STREAM_SYNC)).tolist():
            lane, _ = recorded_waits.get(call, (-1, 0))
            if lane >= 0:
                self._wait_for_lanes(call, (lane,))
            else:
                self._wait_for_current(call)
        for call in np.flatnonzero(is_call & view.match_names(EVENT_SYNC)).tolist():
            lane, recorded_ns = recorded_waits.get(call, (-1, 0))
            if lane >= 0:
                last = self._streams[lane].latest(recorded_ns, int(view.end_ns[call]) + ROUNDING_NS)
                self._found.extend([(call, last, Origin.FOUND)] if last >= 0 else [])
            else:
                self._wait_for_event(call)
        self._copies(is_call)
        return Waits.of(self._found, self._missing)

    def _recorded_waits(self) -> dict[int, tuple[int, int]]:
        """By call, the stream that a recorded synchronisation waits for, and the time up to which its work counts."""
        trace, syncs = self._view.trace, self._view.trace.syncs
        rows = np.flatnonzero((syncs.kind == SyncKind.STREAM) | (syncs.kind == SyncKind.EVENT))
        if not len(rows):
            return {}
        calls = np.flatnonzero(trace.kind == EventKind.CALL)
        call_of = {int(trace.correlation[call]): int(call) for call in calls}
        lanes = np.where(syncs.awaited_lane[rows] >= 0, syncs.awaited_lane[rows], syncs.lane[rows])
        waits = {}
        for row, lane in zip(rows, lanes, strict=True):
            call = call_of.get(int(syncs.correlation[row]))
            if call is not None:
                event = call_of.get(int(syncs.awaited_correlation[row]), call)
                waits[call] = (int(lane), int(self._view.begin_ns[event]))
        return waits

    def _copies(self, is_call: NDArray[np.bool_]) -> None:
        """Copies that block inside the call: from and to memory that the device cannot reach by itself.

        By name, or because a call lasts until its copy is over that would else return at once.
        """
        view = self._view
        linked = np.flatnonzero(view.launch >= 0)
        call, work = view.launch[linked], view.device[linked]
        pageable = view.match_names(PAGEABLE_TO_HOST) & (view.trace.kind == EventKind.COPY)
        waited = (view.trace.kind[work] == EventKind.COPY) & (view.end_ns[call] - view.begin_ns[call] >= _BLOCKS_NS)
        waited &= self._end[linked] > view.begin_ns[call]
        blocks = is_call[call] & (view.match_names(BLOCKING_COPY)[call] | pageable[work] | waited)
        blocks &= self._end[linked] <= view.end_ns[call] + ROUNDING_NS
        pairs = zip(call[blocks].tolist(), linked[blocks].tolist(), strict=True)
        self._found.extend((*pair, Origin.FOUND) for pair in pairs)

    def _wait_for_lanes(self, call: int, lanes: Iterable[int]) -> None:
        """Everything launched onto the streams before the call."""
        begin, end = int(self._view.begin_ns[call]), int(self._view.end_ns[call])
        lasts = [last for last in (self._streams[lane].before(begin) for lane in lanes) if last >= 0]
        over = [last for last in lasts if self._end[last] <= end + ROUNDING_NS]
        self._found.extend((call, last, Origin.FOUND) for last in over)
        self._missing += len(over) < len(lasts)

    def _wait_for_current(self, call: int) -> None:
        """The stream of the thread's last launch; where that contradicts the trace, any whose last work had ended."""
        view = self._view
        begin, end = int(view.begin_ns[call]), int(view.end_ns[call])
        launched = self._of_thread[int(view.lane[call])].before(begin)
        last = self._streams[int(self._stream[launched])].before(begin) if launched >= 0 else -1
        if last >= 0 and self._end[last] <= end + ROUNDING_NS:
            self._found.append((call, last, Origin.INFERRED))
        else:
            self._wait_for_event(call)

    def _wait_for_event(self, call: int) -> None:
        """The last work, on any stream, that ended while the call blocked."""
        begin, end = int(self._view.begin_ns[call]), int(self._view.end_ns[call])
        lasts = [stream.latest(begin, end) for stream in self._streams.values()]
        over = [last for last in lasts if last >= 0 and self._end[last] > begin]
        if over:
            self._found.append((call, max(over, key=lambda last: int(self._end[last])), Origin.INFERRED))
