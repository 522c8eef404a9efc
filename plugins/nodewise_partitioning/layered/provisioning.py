"""How many servers are enough, and which assignments of parts to machines are worth a look."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

__all__ = ["canonical_assignments", "smallest_sufficient"]


def smallest_sufficient(seconds_of: Callable[[int], float], within_s: float, most: int) -> int | None:
    """The smallest number from 1 to ``most`` whose time is within a bound; None where none is.

    By bisection: right where more servers never take longer, as of every law in `exchange`.
    """
    if most < 1 or seconds_of(most) > within_s:
        return None
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if seconds_of(middle) <= within_s:
            high = middle
        else:
            low = middle + 1
    return low


def canonical_assignments(layers: int, choices: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """One assignment of each class that differs in the names of machines alone: parts of each layer, on the first ones.

    Machines are alike, so which of them hold a layer matters only by which layers share them; layers whose parts read
    all of their input lose nothing by sharing as many as they can.
    """
    return itertools.product(choices, repeat=layers)
