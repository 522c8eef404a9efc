"""Expected losses where every machine that goes is replaced: the renewal function, not the share revoked.

::

    m(t) = F_a(t) + integral_0^(t-D) m_0(t - D - u) dF_a(u),   m_0 the same for new machines

D seconds from a loss to the next machine, F_a the law given the age at the start (W. Feller, "An Introduction to
Probability Theory and Its Applications" II, ch. XI; the gap D makes it a delayed alternating renewal). F alone misses
that replacements are young again and die early once more.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_transient.lifetimes import Lifetime

__all__ = ["expected_losses"]

GRID_S: Final = 20.0
MOST_POINTS: Final = 4000
"""The grid: 20 s, coarser where that would be more points than these."""


def expected_losses(law: Lifetime, seconds: float, *, age_s: float = 0.0, delay_s: float = 0.0) -> float:
    """Losses of one place within some seconds from now, its machine being as old and replaced after a delay."""
    step = max(GRID_S, seconds / MOST_POINTS)
    times = np.arange(0.0, seconds + step, step)
    fresh = law.revoked_by(times)
    losses = _renew(fresh, np.diff(fresh), None, delay_s / step)
    if age_s > 0.0:
        aged = law.revoked_within(times, age_s=age_s)
        losses = _renew(aged, np.diff(aged), losses, delay_s / step)
    return float(np.interp(seconds, times, losses))


def _renew(share: Floats, lost: Floats, later: Floats | None, gap: float) -> Floats:
    """The recursion on a grid; ``later`` are the losses of the machines that come after, where they are others.

    A loss between two points of the grid is taken at their middle: it leaves j - 1/2 - gap steps to those that follow.
    """
    losses = share.copy()
    source = losses if later is None else later
    whole = int(gap + 0.5)
    part = gap + 0.5 - whole
    for at in range(1, len(share)):
        losses[at] = losses[at - 1]  # stands in for itself where there is no gap
        reach = at - whole
        if reach < 0:
            losses[at] = share[at]
            continue
        ahead = source[reach::-1]
        near, far = min(reach + 1, at), min(reach, at)
        body = (1.0 - part) * float(lost[:near] @ ahead[:near]) + part * float(lost[:far] @ ahead[1 : far + 1])
        losses[at] = share[at] + body
    return losses
