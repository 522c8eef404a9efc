"""Launches that block because the device's queue is full: the device's time, not the host's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Ints
from nodewise_replay.building.nesting import ROUNDING_NS
from nodewise_replay.building.view import View

__all__ = ["BlockedLaunches", "full_queues"]

_SLOW: Final = 4
"""A launch that takes more than this many times a quick one (the 20th part is quicker) may have waited."""
_LEAST_QUEUED: Final = 128
"""Fewer pieces of work than this fill no queue: CUDA holds 1,024 launches, other drivers hundreds."""
_WAKING_NS: Final = 50_000
"""How long a thread may take to go on once there is room."""


@dataclass(frozen=True, slots=True, eq=False)
class BlockedLaunches:
    """Launches that waited for room.

    ``call`` are their events, ``awaited`` the position in ``View.device`` of the work that made room for each, and
    ``usual_ns`` is what a launch takes that does not wait.
    """

    call: Ints
    awaited: Ints
    usual_ns: int = 0


def full_queues(view: View) -> BlockedLaunches:
    """Find launches that went on when a piece of work left the queue: the last that ended before the call did.

    Enough must have been queued meanwhile.
    """
    none = np.zeros(0, dtype=np.int64)
    calls = np.unique(view.launch[view.launch >= 0])
    if len(calls) <= _LEAST_QUEUED:
        return BlockedLaunches(none, none)
    took = view.end_ns[calls] - view.begin_ns[calls]
    usual = np.sort(took)[len(took) // 20]  # of a job whose queue is full, most launches wait
    calls = calls[took > _SLOW * usual]
    by_end = np.argsort(view.end_ns[view.device], kind="stable")
    ends = view.end_ns[view.device][by_end]
    end = view.end_ns[calls]
    over = np.searchsorted(ends, end + ROUNDING_NS, "right")
    queued = np.searchsorted(np.sort(view.launched_ns), view.begin_ns[calls], "left") - over
    awaited = by_end[np.maximum(over - 1, 0)]
    made_room = ends[np.maximum(over - 1, 0)]
    waited = (over > 0) & (queued >= _LEAST_QUEUED) & (view.launched_ns[awaited] < view.begin_ns[calls])
    waited &= (made_room > view.begin_ns[calls]) & (end - made_room <= _WAKING_NS)
    return BlockedLaunches(calls[waited], awaited[waited], int(usual))
