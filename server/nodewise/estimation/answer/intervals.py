"""Intervals: convert the spread that a model states into bounds. No other module does this."""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

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
    """Return bounds of steps/s from the spread of ln(step time), which is assumed to be normal.

    Return None if no row has a spread. If only some rows have a spread, both bounds of the other rows equal the
    prediction. The basis of the interval states whether the spread is the model's own, is calibrated against measured
    errors, or is from a simulation. No upper bound exceeds ``most_steps_per_s`` (infinite = no limit), unless the
    prediction itself does.
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
    """Return the rate that is reached or exceeded with probability ``confidence``."""
    return rate * np.exp(-_deviations(1.0 - confidence) * predictions.log_spread)


@lru_cache(maxsize=256)
def _deviations(tail: float) -> float:
    """Return the number of standard deviations that a normal variable exceeds with probability ``tail``.

    The argument is the small tail, not 1 - tail: the latter can round to 1, whose quantile is infinite.
    """
    return -NormalDist().inv_cdf(tail)  # as SciPy's, whose import takes a tenth of a short command
