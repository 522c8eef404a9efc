"""How fast a lane is: what calls should cost, against the time between their turns."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["Pace"]

PACE_MEMORY_S: Final = 1.0
"""Time over which the pace is counted, older turns less and less: one that takes long among thousands that do
not is told apart from a slow lane."""
_TURNS_AT_FIRST: Final = 10.0
"""Quick turns that a lane begins with: a server that just started is slow, and soon is not."""
_COST_AT_FIRST_S: Final = 0.001
"""CPU of a usual call before a lane has seen any; only its ratio to the others' matters."""


class Pace:
    """Counted while calls wait: the machine's factor to what calls are expected to cost."""

    __slots__ = ("_apart_s", "_cost_s", "_turns")

    def __init__(self) -> None:
        self._apart_s = 0.0
        self._turns = _TURNS_AT_FIRST
        self._cost_s = _TURNS_AT_FIRST * _COST_AT_FIRST_S

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
