"""Host threads that work for each other: one hands over, is silent while the other works, and goes on after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import EventKind, Ints
from nodewise_replay.graph.view import View

__all__ = ["Handovers", "handovers"]

WORKING_SHARE = 0.5
"""A silence is a wait for another thread if that one works for most of it."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Handovers:
    """Pieces of host time that are waits.

    Attributes
    ----------
    caller, worker : (handovers,) int
        The piece of the main thread that is silent, and the other thread's piece that ends where its work begins.
    last : (handovers,) int
        The other thread's last piece of work inside the silence.
    """

    caller: Ints
    worker: Ints
    last: Ints


def handovers(view: View) -> Handovers:
    """Find the silences of the main thread in which another thread works that was idle before and is afterwards."""
    nesting, lane = view.nesting, view.lane
    kind = view.trace.kind
    of_lane = lane[np.where(nesting.owner >= 0, nesting.owner, np.maximum(nesting.next_event, 0))]
    main = np.flatnonzero(of_lane == view.main_lane)
    rows: list[tuple[int, int, int]] = []
    if len(main):
        silent_begin, silent_end = nesting.begin_ns[main], nesting.end_ns[main]
        owner = nesting.owner[main]
        is_call = (owner >= 0) & (kind[np.maximum(owner, 0)] == EventKind.CALL)
        for other in np.unique(of_lane):
            if other == view.main_lane:
                continue
            pieces = np.flatnonzero(of_lane == other)
            idle = pieces[nesting.owner[pieces] < 0]
            woken = nesting.end_ns[idle]
            at = np.searchsorted(silent_begin, woken, "right") - 1
            # Zero-length pieces share their begin with the long one after them, which is the last of equal begins.
            inside = (at >= 0) & (woken <= silent_end[np.maximum(at, 0)]) & ~is_call[np.maximum(at, 0)]
            was_idle = nesting.begin_ns[idle] <= silent_begin[np.maximum(at, 0)]
            first = np.diff(idle, prepend=-1) >= 0
            was_idle |= idle == pieces[0]
            for place in np.flatnonzero(inside & was_idle & first):
                begin, end = int(silent_begin[at[place]]), int(silent_end[at[place]])
                after = int(np.searchsorted(nesting.end_ns[pieces], end, "right"))
                last = int(pieces[after - 1])
                following = int(pieces[after]) if after < len(pieces) else -1
                while last > idle[place] and nesting.owner[last] < 0:
                    last -= 1
                busy_until = int(nesting.end_ns[last])
                if last <= idle[place] or (following >= 0 and nesting.owner[following] >= 0):
                    continue  # it still works when the main thread goes on
                if busy_until - int(woken[place]) >= WORKING_SHARE * (end - begin):
                    rows.append((int(main[at[place]]), int(idle[place]), last))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Handovers(caller=table[:, 0], worker=table[:, 1], last=table[:, 2])
