"""Models of a job without phase timings.

Every share that the servers may have of a cycle, with how sharply the curve bends (ASYNC) or how compute varies (SYNC),
is one hypothesis, with what it says of a step's growth with workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, SyncMode
from nodewise_laws import expected_maximum_gamma
from nodewise_laws.order_statistics import MAX_WORKERS as MOST_WORKERS
from nodewise_queueing.servers_share import ShareDistribution

__all__ = ["Hypotheses", "Shape", "hypotheses_of", "shape_of"]

SMALLEST_SHARE: Final = 1e-4
"""Least share of one worker's cycle at the servers that differs from none: its knee is at 10,000 workers."""

_SHARES: Final = {SyncMode.ASYNC: 121, SyncMode.SYNC: 41}

SHARPNESSES: Final = 7
"""Sharpnesses of the knee that are weighed: the middles of as many cells of equal probability."""

VARIATIONS: Final = np.geomspace(0.01, 0.5, 17)
"""Coefficients of variation of compute that a synchronous job may have: from a machine's jitter to the widest that the
project's testbed ran; evenly in the logarithm, for nothing tells its scale."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hypotheses:
    """Models of one mode, for a cycle of one worker that takes 1.

    Attributes
    ----------
    share : (h,) part of one worker's cycle that is spent at the servers.
    sharpness : (h,) p of an asynchronous curve; 0 where the mode does not ask.
    variation : (h,) coefficient of variation of compute; 0 where the mode does not ask.
    log_prior : (h,) ln of the weight before any measurement.
    """

    mode: SyncMode
    share: Floats
    sharpness: Floats
    variation: Floats
    log_prior: Floats

    def __len__(self) -> int:
        return len(self.share)

    def take(self, rows: Ints) -> Hypotheses:
        """Some of them."""
        columns = {name: getattr(self, name)[rows] for name in ("share", "sharpness", "variation", "log_prior")}
        return Hypotheses(mode=self.mode, **columns)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Shape:
    """Steps of every hypothesis (rows) at every number of workers (columns), for a cycle of one worker of 1.

    Attributes
    ----------
    step, compute, barrier : a step, its compute, and its wait for the slowest worker.
    """

    step: Floats
    compute: Floats
    barrier: Floats


def hypotheses_of(mode: SyncMode, expected: ShareDistribution) -> Hypotheses:
    """All hypotheses of a mode.

    ASYNC: share and sharpness as they are expected of such a job. SYNC: the share and the variation of compute explain
    the same growth of a round and must start alike; both are scales, p(s) ~ 1 / s.
    """
    # The grid stops short of 1, where compute would take no time.
    share = np.geomspace(SMALLEST_SHARE, 1.0, _SHARES[mode] + 1)[:-1]
    if mode == SyncMode.ASYNC:
        sharpness = expected.sharpnesses(SHARPNESSES)
        return Hypotheses(
            mode=mode,
            share=np.repeat(share, SHARPNESSES),
            sharpness=np.tile(sharpness, len(share)),
            variation=np.zeros(SHARPNESSES * len(share)),
            log_prior=np.repeat(expected.log_density(share), SHARPNESSES),
        )
    variations = len(VARIATIONS)
    return Hypotheses(
        mode=mode,
        share=np.repeat(share, variations),
        sharpness=np.zeros(variations * len(share)),
        variation=np.tile(VARIATIONS, len(share)),
        log_prior=np.zeros(variations * len(share)),
    )


def shape_of(
    hypotheses: Hypotheses, workers: Ints, *, demand_factor: float, compute_factor: float, devices: int = 1
) -> Shape:
    """Predictions of each hypothesis, with demands and compute multiplied by the factors of a setting.

    ``devices``: of each worker, for all of which a synchronous round waits.

    ::

        async   step = (1 + (W^p - 1) s^p)^(1/p)
        sync    step = W s + (1 - s) E_W

    E_W: expected maximum of W gamma times of mean 1, of all devices. The soft minimum of workers' rates and the
    servers' capacity 1/s, exact for one worker: p = 1 is the pessimistic asymptotic bound, where every worker waits for
    every other, p = infinity the optimistic one; mean value analysis of one station is next to p = 3.
    """
    think, demand = (1.0 - hypotheses.share) * compute_factor, hypotheses.share * demand_factor
    if hypotheses.mode == SyncMode.ASYNC:
        alone, power = (think + demand)[:, np.newaxis], hypotheses.sharpness[:, np.newaxis]
        others = (np.power(workers, power) - 1.0) * np.power(demand[:, np.newaxis] / alone, power)
        step = alone * np.power(1.0 + others, 1.0 / power)
        compute = np.broadcast_to(think[:, np.newaxis], step.shape)
        return Shape(step=step, compute=compute, barrier=np.zeros_like(step))
    variations, index = np.unique(hypotheses.variation, return_inverse=True)
    slowest = _maxima(variations, np.minimum(workers * devices, MOST_WORKERS))[index]
    compute = np.broadcast_to(think[:, np.newaxis], slowest.shape)
    barrier = think[:, np.newaxis] * np.maximum(slowest - 1.0, 0.0)
    step = demand[:, np.newaxis] * workers + compute + barrier
    return Shape(step=step, compute=compute, barrier=barrier)


def _maxima(variations: Floats, workers: Ints) -> Floats:
    """Expected maxima, eight numbers of workers at a time: a longer table must not round its beginning otherwise."""
    spread = variations[:, np.newaxis]
    blocks = [workers[start : start + 8] for start in range(0, len(workers), 8)]
    maxima = np.concatenate([expected_maximum_gamma(1.0, spread, block) for block in blocks], axis=1)
    return np.asarray(np.where(workers == 1, 1.0, maxima))
