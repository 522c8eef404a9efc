"""Power of a device by what it computes, and the energy and emissions of a run: pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = ["OTHER_SHARE", "TRANSFORMER_SHARE", "DevicePower", "Quantity", "device_power", "device_watts"]

TRANSFORMER_SHARE: Final = 0.91
TRANSFORMER_SPREAD: Final = 0.04
OTHER_SHARE: Final = 0.74
OTHER_SPREAD: Final = 0.13
"""Power of a busy device divided by its limit, and standard deviation of its logarithm over workloads
(research/power.py)."""
OWN_SPREAD: Final = 0.03
"""The same deviation over batches where the power of one run of the job is stated."""
IDLE_SHARE: Final = 0.2
"""Power of a waiting device divided by its limit, where the catalogue does not state it: 0.14 of V100, 0.28 of A40."""
POWER_EXPONENT: Final = 1.4
NORMAL_90: Final = 1.645
"""Standard deviations on either side of the mean that hold 90 % of a normal distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A mean with its 90 % interval."""

    value: float
    lower: float
    upper: float

    @staticmethod
    def lognormal(value: float, log_spread: float) -> Quantity:
        """A value whose logarithm has this standard deviation."""
        factor = math.exp(NORMAL_90 * log_spread)
        return Quantity(value=value, lower=value / factor, upper=value * factor)

    def times(self, factor: float) -> Quantity:
        """The quantity times a certain factor."""
        return Quantity(value=self.value * factor, lower=self.lower * factor, upper=self.upper * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class DevicePower:
    """Power of a device in W while it waits and while it computes, and the deviation of ln(power)."""

    idle_watts: float
    training_watts: float
    log_spread: float


def device_power(
    limit_watts: float | None,
    *,
    transformer: bool,
    idle_watts: float | None = None,
    training_watts: float | None = None,
) -> DevicePower | None:
    """Power of a device, from what is stated and its limit; None = limit and ``training_watts`` are not known."""
    if training_watts is None and limit_watts is None:
        return None
    share, spread = (TRANSFORMER_SHARE, TRANSFORMER_SPREAD) if transformer else (OTHER_SHARE, OTHER_SPREAD)
    if training_watts is not None:
        spread = OWN_SPREAD
    else:
        assert limit_watts is not None
        training_watts = share * limit_watts
    if idle_watts is None:
        idle_watts = IDLE_SHARE * (training_watts / share if limit_watts is None else limit_watts)
    return DevicePower(idle_watts=min(idle_watts, training_watts), training_watts=training_watts, log_spread=spread)


def device_watts(power: DevicePower, compute_ratio: float) -> float:
    """Mean power of a device that computes for a share of the time, W.

    The empirical law of Fan, Weber and Barroso, Power provisioning for a warehouse-sized computer (ISCA 2007):
    idle + (busy - idle) x (2u - u^1.4).
    """
    u = min(max(compute_ratio, 0.0), 1.0)
    return power.idle_watts + (power.training_watts - power.idle_watts) * (2.0 * u - math.pow(u, POWER_EXPONENT))
