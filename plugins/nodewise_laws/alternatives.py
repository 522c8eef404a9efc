"""Intervals over likely values: how much wider an answer is that holds for every value that a fact may have.

A quantity is computed with the most likely value of a fact. Another value of weight w moves its logarithm by d. Where
that value holds, a 90 % interval leaves 5 % of the probability beyond its bound if that lies at |d| + z s, with s the
deviation of the logarithm by the model alone and z the quantile of 1 - 0.05 / w of a normal variable. The deviation of
a fact is what brings the bound there, and at least the root of the mean square of its effects by weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["BEYOND", "DEVIATIONS", "Effects", "bound_deviations", "deviation_of", "mean_square"]

BEYOND: Final = 0.05
"""Probability beyond each bound of a 90 % interval; values of less weight lie outside of it."""
DEVIATIONS: Final = 1.645
"""From the middle to the bounds of a 90 % interval of a normal variable."""

_NORMAL: Final = NormalDist()

Effects = Sequence[tuple[NDArray[np.float64], float]]
"""Ln of how many times as large a quantity is with each other value, row by row, and the value's weight."""


def mean_square(effects: Effects) -> NDArray[np.float64] | float:
    """Mean square of the effects by weight."""
    return sum((weight * np.square(effect) for effect, weight in effects), start=0.0)


def bound_deviations(weight: float) -> float:
    """Deviations from where a value of a weight above :data:`BEYOND` moves a quantity to its bound."""
    return _NORMAL.inv_cdf(1.0 - BEYOND / weight)


def deviation_of(effects: Effects, log_spread: NDArray[np.float64]) -> NDArray[np.float64]:
    """Deviation of the logarithm by an unstated fact, where the model alone has a deviation of ``log_spread``.

    Rows that a value does not move are not in doubt by it.
    """
    bound = np.zeros(np.shape(log_spread))
    for effect, weight in effects:
        if weight > BEYOND:
            reached = np.abs(effect) + bound_deviations(weight) * log_spread * (np.abs(effect) > 0.0)
            bound = np.maximum(bound, reached)
    beside = np.square(bound / DEVIATIONS) - np.square(log_spread)
    return np.asarray(np.sqrt(np.maximum(np.maximum(mean_square(effects), beside), 0.0)))
