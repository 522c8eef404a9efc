"""Host threads cut into pieces: before every event, and the rest of it after its last child."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_laws.compiled import compiled

__all__ = ["Nesting", "nested"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Nesting:
    """Pieces of host time, lane after lane, in order: two per event. All columns by position in the order.

    Attributes
    ----------
    order : (events,) int
        Events of host lanes, by lane and begin.
    owner : (2 * events,) int
        Per piece, the event whose own time it is; -1 = outside all events.
    next_event : (2 * events,) int
        Per piece, the event that begins where it ends; -1 for the rest of an event after its last child.
    begin_ns, end_ns : (2 * events,) int
    parent, before, rest : (all events,) int
        Enclosing event; the piece that ends where the event begins; the piece that ends with the event. -1 = none.
    """

    order: Ints
    owner: Ints
    next_event: Ints
    begin_ns: Ints
    end_ns: Ints
    parent: Ints
    before: Ints
    rest: Ints


def nested(events: Ints, lane: NDArray[np.int32], begin_ns: Ints, duration_ns: Ints) -> Nesting:
    """Cut host threads at the boundaries of their events.

    Parameters
    ----------
    events : (host events,) int
        Events of host lanes, ascending: by begin, longer ones first.
    lane, begin_ns, duration_ns : (all events,)
        Columns of the trace. An event that outlasts the one around it is cut to it.
    """
    order = events[np.argsort(lane[events], kind="stable")]
    count, total = len(order), len(begin_ns)
    owner, next_event = np.empty(2 * count, dtype=np.int64), np.empty(2 * count, dtype=np.int64)
    piece_begin, piece_end = np.empty(2 * count, dtype=np.int64), np.empty(2 * count, dtype=np.int64)
    parent, before, rest = (np.full(total, -1, dtype=np.int64) for _ in range(3))
    stack = np.empty((2, count + 1), dtype=np.int64)
    _cut(
        order,
        np.ascontiguousarray(lane[order], dtype=np.int64),
        begin_ns[order],
        duration_ns[order],
        stack,
        owner,
        next_event,
        piece_begin,
        piece_end,
        parent,
        before,
        rest,
    )
    return Nesting(
        order=order,
        owner=owner,
        next_event=next_event,
        begin_ns=piece_begin,
        end_ns=piece_end,
        parent=parent,
        before=before,
        rest=rest,
    )


@compiled
def _cut(
    order: Ints,
    lane: Ints,
    begin_ns: Ints,
    duration_ns: Ints,
    stack: Ints,
    owner: Ints,
    next_event: Ints,
    piece_begin: Ints,
    piece_end: Ints,
    parent: Ints,
    before: Ints,
    rest: Ints,
) -> int:
    """Fill in the pieces; ``stack`` holds the open events and their ends. Returns how many there are."""
    piece, depth, now = 0, 0, 0
    for position in range(len(order)):
        event, begin = order[position], begin_ns[position]
        new_lane = position == 0 or lane[position] != lane[position - 1]
        while depth > 0 and (new_lane or stack[1, depth - 1] <= begin):
            depth -= 1
            owner[piece], next_event[piece] = stack[0, depth], -1
            piece_begin[piece], piece_end[piece] = now, max(now, stack[1, depth])
            now = piece_end[piece]
            rest[stack[0, depth]] = piece
            piece += 1
        if new_lane:
            now = begin
        end = begin + duration_ns[position]
        if depth > 0:
            parent[event] = stack[0, depth - 1]
            end = min(end, stack[1, depth - 1])
        owner[piece], next_event[piece] = parent[event], event
        piece_begin[piece], piece_end[piece] = now, max(now, begin)
        now = piece_end[piece]
        before[event] = piece
        piece += 1
        stack[0, depth], stack[1, depth] = event, end
        depth += 1
    while depth > 0:
        depth -= 1
        owner[piece], next_event[piece] = stack[0, depth], -1
        piece_begin[piece], piece_end[piece] = now, max(now, stack[1, depth])
        now = piece_end[piece]
        rest[stack[0, depth]] = piece
        piece += 1
    return piece
