"""Time for a decision."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

__all__ = ["Unlimited", "Until"]


class Unlimited:
    """As much time as it takes."""

    def remaining_s(self) -> float:
        """Seconds left: infinitely many."""
        return math.inf


class Until:
    """So many seconds from now, by a clock that never goes back."""

    def __init__(self, seconds: float, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._end_s = clock_s() + seconds

    def remaining_s(self) -> float:
        """Seconds left; 0 or less = decide now."""
        return self._end_s - self._clock_s()
