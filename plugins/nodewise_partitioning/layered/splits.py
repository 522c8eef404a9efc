"""Consecutive layers over the stages of a pipeline: the split whose largest stage is smallest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

__all__ = ["min_max_split"]


def min_max_split(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """The stage of each layer, in order, none empty.

    Exact: the smallest bound that a greedy filling meets is the cost of some run of layers, and whether a bound is met
    is monotone, so bisection over those costs finds it.

    Parameters
    ----------
    costs : (L,) at least 0.
    stages : 1 to L.

    Raises
    ------
    ValueError
        More stages than layers, or none.
    """
    layers = len(costs)
    if not 1 <= stages <= layers:
        message = f"stages must be 1 to the number of layers ({layers}), got {stages}"
        raise ValueError(message)
    up_to = np.concatenate(([0.0], np.cumsum(np.asarray(costs, dtype=np.float64))))
    bounds = np.unique(up_to[np.newaxis, 1:] - up_to[:-1, np.newaxis])
    bounds = bounds[bounds >= 0.0]
    place = bisect_left(bounds[:-1], x=True, key=lambda bound: _fill(up_to, float(bound), stages) is not None)
    split = _fill(up_to, float(bounds[place]), stages)
    # The largest bound is the cost of all layers, which any filling meets.
    assert split is not None
    return split


def _fill(up_to: np.ndarray[tuple[int], np.dtype[np.float64]], bound: float, stages: int) -> tuple[int, ...] | None:
    """Stages filled one after the other up to the bound; None where they do not hold all layers."""
    layers = len(up_to) - 1
    # Differences of sums miss the bound that they are by rounding.
    slack = bound + 1e-12 * float(up_to[-1])
    ends: list[int] = []
    start = 0
    for stage in range(stages):
        end = int(np.searchsorted(up_to, up_to[start] + slack, side="right")) - 1
        # Each stage that is still to come keeps a layer.
        end = min(max(end, start), layers - (stages - stage - 1))
        if end == start:
            return None
        ends += [stage] * (end - start)
        start = end
    return tuple(ends) if start == layers else None
