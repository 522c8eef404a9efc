"""Power of a device by what it computes, and the energy and emissions of a run: pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

__all__ = [
    "IDLE_SHARE",
    "MEMORY_BOUND_SHARE",
    "OTHER_SHARE",
    "TRANSFORMER_SHARE",
    "DevicePower",
    "Quantity",
    "device_power",
    "device_watts",
]

TRANSFORMER_SHARE: Final = 0.9
TRANSFORMER_SPREAD: Final = 0.12
"""Power of a device that trains transformers divided by its limit, and standard deviation of its logarithm over devices
(all constants: research/power.py)."""
KNOWN_SPREAD: Final = 0.03
"""The same deviation over transformers where the catalogue states what they draw on the device."""
OTHER_SHARE: Final = 0.86
OTHER_SPREAD: Final = 0.13
"""Power under other networks divided by that under transformers, and deviation of its logarithm over networks."""
MEMORY_BOUND_SHARE: Final = 0.85
MEMORY_BOUND_SPREAD: Final = 0.08
"""The same of a network whose arithmetic takes no time; what it does take counts in full."""
OWN_SPREAD: Final = 0.05
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
    transformer_watts: float | None = None,
    utilisation: float | None = None,
) -> DevicePower | None:
    """Power of a device; None = neither its limit nor what it draws is known.

    Parameters
    ----------
    limit_watts : float or None
        The most that it draws.
    transformer : bool
        Whether it trains a transformer.
    idle_watts, training_watts : float or None
        What is stated of this job.
    transformer_watts : float or None
        What it drew while it trained transformers.
    utilisation : float or None
        Operations per second of a network that is no transformer, divided by the peak, 0 to 1: for this share of the
        time arithmetic bounds it, and memory in the rest.
    """
    level, spread = transformer_watts, KNOWN_SPREAD
    if level is None and limit_watts is not None:
        level, spread = TRANSFORMER_SHARE * limit_watts, TRANSFORMER_SPREAD
    if transformer:
        share, share_spread = 1.0, 0.0
    elif utilisation is None:
        share, share_spread = OTHER_SHARE, OTHER_SPREAD
    else:
        share, share_spread = MEMORY_BOUND_SHARE + (1.0 - MEMORY_BOUND_SHARE) * utilisation, MEMORY_BOUND_SPREAD
    if training_watts is not None:
        spread, share_spread = OWN_SPREAD, 0.0
    elif level is not None:
        training_watts = share * level
    else:
        return None
    if idle_watts is None:
        idle_watts = IDLE_SHARE * (training_watts / (share * TRANSFORMER_SHARE) if limit_watts is None else limit_watts)
    return DevicePower(
        idle_watts=min(idle_watts, training_watts),
        training_watts=training_watts,
        log_spread=math.hypot(spread, share_spread),
    )


def device_watts(power: DevicePower, compute_ratio: float) -> float:
    """Mean power of a device that computes for a share of the time, W.

    The empirical law of Fan, Weber and Barroso, Power provisioning for a warehouse-sized computer (ISCA 2007):
    idle + (busy - idle) x (2u - u^1.4).
    """
    u = min(max(compute_ratio, 0.0), 1.0)
    return power.idle_watts + (power.training_watts - power.idle_watts) * (2.0 * u - math.pow(u, POWER_EXPONENT))
