"""Host threads cut into pieces: before every event, and the rest of it after its last child."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_laws.object_code import object_code

__all__ = ["ROUNDING_NS", "Nesting", "cut_host_threads"]

ROUNDING_NS = 1_000
"""Recorders round times to a microsecond: an end may seem that much later than the begin that it allowed."""


@dataclass(frozen=True, slots=True, eq=False)
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


def cut_host_threads(events: Ints, lane: NDArray[np.int32], begin_ns: Ints, duration_ns: Ints) -> Nesting:
    """Cut host threads at the boundaries of their events.

    Parameters
    ----------
    events : (host events,) int
        Events of host lanes, ascending: by begin, longer ones first.
    lane, begin_ns, duration_ns : (all events,)
        Columns of the trace. An event that outlasts the one around it is cut to it, or
        follows it where they overlap by no more than recorders round.
    """
    order = events[np.argsort(lane[events], kind="stable")]
    pieces = np.empty((4, 2 * len(order)), dtype=np.int64)
    of_event = np.full((3, len(begin_ns)), -1, dtype=np.int64)
    stack = np.empty((2, len(order) + 1), dtype=np.int64)
    lanes = np.ascontiguousarray(lane[order], dtype=np.int64)
    _cut(order, lanes, begin_ns[order], duration_ns[order], stack, pieces, of_event)
    return Nesting(order, *pieces, *of_event)


@object_code
def _cut(order: Ints, lane: Ints, begin_ns: Ints, duration_ns: Ints, stack: Ints, pieces: Ints, of_event: Ints) -> int:
    """Fill in the pieces; ``stack`` holds the open events and their ends. Returns how many there are.

    Rows of ``pieces`` and ``of_event`` are the columns of ``Nesting``.
    """
    parent, before, rest = of_event[0], of_event[1], of_event[2]
    piece, depth, now = 0, 0, 0
    for position in range(len(order)):
        event, begin = order[position], begin_ns[position]
        end = begin + duration_ns[position]
        new_lane = position == 0 or lane[position] != lane[position - 1]
        while depth > 0 and (
            new_lane
            or stack[1, depth - 1] <= begin
            # Recorders round: one that ends just after the next one begins is before it, not around it.
            or (stack[1, depth - 1] <= begin + ROUNDING_NS and end > stack[1, depth - 1])
        ):
            depth -= 1
            rest[stack[0, depth]] = piece
            now = _piece(pieces, piece, stack[0, depth], -1, now, stack[1, depth])
            piece += 1
        if new_lane:
            now = begin
        if depth > 0:
            parent[event] = stack[0, depth - 1]
            end = min(end, stack[1, depth - 1])
        before[event] = piece
        now = _piece(pieces, piece, parent[event], event, now, begin)
        piece += 1
        stack[0, depth], stack[1, depth] = event, end
        depth += 1
    while depth > 0:
        depth -= 1
        rest[stack[0, depth]] = piece
        now = _piece(pieces, piece, stack[0, depth], -1, now, stack[1, depth])
        piece += 1
    return piece


@object_code
def _piece(pieces: Ints, piece: int, owner: int, next_event: int, begin_ns: int, end_ns: int) -> int:
    """Fill in one piece; returns when it ends."""
    end_ns = max(begin_ns, end_ns)
    pieces[0, piece], pieces[1, piece], pieces[2, piece], pieces[3, piece] = owner, next_event, begin_ns, end_ns
    return end_ns
