"""The prior for an asynchronous job of which only throughputs are known.

Two rows do not determine the servers' share of a cycle, how sharply the curve bends where the servers saturate, and
which row ran on a slow machine. Share and bend are estimated from causes: a slower accelerator leaves a smaller part of
its cycle to the servers, as do more servers; and the more regular compute is, the less workers wait before saturation.

The constants are learned by `research/learn_async_prior.py` from the known asynchronous jobs (five published ones of
the project's testbed, thirteen of its own, six of CM-DARE); it prints the estimate of each source alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np

from nodewise.plugin import Catalogue, Floats
from nodewise_queueing.scaling import SERVER_EXPONENT
from nodewise_queueing.variation import likely_variation

__all__ = ["LEARNED", "ShareDistribution", "SharePrior", "expected_of", "relative_speed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharePrior:
    """What sources teach about jobs in general.

    Attributes
    ----------
    share : float
        Median of the servers' share of one worker's cycle, on a P100 and with one server.
    share_spread : float
        Standard deviation of ln(share / (1 - share)) between jobs.
    sharpest, by_variation : float
        Sharpness p of the knee by the coefficient of variation of compute: ln p = ln(sharpest) + by_variation x cv.
    sharpness_spread : float
        Standard deviation of ln p about it between jobs.
    """

    share: float
    share_spread: float
    sharpest: float
    by_variation: float
    sharpness_spread: float


LEARNED: Final = SharePrior(share=0.26, share_spread=0.65, sharpest=5.6, by_variation=-2.8, sharpness_spread=0.36)
"""From all sources. The testbed alone says 0.28, 0.67, 5.7, -2.8 and 0.40, hence a sharpness of 5.1 on accelerators;
CM-DARE's accelerators alone 0.24, 0.57 and 4.8."""

P100_FLOPS_PER_S: Final = 9.3e12
P100_BYTES_PER_S: Final = 732e9
"""fp32 peak and memory bandwidth of the fastest accelerator among the jobs learned from."""

UNKNOWN_SHARE_SPREAD: Final = math.pi / math.sqrt(3.0)
"""Deviation of ln(share / (1 - share)) where the device is no known accelerator: that of a logistic distribution of
scale 1, which it has when every share is as likely."""

UNKNOWN_CV: Final = 0.18
UNKNOWN_CV_SPREAD: Final = 0.13
"""Where the device is no known accelerator, workers may be anything, emulated ones included: mean and deviation of a
cv that is log-uniform from that of accelerators to 0.5, the widest that the project's testbed ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareDistribution:
    """Distributions of two logarithms, independent of each other.

    Attributes
    ----------
    odds, odds_log_spread : float
        Median of share / (1 - share), with the servers' share of one worker's cycle; standard deviation of its ln,
        which is logistic: its tails are heavier than a normal's, as other sites have other links.
    sharpness, sharpness_log_spread : float
        Median of p (see ``shape_of``); standard deviation of its ln, which is normal.
    """

    odds: float
    odds_log_spread: float
    sharpness: float
    sharpness_log_spread: float

    def log_density(self, share: Floats) -> Floats:
        """Logarithm of the density of shares, on a scale of ln(share), up to a constant."""
        scale = self.odds_log_spread / UNKNOWN_SHARE_SPREAD
        deviation = (np.log(share / (1.0 - share)) - math.log(self.odds)) / scale
        return np.asarray(-deviation - 2.0 * np.logaddexp(0.0, -deviation) - np.log1p(-share))

    def sharpnesses(self, count: int) -> Floats:
        """The middles of cells of equal probability; at least 1, where every worker waits for every other."""
        normal = NormalDist(math.log(self.sharpness), self.sharpness_log_spread)
        middles = [normal.inv_cdf((cell + 0.5) / count) for cell in range(count)]
        return np.maximum(np.exp(middles), 1.0)


def expected_of(
    device: str, byte_share: float, catalogue: Catalogue, learned: SharePrior = LEARNED
) -> ShareDistribution:
    """What is expected of workers on a device; ``byte_share``: what the server that holds most holds of the bytes."""
    speed = relative_speed(device, catalogue)
    is_known = speed is not None
    cv, cv_spread = UNKNOWN_CV, UNKNOWN_CV_SPREAD
    if is_known:
        cv, cv_spread = likely_variation(device, catalogue, node_shared=False).value, 0.0
    return ShareDistribution(
        odds=learned.share / (1.0 - learned.share) * byte_share**SERVER_EXPONENT * (speed if is_known else 1.0),
        odds_log_spread=learned.share_spread if is_known else UNKNOWN_SHARE_SPREAD,
        sharpness=learned.sharpest * math.exp(learned.by_variation * cv),
        sharpness_log_spread=math.hypot(learned.sharpness_spread, learned.by_variation * cv_spread),
    )


def relative_speed(device: str, catalogue: Catalogue) -> float | None:
    """Speed of an accelerator over that of a P100, at most 1; None = the catalogue does not know it.

    The geometric mean of arithmetic and memory: 0.39 for a K80, on which CM-DARE's 20 networks run at 0.39 of a P100's
    speed (0.35 to 0.56). Accelerators faster than a P100 came with faster links and servers, and nothing was measured
    of their share.
    """
    facts = catalogue.device(device) if device else None
    if facts is None:
        return None
    flops, memory = facts.get("fp32_flops_per_s", math.inf), facts.get("memory_bytes_per_s", math.inf)
    return min(math.sqrt(flops / P100_FLOPS_PER_S * memory / P100_BYTES_PER_S), 1.0)
