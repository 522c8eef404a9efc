"""Time that a call leaves to what computes its answer."""

from __future__ import annotations

import time
from typing import Final

from nodewise.rpc.calls import Call

__all__ = ["CallBudget"]

ANSWER_SHARE: Final = 0.95
"""Share of a call's time for computing; the rest is for telling what came of it."""


class CallBudget:
    """What is left of a call's time; nothing once nobody waits for its answer any more."""

    def __init__(self, call: Call) -> None:
        self._end_s = time.monotonic() + call.remaining_s() * ANSWER_SHARE
        self._over = False

    def shorten(self, most_s: float) -> None:
        """At most so many seconds from now."""
        self._end_s = min(self._end_s, time.monotonic() + most_s)

    def end(self) -> None:
        """Nobody waits any more."""
        self._over = True

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = end now."""
        return 0.0 if self._over else self._end_s - time.monotonic()
