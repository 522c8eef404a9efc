"""Bound the influence of other owners' jobs on an answer, however many jobs an owner submits.

Each owner belongs to one group. Let x be the logarithm of an answer by the caller's own lessons. With the jobs of group
g added to the caller's jobs, it would be x + d_g. The answer is x + d, where d is the root of

    d = sum over groups of clip(d_g - d, -h, h),

an M-estimator with Huber's bounded influence (P. J. Huber, Ann. Math. Stat. 35(1), 1964) and one pseudo-group that
prefers d = 0. The left side minus the right side grows at least as fast as d. One owner changes one term by at most
2 h. So one owner moves the answer by at most 2 h, which is the bound. A single group moves the answer by at most h. If
many groups agree, each adds at most h.

The same rule applies to ln(deviation). A deviation of 0 stays 0. Refusals, memory and the choice of the estimator
depend on the caller's own lessons only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.predictions import Predictions
from nodewise.estimation.estimators.check import MOST_LOG_SPREAD

__all__ = ["GROUPS", "MOST_POINT", "MOST_WIDTH", "agree", "move_by_others"]

GROUPS: Final = 6
"""Number of groups of owners. Each group adds one model to an answer, and moves it by at most half of the bound."""
MOST_POINT: Final = 1.05
"""Largest factor by which one owner changes a step time of another."""
MOST_WIDTH: Final = 1.13
"""Largest factor by which one owner changes ln(upper / lower bound). If an interval is within ±0.5 in logarithms, its
width in steps/s grows by at most 20 %, the change of the point included."""

_HALVINGS: Final = 48


def agree(differences: Floats, half: float) -> Floats:
    """Return the root d of each column.

    Parameters
    ----------
    differences : (groups, rows) float
        d_g of each group and row; a value that is not finite counts as 0.
    half : float
        h.
    """
    sound = np.where(np.isfinite(differences), differences, 0.0)
    high = np.full(sound.shape[1], half * len(sound))
    low = -high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        above = middle > np.clip(sound - middle, -half, half).sum(axis=0)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    root: Floats = 0.5 * (low + high)
    # If all differences of a row are 0, return exactly 0.
    return np.where((sound == 0.0).all(axis=0), 0.0, root)


def move_by_others(own: Predictions, others: Sequence[Predictions]) -> Predictions:
    """Move predictions by the caller's own lessons toward those with other owners' jobs, within the bounds.

    Parameters
    ----------
    others : sequence of Predictions
        Predictions of the same rows by the same estimators, one for each group, with its jobs added to the caller's.
    """
    if not others or own.simulated:
        return own
    is_answered = own.answered
    both = np.stack([is_answered & each.answered for each in others])
    half_point, half_width = 0.5 * np.log(MOST_POINT), 0.5 * np.log(MOST_WIDTH)
    step = agree(_log_ratios(own.step_s, [each.step_s for each in others], both), half_point)
    is_stated = both & (own.log_spread > 0.0)
    width = agree(_log_ratios(own.log_spread, [each.log_spread for each in others], is_stated), half_width)
    if not step.any() and not width.any():
        return own
    factor = np.exp(step)
    return replace(
        own,
        step_s=freeze(own.step_s * factor),
        log_spread=freeze(np.minimum(own.log_spread * np.exp(width), MOST_LOG_SPREAD)),
        breakdown_s={name: freeze(seconds * factor) for name, seconds in own.breakdown_s.items()},
    )


def _log_ratios(own: Floats, others: Sequence[Floats], where: NDArray[np.bool_]) -> Floats:
    """Return ln(other / own) of each group and row; 0 where either value is missing."""
    stacked_others = np.stack(others)
    usable = where & (stacked_others > 0.0) & (own > 0.0)
    return np.log(np.where(usable, stacked_others, 1.0)) - np.log(np.where(usable, own, 1.0))
