"""Intervals: a model gives its spread, this module alone turns it into bounds."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy

from nodewise.domain.columns import Floats
from nodewise.domain.predictions import Predictions
from nodewise.estimation.question import Interval, IntervalBasis

__all__ = ["interval_of", "one_sided_rate"]


def interval_of(
    predictions: Predictions,
    steps_per_s: Floats,
    coverage: float,
    *,
    is_calibrated: bool = False,
    most_steps_per_s: Floats | None = None,
) -> Interval | None:
    """Bounds of steps/s from the spread of ln(step time), taken as normal.

    Returns None for a model that states no spread. A row without a spread among others that have one is a point:
    both of its bounds are the prediction. The basis says whether the spread is the model's own, was calibrated against
    measured errors, or is a simulation's. No upper bound is above ``most_steps_per_s`` (infinite = no limit), unless
    the prediction is.
    """
    spread = predictions.log_spread
    if not np.logical_or.reduce(spread):
        return None
    factor = np.exp(_deviations((1.0 - coverage) / 2.0) * spread)
    basis = IntervalBasis.CONFORMAL if is_calibrated else IntervalBasis.MODEL_SPREAD
    if predictions.simulated:
        basis = IntervalBasis.SIMULATION
    upper = steps_per_s * factor
    if most_steps_per_s is not None:
        upper = np.minimum(upper, np.maximum(most_steps_per_s, steps_per_s))
    return Interval(lower_steps_per_s=steps_per_s / factor, upper_steps_per_s=upper, coverage=coverage, basis=basis)


def one_sided_rate(predictions: Predictions, rate: Floats, confidence: float) -> Floats:
    """The rate that is reached with probability ``confidence``."""
    return rate * np.exp(-_deviations(1.0 - confidence) * predictions.log_spread)


@lru_cache(maxsize=256)
def _deviations(tail: float) -> float:
    """Standard deviations beyond which a normal variable lies with probability ``tail``.

    Asked for the small tail, not for the large rest: near 1 the rest rounds to 1, of which the quantile is infinite.
    """
    return float(-scipy.special.ndtri(tail))
