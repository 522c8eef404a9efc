"""Smallest sufficient number of servers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

__all__ = ["smallest_sufficient"]


def smallest_sufficient(seconds_of: Callable[[int], float], within_s: float, most: int) -> int | None:
    """Return the smallest number from 1 to ``most`` whose time is within a bound; None if there is none.

    Bisection is exact if more servers never take longer, which holds for every law in `exchange`.
    """
    if most < 1 or seconds_of(most) > within_s:
        return None
    return 1 + bisect_left(range(1, most), x=True, key=lambda number: seconds_of(number) <= within_s)
