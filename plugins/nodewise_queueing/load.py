"""How much dearer transfers are under load than alone: what nothing but a run of several workers tells."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_queueing.evidence import Runs

__all__ = ["Load", "fitted_load"]

LOG_LOSS_SPREAD: Final = math.log(0.89 / 0.59) / 2.0
"""Half the logarithmic range of saturated goodput over link rate, 0.59 to 0.89, that five asynchronous jobs showed on
the project's testbed: losses, acknowledgements and idle gaps when several flows share a link. 0.21."""

LARGEST_LOG_LOAD: Final = 1.0
"""Search limit; a link that delivers less than 1 / e of its rate is not explained by sharing."""

_STEPS: Final = 51


@dataclass(frozen=True, slots=True)
class Load:
    """ln of the factor on transfers when several workers share the link: most likely value, and standard deviation."""

    log_factor: float
    log_spread: float

    @staticmethod
    def unmeasured() -> Load:
        """Without a run of several workers: no factor, and a saturated link's usual loss as doubt."""
        return Load(0.0, LOG_LOSS_SPREAD)


def fitted_load(runs: Runs, log_rates: Callable[[float], Floats], log_doubt: Floats) -> Load:
    """The most likely factor, at least 1, given runs; nothing but runs of two or more workers tells.

    Half-normal prior of deviation LOG_LOSS_SPREAD, normal noise of each ln(rate). One parameter, found on a grid: the
    rates need not be smooth in it. A run faster than predicted leaves the factor at 1: waiting less than mean value
    analysis says is a matter of the order of service, and inside the spread already.

    Parameters
    ----------
    runs : Runs
        Measured.
    log_rates : callable
        Predicted ln(rate) of each run for a given ln(factor).
    log_doubt : (runs,) float
        Deviation of each prediction from causes other than load: near the knee a run tells less than in saturation.
    """
    several = runs.workers >= 2
    if not several.any():
        return Load.unmeasured()
    grid = np.linspace(0.0, LARGEST_LOG_LOAD, _STEPS)
    noise = np.hypot(runs.log_noise, log_doubt)
    misfit = np.array([((log_rates(float(load)) - runs.log_rate) / noise)[several] for load in grid])
    cost = 0.5 * (misfit**2).sum(axis=1) + 0.5 * (grid / LOG_LOSS_SPREAD) ** 2
    best = int(cost.argmin())
    weight = np.exp(cost[best] - cost)
    spread = math.sqrt(float((weight * (grid - grid[best]) ** 2).sum() / weight.sum()))
    return Load(float(grid[best]), spread)
