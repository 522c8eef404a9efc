"""Streams that wait for other streams: as recorded, or inferred from the meaning of the framework's calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import EventKind, Ints, SyncKind
from nodewise_replay.building.call_names import COMMUNICATION_RECORD, EVENT_RECORD, LIBRARY_SPAN, STREAM_WAIT
from nodewise_replay.building.launch_order import Streams, launched_by_thread
from nodewise_replay.building.nesting import ROUNDING_NS
from nodewise_replay.building.view import View, numbers_in
from nodewise_replay.graph.graph import Origin
from nodewise_replay.graph.wiring import NodeColumns

__all__ = ["Wait", "Waits", "find_contradictions", "stream_waits"]


Wait = tuple[int, int, Origin]
"""The waiter, the work that it waits for, and the origin of that knowledge."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Waits:
    """Pairs of waiter and work: a position in ``View.device``, or the event of a call; recorded pairs come first."""

    waiter: Ints
    awaited: Ints
    origin: Ints
    missing: int

    @staticmethod
    def of(waits: Iterable[Wait], missing: int) -> Waits:
        """Waits as columns; ``missing`` = number of waits whose work could not be inferred."""
        table = np.array(sorted(waits, key=lambda wait: wait[2]), dtype=np.int64).reshape(-1, 3)
        return Waits(waiter=table[:, 0], awaited=table[:, 1], origin=table[:, 2], missing=missing)


def stream_waits(view: View, streams: Streams, collective: NDArray[np.bool_]) -> Waits:
    """Infer the waiter and the work of every recorded call of a stream wait.

    Parameters
    ----------
    view : View
    streams : Streams
    collective : (device events,) bool
        Whether the work is a collective.
    """
    return _Inference(view, streams, collective).all_waits()


