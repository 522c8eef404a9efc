"""Host threads that work for each other: autograd's threads for the one that calls backward, and back."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import EventKind, Ints
from nodewise_replay.building.call_names import BACKWARD
from nodewise_replay.building.view import View, numbers_in

__all__ = ["backward_lanes", "handovers"]

_WORKING_SHARE: Final = 0.5
"""A silence is a wait for another thread if that one works for most of it."""

_SILENCE_NS: Final = 50_000
"""Shortest silence that is taken for a wait: several times what waking a thread takes (some 10 us)."""


def handovers(view: View) -> tuple[Ints, Ints]:
    """Find where the main thread waits for threads that run its backward operators, and where they wait for it.

    Such a thread waits wherever it has nothing to do and the main thread was at work meanwhile; it is woken by what the
    main thread did last. The main thread waits where it is silent while such a thread works most of the time; what that
    one did last wakes it.

    Returns
    -------
    (piece, awaited)
        The pieces of host time that are waits, and for each the other thread's piece: what is left once that is over
        is the waiting thread's own time.
    """
    nesting = view.nesting
    anchor = np.where(nesting.owner >= 0, nesting.owner, np.maximum(nesting.next_event, 0))
    of_lane = view.lane[anchor] if len(anchor) else np.zeros(0, dtype=np.int64)
    main = np.flatnonzero(of_lane == view.main_lane)
    pairs = [np.zeros((2, 0), dtype=np.int64)]
    for other in backward_lanes(view):
        theirs = np.flatnonzero(of_lane == other)
        if len(main) and len(theirs):
            pairs += [np.stack(waits) for waits in (_of_worker(view, main, theirs), _of_main(view, main, theirs))]
    piece, awaited = np.concatenate(pairs, axis=1)
    return piece, awaited


def backward_lanes(view: View) -> Ints:
    """Host threads other than the main one that run backward operators."""
    trace = view.trace
    backward = (trace.kind == EventKind.OPERATOR) & ((trace.forward_lane >= 0) | view.match_names(BACKWARD))
    lanes = numbers_in(view.lane[backward & (view.nesting.rest >= 0)], len(trace.lanes))
    others: Ints = lanes[lanes != view.main_lane]
    return others


def _of_worker(view: View, main: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Idle pieces of the other thread that end while the main thread is in a piece that began meanwhile."""
    nesting = view.nesting
    idle = theirs[nesting.owner[theirs] < 0]
    idle = idle[nesting.end_ns[idle] - nesting.begin_ns[idle] >= _SILENCE_NS]
    idle = np.union1d(idle, theirs[:1])  # the recording begins with a wait
    # The last main piece that ended while the other thread was idle.
    at = np.searchsorted(nesting.end_ns[main], nesting.end_ns[idle], "right") - 1
    woken_by = main[np.maximum(at, 0)]
    has_waker = (at >= 0) & ((nesting.end_ns[woken_by] > nesting.begin_ns[idle]) | (idle == theirs[0]))
    return idle[has_waker], woken_by[has_waker]


def _of_main(view: View, main: Ints, theirs: Ints) -> tuple[Ints, Ints]:
    """Silent pieces of the main thread in which the other one works most of the time."""
    nesting, kind = view.nesting, view.trace.kind
    owner = nesting.owner[main]
    is_call = (owner >= 0) & (kind[np.maximum(owner, 0)] == EventKind.CALL)
    silent = main[~is_call & (nesting.end_ns[main] - nesting.begin_ns[main] >= _SILENCE_NS)]
    begin, end = nesting.begin_ns[silent], nesting.end_ns[silent]
    work = theirs[nesting.owner[theirs] >= 0]
    work_end = nesting.end_ns[work]
    work_sums = np.concatenate(([0], np.cumsum(work_end - nesting.begin_ns[work])))
    last = np.searchsorted(work_end, end, "right")
    first = np.searchsorted(work_end, begin, "right")
    some = last > first
    silent, last, first, begin, end = silent[some], last[some], first[some], begin[some], end[some]
    busy = work_sums[last] - work_sums[first] >= _WORKING_SHARE * (end - begin)
    return silent[busy], work[last[busy] - 1]
