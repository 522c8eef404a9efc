"""Medians of what several processes saw: counts in bins, which add up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["Histogram"]

BIN_WIDTH: Final = math.log(1.02)
"""In ln: medians are exact to 1 %, and a rule's bounds are ratios far above that."""
LEAST: Final = 1e-9
"""What is smaller counts as this: two answers that agree, a call that took no time."""


class Histogram:
    """How often values of which size were seen.

    Parameters
    ----------
    counts : mapping of bin to int
        As :attr:`counts` of another one.
    """

    def __init__(self, counts: Mapping[int, int] | None = None) -> None:
        self.counts: Counter[int] = Counter(counts or {})

    def add(self, value: float) -> None:
        """One more value, at least 0."""
        self.counts[math.floor(math.log(max(value, LEAST)) / BIN_WIDTH)] += 1

    @property
    def total(self) -> int:
        """Values."""
        return self.counts.total()

    @property
    def median(self) -> float:
        """The middle of the bin that holds it; 0 = there are no values."""
        half, below = self.total / 2.0, 0
        for place in sorted(self.counts):
            below += self.counts[place]
            if below >= half:
                return math.exp((place + 0.5) * BIN_WIDTH)
        return 0.0

    @classmethod
    def together(cls, parts: Iterable[Histogram]) -> Histogram:
        """Of the values of all."""
        found = cls()
        for part in parts:
            found.counts.update(part.counts)
        return found
