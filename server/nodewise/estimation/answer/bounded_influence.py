"""What jobs of other owners may do to an answer: each owner moves it a little, however many jobs it states.

Owners are in groups, each owner in one. An answer by the asker's own lessons is x, in logarithms; with the jobs of
group g beside the asker's it would be x + d_g. The answer is x + d, where d is the root of

    d = sum over groups of clip(d_g - d, -h, h),

an M-estimator with Huber's bounded influence (P. J. Huber, Ann. Math. Stat. 35(1), 1964) and one pseudo-group that is
for leaving the answer as it is. Its left side minus its right side grows at least as fast as d, and whatever one owner
does changes one term by at most 2 h: so it moves the answer by at most 2 h, which is the bound. A group alone moves it
by h at most; of many that agree each moves it as far.

The same holds of ln(deviation). A deviation of 0 stays 0; refusals, memory and who answers are the asker's alone.
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
"""Groups of owners: each costs an answer one more model, and moves it by half a bound at most."""
MOST_POINT: Final = 1.05
"""Factor by which one owner moves a step time of another at most."""
MOST_WIDTH: Final = 1.13
"""The same of ln(upper / lower bound). Where that is within ±0.5 the interval in steps/s is then at most 20 % wider,
together with the point that it goes with; in logarithms always."""

_HALVINGS: Final = 48


def agree(differences: Floats, half: float) -> Floats:
    """The root d of each column.

    Parameters
    ----------
    differences : (groups, rows) float
        What each group would move; what is not finite moves nothing.
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
    # Where nobody moves anything, nothing moves, to the last bit.
    return np.where((sound == 0.0).all(axis=0), 0.0, root)


def move_by_others(own: Predictions, others: Sequence[Predictions]) -> Predictions:
    """Predictions by the asker's own lessons, as far as groups of other owners may move them.

    Parameters
    ----------
    others : sequence of Predictions
        Of the same rows, by the same estimators, with each group's jobs beside the asker's.
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
    """Ln(other / own) of each group and row; 0 where one of them says nothing."""
    stacked_others = np.stack(others)
    usable = where & (stacked_others > 0.0) & (own > 0.0)
    return np.log(np.where(usable, stacked_others, 1.0)) - np.log(np.where(usable, own, 1.0))
