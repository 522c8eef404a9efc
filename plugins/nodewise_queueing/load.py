"""What nothing but a run of several workers tells: what load costs, and how workers order themselves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_queueing.evidence import Runs
from nodewise_queueing.regularity import ORDER_SPREAD

__all__ = ["LOG_LOSS_SPREAD", "Load", "fitted_load"]

LOG_LOSS_SPREAD: Final = 0.08
"""Standard deviation of ln of what transfers cost under load over what their bytes need. A link in use carries its rate
less headers at any load (research/queueing.md), so little is left for it: a judgement, such that 90 % intervals
covered 90 % of the project's own testbed jobs."""

LARGEST_LOG_LOAD: Final = 1.0
"""Search limit; a link that delivers less than 1 / e of its rate is not explained by sharing."""

_LOADS: Final = 26
_SHIFTS: Final = 33


@dataclass(frozen=True, slots=True)
class Load:
    """What several workers do to each other: most likely values, and standard deviations.

    Attributes
    ----------
    log_factor, log_spread : float
        ln of the factor on transfers when several workers share the link.
    order_shift, order_spread : float
        How far the workers' place between in step (-1) and orderly (1) lies from the expected one.
    """

    log_factor: float
    log_spread: float
    order_shift: float
    order_spread: float

    @staticmethod
    def without_runs() -> Load:
        """Without a run of several workers: nothing beyond what is expected, and its usual doubt."""
        return Load(0.0, LOG_LOSS_SPREAD, 0.0, ORDER_SPREAD)


def fitted_load(runs: Runs, log_rates: Callable[[float, Floats], Floats], *, ordered: bool) -> Load:
    """The most likely factor, at least 1, and order, given runs; nothing but runs of two or more workers tells.

    Half-normal prior of deviation LOG_LOSS_SPREAD for the factor's logarithm, normal prior of deviation ORDER_SPREAD
    for the order, normal noise of each ln(rate). Two parameters, on a grid: the rates need not be smooth in them.

    Parameters
    ----------
    runs : Runs
        Measured; their noise holds what predictions may err by from causes other than these.
    log_rates : callable
        Predicted ln(rate), (shifts, runs), for a given ln(factor) and (shifts,) shifts of the order.
    ordered : bool
        Whether the mode has an order; a barrier leaves none.
    """
    several = runs.workers >= 2
    if not several.any():
        return Load.without_runs()
    factors = np.linspace(0.0, LARGEST_LOG_LOAD, _LOADS)
    shifts = np.linspace(-1.0, 1.0, _SHIFTS) if ordered else np.zeros(1)
    cost = np.empty((len(factors), len(shifts)))
    for row, factor in enumerate(factors.tolist()):
        misfit = ((log_rates(factor, shifts) - runs.log_rate) / runs.log_noise)[:, several]
        cost[row] = 0.5 * (misfit**2).sum(axis=1) + 0.5 * (factor / LOG_LOSS_SPREAD) ** 2
    cost += 0.5 * (shifts / ORDER_SPREAD) ** 2
    weight = np.exp(cost.min() - cost)
    weight /= weight.sum()
    best = divmod(int(cost.argmin()), len(shifts))
    factor, shift = float(factors[best[0]]), float(shifts[best[1]])
    return Load(
        log_factor=factor,
        log_spread=_deviation(weight.sum(axis=1), factors, factor),
        order_shift=shift,
        order_spread=_deviation(weight.sum(axis=0), shifts, shift),
    )


def _deviation(weight: Floats, values: Floats, centre: float) -> float:
    return math.sqrt(float((weight * (values - centre) ** 2).sum()))
