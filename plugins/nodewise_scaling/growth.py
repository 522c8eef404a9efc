"""How compute grows with the batch where runs of one batch do not tell: in seconds and samples, not in shares.

A worker's compute at m samples is c + s m: seconds that no batch changes (launches, hosts, the update), and seconds per
sample. Jobs of more work per sample have deeper models, which have more to launch and to update::

    ln c = ln FIXED_S + FIXED_POWER ln s + deviation;   T = c + s m

Both parts of a step of T seconds and m samples follow from it. Their share at the smallest batch of other jobs does
not: one run may be at the smallest batch that is in use, or at the largest that fits.
"""

from __future__ import annotations

import math
from typing import Final

from nodewise.plugin import Floats
from nodewise_scaling.parameters import BATCH_SHARE, LEAST, MOST
from nodewise_scaling.points import Points

__all__ = ["with_growth"]

FIXED_S: Final = 0.5
FIXED_POWER: Final = 0.3
FIXED_LOG_SD: Final = 1.1
"""Fixed seconds where a sample takes one second, by which power of it they rise, and the deviation of their ln. Learned
from the 16 jobs of the shipped prior, from 7 ms of a recommender's 0.4 us a sample to 0.2 s of a transformer's 58 ms;
powers of 0.2 to 0.45 are as good (research/scaling.md)."""

_ROUNDS: Final = 50
"""More than Newton's steps ever need from there; they end as soon as they are close."""
_CLOSE: Final = 1e-9
"""Of ln s: a billionth of the seconds per sample."""


def with_growth(points: Points, mean: Floats, sd: Floats) -> tuple[Floats, Floats]:
    """A prior's mean and deviation of the parameters; where one batch ran, with what its seconds tell of growth.

    Runs of several batches tell themselves how compute grows.
    """
    batch = points.keys[:, 3]
    if batch.min() < batch.max():
        return mean, sd
    logit, log_sd = _growth(points.unit_s, points.smallest_batch)
    mean, sd = mean.copy(), sd.copy()
    mean[BATCH_SHARE] = min(max(logit, LEAST[BATCH_SHARE]), MOST[BATCH_SHARE])
    sd[BATCH_SHARE] = log_sd
    return mean, sd


def _growth(step_s: float, batch: float) -> tuple[float, float]:
    """Logit of the share of a step that grows with the batch, and its deviation."""
    log_s, log_batch = math.log(step_s), math.log(batch)
    # Newton's steps for ln s from where all of T is s m: there the sum is too large, and as its ln is convex and rises,
    # each step goes down and none goes too far.
    at = log_s - log_batch
    for _ in range(_ROUNDS):
        logit, slope = _split_growth(at, log_batch)
        step = (at + log_batch + math.log1p(math.exp(-logit)) - log_s) / slope
        at -= step
        if step < _CLOSE:
            break
    logit, slope = _split_growth(at, log_batch)
    return logit, FIXED_LOG_SD / slope


def _split_growth(log_per_sample_s: float, log_batch: float) -> tuple[float, float]:
    """Logit of the share that grows, and what ln of the step rises by with ln of the seconds per sample."""
    logit = log_batch + (1.0 - FIXED_POWER) * log_per_sample_s - math.log(FIXED_S)
    share = 1.0 / (1.0 + math.exp(-logit))
    return logit, share + FIXED_POWER * (1.0 - share)
