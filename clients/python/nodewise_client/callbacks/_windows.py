"""Step times as measured in windows of many steps, and their steady rate."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

MOST_WINDOWS: Final = 10_000
"""Windows that are remembered between two rows: those of some hours."""


@dataclass(slots=True)
class Windows:
    """Windows of steps: the mean step of each, and the sums that the variation of single steps follows from."""

    means: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_WINDOWS))
    steps: int = 0
    _seconds: float = 0.0
    _squares: float = 0.0

    def add(self, seconds: float, ends: Sequence[float]) -> None:
        """Add a window.

        Args:
            seconds: from the begin of its first step until the device has done the last.
            ends: when the window began and when each of its steps ended, by the process's clock.
        """
        count = len(ends) - 1
        self.means.append(seconds / count)
        self.steps += count
        self._seconds += ends[-1] - ends[0]
        self._squares += math.fsum((end - begin) ** 2 for begin, end in pairwise(ends))

    @property
    def step_seconds(self) -> float:
        """The steady step: the median of the windows' means, which a rare stall does not move."""
        return statistics.median(self.means)

    @property
    def variation(self) -> float | None:
        """Coefficient of variation of single steps; None where there are too few."""
        if self.steps < 2 or not self._seconds:
            return None
        mean = self._seconds / self.steps
        variance = (self._squares - self.steps * mean**2) / (self.steps - 1)
        return math.sqrt(max(variance, 0.0)) / mean
