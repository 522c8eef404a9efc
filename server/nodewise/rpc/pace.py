"""How fast a lane is: what calls should cost, against the time between their turns."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Growth", "Pace"]

PACE_MEMORY_S: Final = 1.0
"""Time over which the pace is counted, older turns less and less: one that takes long among thousands that do
not is told apart from a slow lane."""
_TURNS_AT_FIRST: Final = 10.0
"""Quick turns that a lane begins with, as fast as they should be: a server that just started is slow, and soon is
not."""
_COST_AT_FIRST_S: Final = 0.001
"""CPU of a usual call before a lane has seen any; only its ratio to the others' matters."""
_GROWING_S: Final = 0.125
"""A burst comes in less; a queue that grows in two such times in a row is no burst."""
_GROWTH: Final = 0.5
"""Growth of the expected wait, as a share of the time in which it grew: half as much again comes as is done."""


class Pace:
    """Counted while calls wait: the machine's factor to what calls are expected to cost."""

    __slots__ = ("_apart_s", "_cost_s", "_turns")

    def __init__(self) -> None:
        self._turns = _TURNS_AT_FIRST
        self._cost_s = self._apart_s = _TURNS_AT_FIRST * _COST_AT_FIRST_S

    @property
    def turn_s(self) -> float:
        """Seconds from one turn to the next."""
        return self._apart_s / self._turns

    @property
    def usual_cost_s(self) -> float:
        """CPU that a call is expected to cost of which nothing is known yet: what others did lately."""
        return self._cost_s / self._turns

    def wait_s(self, cost_s: float) -> float:
        """Seconds that work takes: what it should cost, as slow as such work was lately."""
        return cost_s * self._apart_s / self._cost_s

    def learn(self, apart_s: float, cost_s: float | None = None) -> None:
        """Two turns began so many seconds apart; the first was expected to cost so much, None = as others."""
        cost_s = self.usual_cost_s if cost_s is None else cost_s
        kept = math.exp(-apart_s / PACE_MEMORY_S)
        self._apart_s = self._apart_s * kept + apart_s
        self._turns = self._turns * kept + 1.0
        self._cost_s = self._cost_s * kept + cost_s


class Growth:
    """Tells more than can be done from a burst, which comes at once and drains, before the queue has grown long."""

    __slots__ = ("_from_s", "_times", "_wait_s")

    def __init__(self) -> None:
        self._from_s = self._wait_s = 0.0
        self._times = -1

    def seen(self, now_s: float, wait_s: float, standing_s: float) -> bool:
        """Whether a queue grew twice in a row.

        Parameters
        ----------
        wait_s : float
            That is expected now.
        standing_s : float
            Below it no queue is long.
        """
        if wait_s <= standing_s:
            self._times = -1
            return False
        apart_s = now_s - self._from_s
        if self._times >= 0 and apart_s < max(_GROWING_S, 2.0 * standing_s):
            return False
        grew = self._times >= 0 and wait_s - self._wait_s >= _GROWTH * apart_s
        self._times = self._times + 1 if grew else 0
        self._from_s, self._wait_s = now_s, wait_s
        return self._times > 1
