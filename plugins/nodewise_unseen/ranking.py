"""How sure an order of predicted steps is.

An architecture search consumes ranks: that all answers are 10 % too slow costs it nothing. What the law's weights do to
two steps alike cancels in their ratio; what is left decides: P(t_i < t_j) = Phi(ln(t_j / t_i) / sd of that log ratio).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from scipy.special import ndtr

from nodewise.plugin import Floats, Ints
from nodewise_unseen.steps import PredictedSteps, Row, StepLaw

__all__ = ["expected_kendall", "faster_probability"]

MOST_PAIRS: Final = 50_000
"""Pairs that stand for all of them: the expected tau is then known to 0.005 (half a standard deviation of 1 over
the root of this many)."""


def faster_probability(law: StepLaw, steps: PredictedSteps, first: Ints, second: Ints) -> Floats:
    """Probability that architecture `first` is faster than `second`, for each pair of rows; rows refused give 1/2.

    Rows of a family that never ran are held independent of each other, which understates it within that family.
    """
    apart = steps.gradients[first] - steps.gradients[second]
    shared = np.einsum("ij,jk,ik->i", apart, law.effects.covariance, apart)
    spread = law.widening * np.sqrt(shared + steps.own[first] + steps.own[second])
    answered = (steps.rows[first] != Row.REFUSED) & (steps.rows[second] != Row.REFUSED)
    seconds = np.where(steps.rows == Row.REFUSED, 1.0, steps.seconds)
    return np.where(answered, ndtr(np.log(seconds[second] / seconds[first]) / spread), 0.5)


def expected_kendall(law: StepLaw, steps: PredictedSteps) -> float | None:
    """Kendall's tau that the predicted order has with the true one, expected; None below two answered rows.

    The mean of 2 P - 1 over pairs in their predicted order; of very many pairs some are drawn, always the same.
    """
    answered = np.flatnonzero(steps.rows != Row.REFUSED)
    count = answered.size
    if count < 2:
        return None
    if count * (count - 1) // 2 <= MOST_PAIRS:
        first, second = np.triu_indices(count, 1)
    else:
        generator = np.random.default_rng(0)
        first = generator.integers(0, count, MOST_PAIRS)
        second = (first + generator.integers(1, count, MOST_PAIRS)) % count
    right = faster_probability(law, steps, answered[first], answered[second])
    return float(np.mean(2.0 * np.maximum(right, 1.0 - right) - 1.0))
