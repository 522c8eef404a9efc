"""Estimate how reliable an order of predicted step times is.

A search over architectures uses only ranks, so an error that is common to all step times is harmless. Common errors
cancel in the ratio of two step times. The other errors decide: P(t_i < t_j) = Phi(ln(t_j / t_i) / sd of that log
ratio).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy

from nodewise.domain.columns import Floats, Ints

__all__ = ["expected_kendall", "faster_probability"]

MOST_PAIRS: Final = 50_000
"""Maximum number of pairs that are evaluated. The sampling error of the expected tau is then about 0.005: a standard
deviation of at most 1 over the square root of this number."""


def faster_probability(log_steps: Floats, common: Floats, own: Floats, first: Ints, second: Ints) -> Floats:
    """Return the probability that row `first` is faster than row `second`, for each pair.

    Parameters
    ----------
    log_steps : (rows,) float
        ln(step time).
    common, own : (rows, variables), (rows,) float
        Standard deviations of the errors of ln(step time): those by shared variables and those of the row alone, as
        in ``ArchitecturePredictions``. Rows without deviations are exact; equal ones give 1/2.
    """
    apart = common[first] - common[second]
    spread = np.sqrt(np.einsum("ij,ij->i", apart, apart) + own[first] ** 2 + own[second] ** 2)
    ratio = log_steps[second] - log_steps[first]
    surely = np.where(ratio == 0.0, 0.0, np.copysign(np.inf, ratio))
    return np.asarray(scipy.special.ndtr(np.divide(ratio, spread, out=surely, where=spread > 0.0)))


def expected_kendall(log_steps: Floats, common: Floats, own: Floats) -> float | None:
    """Return the expected Kendall's tau between the predicted and the true order; None for fewer than two rows.

    It is the mean of 2 P - 1 over pairs in predicted order. Above ``MOST_PAIRS`` pairs, a fixed random sample is used.
    """
    count = len(log_steps)
    if count < 2:
        return None
    if count * (count - 1) // 2 <= MOST_PAIRS:
        first, second = np.triu_indices(count, 1)
    else:
        generator = np.random.default_rng(0)
        first = generator.integers(0, count, MOST_PAIRS)
        second = (first + generator.integers(1, count, MOST_PAIRS)) % count
    right = faster_probability(log_steps, common, own, first, second)
    return float(np.mean(2.0 * np.maximum(right, 1.0 - right) - 1.0))
