"""How sure an order of predicted steps is.

A search over architectures consumes ranks: that all answers are 10 % too slow costs it nothing. What moves two steps
alike cancels in their ratio; what is left decides: P(t_i < t_j) = Phi(ln(t_j / t_i) / sd of that log ratio).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy

from nodewise.domain.columns import Floats, Ints

__all__ = ["expected_kendall", "faster_probability"]

MOST_PAIRS: Final = 50_000
"""Pairs that stand for all of them: the expected tau is then known to 0.005 (half a standard deviation of 1 over
the root of this many)."""


def faster_probability(log_steps: Floats, common: Floats, own: Floats, first: Ints, second: Ints) -> Floats:
    """Probability that row `first` is faster than row `second`, for each pair.

    Parameters
    ----------
    log_steps : (rows,) float
        ln(step time).
    common, own : (rows, variables), (rows,) float
        Deviations of their errors, as in ``ArchitecturePredictions``. Rows without any are sure; equal ones then give
        1/2.
    """
    apart = common[first] - common[second]
    spread = np.sqrt(np.einsum("ij,ij->i", apart, apart) + own[first] ** 2 + own[second] ** 2)
    ratio = log_steps[second] - log_steps[first]
    surely = np.where(ratio == 0.0, 0.0, np.copysign(np.inf, ratio))
    return np.asarray(scipy.special.ndtr(np.divide(ratio, spread, out=surely, where=spread > 0.0)))


def expected_kendall(log_steps: Floats, common: Floats, own: Floats) -> float | None:
    """Kendall's tau that the predicted order has with the true one, expected; None below two rows.

    The mean of 2 P - 1 over pairs in their predicted order; of very many pairs some are drawn, always the same.
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
