"""Split of consecutive layers into pipeline stages such that the largest stage is smallest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

__all__ = ["min_max_split"]


def min_max_split(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """Return the stage of each layer; stages are in order, and none is empty.

    The result is exact: the optimum is the cost of some run of consecutive layers, and feasibility is monotone in the
    bound, so bisection over these costs finds the smallest bound that a greedy split meets.

    Parameters
    ----------
    costs : (L,) at least 0.
    stages : 1 to L.

    Raises
    ------
    ValueError
        ``stages`` is less than 1 or more than the number of layers.
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
    """Fill the stages one after the other up to the bound; None if the layers do not fit."""
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
