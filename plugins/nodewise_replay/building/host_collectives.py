"""Collectives on threads of the host: queued by the call that issues them, passed on, and waited for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import EventKind, Ints
from nodewise_replay.alignment.messages import is_receipt
from nodewise_replay.building.call_names import GRADIENTS_READ_BACK
from nodewise_replay.building.threads import backward_lanes
from nodewise_replay.building.view import View

__all__ = ["HostCollectives", "host_collectives"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class HostCollectives:
    """Pieces of host time of collectives that run on threads of the host.

    Attributes
    ----------
    row, arrival, departure : (collectives,) int
        Row of the trace's collectives; the piece that ends when the rank comes; the piece that ends when it leaves.
    queued, issue : (queued,) int
        Arrivals on another thread than the call's, and the pieces that end where the call begins.
    waiting, awaited : (waits,) int
        Pieces that wait, and the pieces that they wait for: a thread that goes on with what a collective brought, the
        main thread before it reads gradients back.
    """

    row: Ints
    arrival: Ints
    departure: Ints
    queued: Ints
    issue: Ints
    waiting: Ints
    awaited: Ints


def host_collectives(view: View, step: Ints) -> HostCollectives:
    """Find a rank's; ``step`` is the step of every event."""
    table, nesting = view.trace.collectives, view.nesting
    event = np.asarray(table.event)
    rows = np.flatnonzero((event >= 0) & (view.place[np.maximum(event, 0)] < 0)) if len(table) else np.zeros(0, "i8")
    rows = rows[nesting.rest[event[rows]] >= 0]
    event, call = event[rows], np.asarray(table.call)[rows]
    elsewhere = (call >= 0) & (view.lane[np.maximum(call, 0)] != view.lane[event])
    receipt = is_receipt(view.trace)[rows] & ~elsewhere
    outer = np.where((call >= 0) & ~elsewhere, call, event)
    arrival = np.where(receipt, nesting.rest[outer], nesting.before[event])
    departure = np.where(receipt, nesting.rest[outer] + 1, nesting.rest[event])
    # A receipt on which nothing follows on its thread leaves with its own span.
    lone = receipt & (departure >= len(nesting.owner))
    arrival, departure = np.where(lone, nesting.before[event], arrival), np.where(lone, nesting.rest[event], departure)
    waiting, awaited = _waits(view, step, event[elsewhere], call[elsewhere])
    return HostCollectives(
        row=rows,
        arrival=arrival,
        departure=departure,
        queued=nesting.before[event[elsewhere]],
        issue=nesting.before[call[elsewhere]],
        waiting=waiting,
        awaited=awaited,
    )


def _waits(view: View, step: Ints, events: Ints, calls: Ints) -> tuple[Ints, Ints]:
    """Pieces that wait for collectives of other threads, or for the threads that pass on their outcome."""
    nesting = view.nesting
    none = np.zeros(0, dtype=np.int64)
    if not len(events):
        return none, none
    events = events[np.argsort(view.end_ns[events], kind="stable")]
    waiting, awaited = [], []
    last = nesting.rest[events]
    for lane in _relaying_lanes(view, events):
        spans = nesting.order[(view.lane[nesting.order] == lane) & (nesting.parent[nesting.order] < 0)]
        relay = _releasing_collectives(view, step, events, spans)
        has_relay = relay >= 0
        waiting.append(nesting.before[spans[has_relay]])
        awaited.append(nesting.rest[events[relay[has_relay]]])
        last[relay[has_relay]] = nesting.rest[spans[has_relay]]
    readers = np.flatnonzero(view.match_names(GRADIENTS_READ_BACK) & (nesting.before >= 0))
    gaps = nesting.before[readers]
    gaps = gaps[np.argsort(nesting.end_ns[gaps], kind="stable")]
    # A bucket is waited for before the first gradient that was read back after it had come.
    at = np.searchsorted(nesting.end_ns[gaps], nesting.end_ns[last], "left")
    in_range = at < len(gaps)
    if in_range.any():
        waiting.append(_blocked_pieces(view, gaps[at[in_range]], nesting.end_ns[last[in_range]], nesting.rest[calls]))
        awaited.append(last[in_range])
    return np.concatenate([none, *waiting]), np.concatenate([none, *awaited])


def _blocked_pieces(view: View, reading: Ints, came_ns: Ints, issued: Ints) -> Ints:
    """The piece in which a thread was blocked until something came, at the latest the one before it is read.

    What is done between (views of the buffer are made) comes after the wait, so the piece during which it came is the
    one that waited: if it is no operator's, and everything had been issued by then.
    """
    nesting, pieces = view.nesting, reading.copy()
    owner = nesting.owner
    waits = (owner < 0) | (view.trace.kind[np.maximum(owner, 0)] == EventKind.ANNOTATION)
    for place, (piece, came) in enumerate(zip(reading.tolist(), came_ns.tolist(), strict=True)):
        first = piece
        # Pieces of a thread follow on each other.
        while first > 0 and nesting.end_ns[first - 1] >= came and nesting.end_ns[first - 1] == nesting.begin_ns[first]:
            first -= 1
        before = issued[issued <= piece]
        if waits[first] and (not len(before) or first > before.max()):
            pieces[place] = first
    return pieces


def _relaying_lanes(view: View, events: Ints) -> Ints:
    """Threads that are neither the main one, nor autograd's, nor the library's."""
    free = np.bincount(view.lane[view.nesting.order], minlength=len(view.trace.lanes)) > 0
    free[view.lane[events]] = False
    free[backward_lanes(view)] = False
    free[view.main_lane] = False
    return np.flatnonzero(free)


def _releasing_collectives(view: View, step: Ints, events: Ints, spans: Ints) -> Ints:
    """For every span of a thread, the collective whose end lets it begin, as an index into ``events``; -1 = none.

    In every step in which the thread has as many spans as there were collectives, and none begins before its
    collective ended, it takes them one by one: in the order in which they were issued, else in that of their ends.
    Otherwise a span follows the collective that ended while the thread had nothing to do.
    """
    relay = np.full(len(spans), -1, dtype=np.int64)
    for number in np.unique(step[spans]):
        mine, theirs = np.flatnonzero(step[spans] == number), np.flatnonzero(step[events] == number)
        begins = view.begin_ns[spans[mine]]
        if len(mine) == len(theirs):
            issued = theirs[np.argsort(view.begin_ns[events[theirs]], kind="stable")]
            in_turn = next((turn for turn in (issued, theirs) if (begins >= view.end_ns[events[turn]]).all()), None)
            if in_turn is not None:
                relay[mine] = in_turn
                continue
        at = np.searchsorted(view.end_ns[events], begins, "right") - 1
        idle_since = view.nesting.begin_ns[view.nesting.before[spans[mine]]]
        fits = (at >= 0) & (view.end_ns[events[np.maximum(at, 0)]] > idle_since)
        relay[mine[fits]] = at[fits]
    return relay
