"""Overload of a lane: more is asked than can be done, as refusals tell, or a queue that grows; until it is over."""

from __future__ import annotations

import math
from typing import Final

from nodewise.rpc.callers import LATELY_S
from nodewise.rpc.pace import Growth, Pace

__all__ = ["LONGEST_DELAY_S", "Overload", "OverloadedError"]

LONGEST_DELAY_S: Final = 10.0
"""Longest delay that who is refused is told. Until it has passed some of them are still to come back, and a lane that
ran empty for a moment is overloaded as it was."""
_IDLE_SHARE: Final = 0.1
"""Of the last two seconds in which nobody was at work, that shows that a lane is not overloaded any more. At twice its
capacity one with a short queue is idle for less than a fiftieth."""
_STANDING_TURNS: Final = 4.0
"""Usual turns that may wait while a lane is overloaded: as many as are at work, which lets it never run dry."""
_STANDING_S: Final = 0.05
"""So long a queue may always be: with less a lane of quick calls runs dry while the loop does something else."""


class OverloadedError(Exception):
    """A call that is not taken.

    Parameters
    ----------
    wait_s : float
        Expected wait for a turn.
    waiting : int
        Calls that wait.
    """

    def __init__(self, wait_s: float, waiting: int) -> None:
        super().__init__()
        self.wait_s = wait_s
        self.waiting = waiting


class Overload:
    """Since when, and for how long: all times are of the monotonic clock, and the caller's.

    Parameters
    ----------
    pace : Pace
        Of the lane.
    now_s : float
        The lane is idle from then on.
    """

    __slots__ = ("_growth", "_idle_from_s", "_idle_s", "_idle_told_s", "_pace", "_until_s", "seen_at_s")

    def __init__(self, pace: Pace, now_s: float) -> None:
        self._pace = pace
        self._growth = Growth()
        self._until_s = self.seen_at_s = -math.inf
        self._idle_from_s = self._idle_told_s = now_s
        self._idle_s = 0.0

    @property
    def standing_s(self) -> float:
        """Wait that keeps a lane from running dry: no longer queue is kept meanwhile."""
        return max(_STANDING_S, _STANDING_TURNS * self._pace.turn_s)

    def lasts(self, now_s: float) -> bool:
        """Whether only a short queue is kept."""
        return now_s < self._until_s

    def seen(self, now_s: float) -> None:
        """A call was refused, or the queue grows as that of no burst does."""
        self.seen_at_s = now_s
        self._until_s = now_s + LONGEST_DELAY_S

    def look(self, now_s: float, wait_s: float) -> None:
        """One more call would wait so long."""
        if self._growth.seen(now_s, wait_s, self.standing_s):
            self.seen(now_s)

    def rests(self, now_s: float) -> None:
        """Nobody is at work from now on."""
        self._idle_from_s = now_s

    def rested(self, now_s: float) -> None:
        """Nobody was until now: often enough lately, and the lane is not overloaded any more."""
        if self._until_s <= now_s:
            return
        self._idle_s = self._idle_s * math.exp((self._idle_told_s - now_s) / LATELY_S) + now_s - self._idle_from_s
        self._idle_told_s = self._idle_from_s = now_s
        if self._idle_s > _IDLE_SHARE * LATELY_S:
            self._until_s = -math.inf
