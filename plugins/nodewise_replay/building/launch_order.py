"""Device work in the order in which it was launched, by stream and by the thread that launched it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Ints
from nodewise_replay.building.view import View, numbers_in

__all__ = ["LaunchOrder", "Streams", "launched_by_thread", "streams"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LaunchOrder:
    """Work in the order of launch, where need be of begin. Positions are those of ``View.device``; -1 = none.

    ``ends_ns`` is when a piece of work and all before it had ended.
    """

    positions: Ints
    launched_ns: Ints
    ends_ns: Ints

    def only(self, mask: NDArray[np.bool_]) -> LaunchOrder:
        """Some of the work; ``mask`` (device events,)."""
        mine = mask[self.positions]
        return LaunchOrder(
            positions=self.positions[mine], launched_ns=self.launched_ns[mine], ends_ns=self.ends_ns[mine]
        )

    def before(self, time_ns: int) -> int:
        """The last that was launched before a time."""
        count = int(np.searchsorted(self.launched_ns, time_ns, "left"))
        return int(self.positions[count - 1]) if count else -1

    def after(self, time_ns: int) -> int:
        """The first that was launched at a time or later."""
        count = int(np.searchsorted(self.launched_ns, time_ns, "left"))
        return int(self.positions[count]) if count < len(self.positions) else -1

    def latest(self, launched_before_ns: int, ended_by_ns: int) -> int:
        """Of what was launched before a time, the last that had ended by another."""
        end_count = int(np.searchsorted(self.ends_ns, ended_by_ns, "right"))
        count = min(int(np.searchsorted(self.launched_ns, launched_before_ns, "left")), end_count)
        return int(self.positions[count - 1]) if count else -1


class Streams(dict[int, LaunchOrder]):
    """Launched work by lane; on a lane that is not there, none."""

    def __missing__(self, lane: int) -> LaunchOrder:
        """No work; it is not kept."""
        none = np.zeros(0, dtype=np.int64)
        return LaunchOrder(positions=none, launched_ns=none, ends_ns=none)


def streams(view: View) -> Streams:
    """Work by the stream that it ran on."""
    return _by_lane(view, np.arange(len(view.device)), view.lane[view.device])


def launched_by_thread(view: View) -> Streams:
    """Device work by the host thread that launched it, where the launch was recorded."""
    linked = np.flatnonzero(view.launch >= 0)
    return _by_lane(view, linked, view.lane[view.launch[linked]])


def _by_lane(view: View, positions: Ints, lane: NDArray[np.int32]) -> Streams:
    streams = Streams()
    for number in numbers_in(lane, len(view.trace.lanes)).tolist():
        mine = positions[lane == number]
        mine = mine[np.argsort(view.launched_ns[mine], kind="stable")]
        ends_ns = np.maximum.accumulate(view.end_ns[view.device[mine]])
        streams[number] = LaunchOrder(positions=mine, launched_ns=view.launched_ns[mine], ends_ns=ends_ns)
    return streams