class _Inference:
    """The rules, which need the thread's launches before and after a wait."""

    def __init__(self, view: View, streams: Streams, collective: NDArray[np.bool_]) -> None:
        self._view, self._streams = view, streams
        self._begin, self._end = view.begin_ns[view.device], view.end_ns[view.device]
        self._stream = view.lane[view.device]
        by_thread = launched_by_thread(view).items()
        self._work = Streams({thread: one.only(~collective) for thread, one in by_thread})
        self._collectives = Streams({thread: one.only(collective) for thread, one in by_thread})
        self._in_record = enclosing(view, view.match_names(COMMUNICATION_RECORD))
        self._in_library = enclosing(view, view.match_names(LIBRARY_SPAN))
        self._calls = np.flatnonzero(
            view.match_names(STREAM_WAIT) & (view.trace.kind == EventKind.CALL) & (view.nesting.rest >= 0)
        ).tolist()
        self._communication = set(numbers_in(self._stream[collective], len(view.trace.lanes)).tolist())

    def all_waits(self) -> Waits:
        recorded_waits, missing = self._recorded_waits()
        waits: list[Wait] = []
        for call in self._calls:
            if call in recorded_waits:
                waits.extend((*wait, Origin.FOUND) for wait in recorded_waits[call])
            elif self._in_library[call] < 0:  # else the library's own order, on its own streams
                inferred_waits = self._infer_waits(call)
                missing += inferred_waits is None
                waits.extend((*wait, Origin.INFERRED) for wait in inferred_waits or ())
        return Waits.of(dict.fromkeys(waits), missing)

    def _recorded_waits(self) -> tuple[dict[int, list[tuple[int, int]]], int]:
        """Return recorded waits, by call, and the number of records that cannot be resolved."""
        syncs, trace, view = self._view.trace.syncs, self._view.trace, self._view
        records = np.flatnonzero(syncs.kind == SyncKind.STREAM_WAIT)
        if not len(records):
            return {}, 0
        recorded = np.flatnonzero(view.match_names(EVENT_RECORD) & (trace.kind == EventKind.CALL))
        call_of = {int(trace.correlation[call]): call for call in self._calls}
        record_of = {int(trace.correlation[call]): int(call) for call in recorded}
        waits: dict[int, list[tuple[int, int]]] = {}
        unresolved = 0
        for row in records:
            call, record = call_of.get(int(syncs.correlation[row])), record_of.get(int(syncs.awaited_correlation[row]))
            awaited_lane = int(syncs.awaited_lane[row])
            if call is None or record is None or awaited_lane < 0:
                unresolved += 1
                continue
            awaited = self._streams[awaited_lane].before(int(view.begin_ns[record]))
            waiter = self._streams[int(syncs.lane[row])].after(int(view.begin_ns[call]))
            waits[call] = [(waiter, awaited)] if awaited >= 0 and waiter >= 0 else []
        return waits, unresolved

    def _infer_waits(self, call: int) -> list[tuple[int, int]] | None:
        """Return the waits that a call causes; None where they cannot be inferred."""
        thread, time = int(self._view.lane[call]), int(self._view.begin_ns[call])
        work, collectives = self._work[thread], self._collectives[thread]
        if not len(work.positions) and not len(collectives.positions):
            return None
        record, exchange, waiter = int(self._in_record[call]), collectives.after(time), work.after(time)
        if record >= 0 and exchange >= 0 and self._view.launched_ns[exchange] < self._view.end_ns[record]:
            return self._before_collective(work.before(time), exchange, time)
        if waiter < 0:
            return []  # nothing that was recorded comes after
        if record >= 0 or self._view.nesting.parent[call] < 0:
            return self._for_collective(waiter, time)
        return self._for_stream(waiter, time)

    def _before_collective(self, last: int, collective: int, time: int) -> list[tuple[int, int]]:
        """The communication stream waits for the thread's current stream: that of its last launch."""
        awaited = self._latest(int(self._stream[last]), time, collective) if last >= 0 else -1
        return [(collective, awaited)] if awaited >= 0 else []

    def _for_collective(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """Work waits for a collective: of those launched before, for the last that had ended when the work began."""
        others = self._others(waiter, self._communication)
        places = [self._latest(lane, time, waiter) for lane in others]
        return self._last_of(waiter, places) or self._unknown(others, time)

    def _for_stream(self, waiter: int, time: int) -> list[tuple[int, int]] | None:
        """A stream waits for all work of another: only a stream whose last work had ended is possible."""
        others = self._others(waiter, self._streams)
        for communication in (False, True):
            lasts = [self._streams[one].before(time) for one in others if (one in self._communication) == communication]
            pairs = self._last_of(waiter, [one for one in lasts if self._had_ended(one, waiter)])
            if pairs:
                return pairs
        return self._unknown(others, time)

    def _others(self, waiter: int, lanes: Iterable[int]) -> list[int]:
        return [lane for lane in lanes if lane != self._stream[waiter]]

    def _last_of(self, waiter: int, places: list[int]) -> list[tuple[int, int]]:
        """Wait for the work that ends last; -1 = none."""
        valid_places = [place for place in places if place >= 0]
        return [(waiter, max(valid_places, key=lambda place: int(self._end[place])))] if valid_places else []

    def _unknown(self, others: list[int], time: int) -> list[tuple[int, int]] | None:
        """None where all possible streams contradict the trace; a stream without work is possible."""
        return None if others and all(self._streams[lane].before(time) >= 0 for lane in others) else []

    def _had_ended(self, work: int, waiter: int) -> bool:
        return bool(self._end[work] <= self._begin[waiter] + ROUNDING_NS)

    def _latest(self, lane: int, time: int, waiter: int) -> int:
        """Of a stream's work launched before a time, the last that had ended when the waiter began; -1 = none."""
        return self._streams[lane].latest(time, int(self._begin[waiter]) + ROUNDING_NS)


def enclosing(view: View, mask: NDArray[np.bool_]) -> Ints:
    """For every event, the outermost marked event around it, itself included; -1 = none."""
    parent = view.nesting.parent
    enclosers = np.where(mask, np.arange(len(parent)), -1)
    # Parents precede their children, level by level.
    depth = np.flatnonzero(parent >= 0)
    while len(depth):
        outer = enclosers[parent[depth]]
        better = (outer >= 0) & (outer != enclosers[depth])
        if not better.any():
            break
        enclosers[depth[better]] = outer[better]
    return enclosers


def find_contradictions(nodes: NodeColumns, awaited: Ints, waiter: Ints) -> NDArray[np.bool_]:
    """Waits that some step contradicts: there the same waiter begins before the end of the same work.

    The program is the same in every step. Work that ended in time in some steps only was not waited for.

    Parameters
    ----------
    awaited, waiter : (waits,) int
        Nodes, in pairs.
    """
    contradictions = np.zeros(len(waiter), dtype=np.bool_)
    if not len(waiter):
        return contradictions
    order = np.flatnonzero(np.isin(nodes.key, nodes.key[np.concatenate((awaited, waiter))]))
    order = order[np.lexsort((nodes.step[order], nodes.key[order]))]
    key, step = nodes.key[order], nodes.step[order].astype(np.int64)
    _, place = np.unique(key, return_inverse=True)
    steps = int(step.max(initial=0)) + 2
    spot = place * steps + step

    def same(node: Ints, by: Ints) -> Ints:
        """The node of the same place in a step so many later; -1 = none."""
        at = np.minimum(np.searchsorted(key, nodes.key[node]), len(key) - 1)
        wanted_step = nodes.step[node] + by
        keys = place[at] * steps + wanted_step
        row = np.minimum(np.searchsorted(spot, keys), len(spot) - 1)
        exists = (spot[row] == keys) & (wanted_step >= 0) & (wanted_step < steps - 1)
        return np.where(exists, order[row], -1)

    for by in range(2 - steps, steps - 1):
        source, target = same(awaited, np.full(len(awaited), by)), same(waiter, np.full(len(waiter), by))
        both = (source >= 0) & (target >= 0)
        contradictions |= both & (nodes.end_ns[source] > nodes.begin_ns[target] + ROUNDING_NS)
    return contradictions
