"""One-queue models of a job whose phases nobody timed.

Every share that the servers may have of a cycle is one hypothesis, with what it says of a step's growth with workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, SyncMode
from nodewise_laws import asymptotic_bounds, exact_mva_many, expected_maximum_gamma

__all__ = ["Hypotheses", "Shape", "hypotheses_of", "shape_of"]

SMALLEST_SHARE: Final = 1e-4
"""Least share of one worker's cycle at the servers that is told from none: its knee lies at 10,000 workers."""

_SHARES: Final = {SyncMode.ASYNC: 121, SyncMode.SYNC: 41}

ORDERS: Final = (np.arange(5) + 0.5) / 5.0
"""Where between processor sharing (0) and the asymptotic bound (1) an asynchronous job may lie: the middles of five
equal cells. First come, first served with regular times is next to the bound, irregular times or fair sharing at 0, and
throughputs do not tell which a server is."""

VARIATIONS: Final = np.geomspace(0.01, 0.5, 17)
"""Coefficients of variation of compute that a synchronous job may have: from a machine's jitter to the widest that the
project's testbed ran; evenly in the logarithm, for nothing tells its scale."""

EXACT_POPULATION: Final = 1024
"""Workers up to which a curve is exact; beyond, it keeps its distance from the asymptotic bound. Shares whose knee lies
as far out, below 1 / 1024, come out too slow there, by less than their contention."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Hypotheses:
    """Models of one mode, for a cycle of one worker that takes 1.

    Attributes
    ----------
    share : (h,) part of one worker's cycle that is spent at the servers.
    order : (h,) place between processor sharing and the asymptotic bound; 0 where the mode does not ask.
    variation : (h,) coefficient of variation of compute; 0 where the mode does not ask.
    log_prior : (h,) ln of the weight before any measurement.
    """

    mode: SyncMode
    share: Floats
    order: Floats
    variation: Floats
    log_prior: Floats

    def __len__(self) -> int:
        return len(self.share)

    def take(self, rows: Ints) -> Hypotheses:
        """Some of them."""
        columns = {name: getattr(self, name)[rows] for name in ("share", "order", "variation", "log_prior")}
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


def hypotheses_of(mode: SyncMode) -> Hypotheses:
    """All hypotheses of a mode.

    ASYNC: the share is a proportion and the order a place between two limits; nothing is known of either, so both are
    even (T. Bayes and P. S. de Laplace). SYNC: the share and the variation of compute explain the same growth of a
    round and must start alike; both are scales, p(s) ~ 1 / s.
    """
    # The grid stops short of 1, where compute would take no time.
    share = np.geomspace(SMALLEST_SHARE, 1.0, _SHARES[mode] + 1)[:-1]
    if mode == SyncMode.ASYNC:
        orders = len(ORDERS)
        shares = np.repeat(share, orders)
        return Hypotheses(
            mode=mode,
            share=shares,
            order=np.tile(ORDERS, len(share)),
            variation=np.zeros_like(shares),
            # On a logarithmic grid an even density weighs s.
            log_prior=np.log(shares),
        )
    variations = len(VARIATIONS)
    return Hypotheses(
        mode=mode,
        share=np.repeat(share, variations),
        order=np.zeros(variations * len(share)),
        variation=np.tile(VARIATIONS, len(share)),
        log_prior=np.zeros(variations * len(share)),
    )


def shape_of(hypotheses: Hypotheses, workers: Ints, *, demand_factor: float, compute_factor: float) -> Shape:
    """What each hypothesis says, with demands and compute multiplied by the factors of a setting.

    ::

        async   step = W / (X_ps^(1-o) X_bound^o)
        sync    step = W s + (1 - s) E_W

    X_ps: exact mean value analysis of one station s and think time 1 - s; E_W: expected maximum of W gamma times of
    mean 1.
    """
    think = (1.0 - hypotheses.share) * compute_factor
    if hypotheses.mode == SyncMode.ASYNC:
        step = _asynchronous(hypotheses, workers, demand_factor, compute_factor)
        compute = np.broadcast_to(think[:, np.newaxis], step.shape)
        return Shape(step=step, compute=compute, barrier=np.zeros_like(step))
    demand = hypotheses.share * demand_factor
    variations, index = np.unique(hypotheses.variation, return_inverse=True)
    slowest = _maxima(variations, workers)[index]
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


def _asynchronous(hypotheses: Hypotheses, workers: Ints, demand_factor: float, compute_factor: float) -> Floats:
    """Steps; exact curves are shared by the hypotheses that differ in the order alone."""
    share, index = np.unique(hypotheses.share, return_inverse=True)
    demand, think = share * demand_factor, (1.0 - share) * compute_factor
    population = min(int(workers.max()), EXACT_POPULATION)
    exact = exact_mva_many(demand[:, np.newaxis], think, population).throughput_per_s

    def bound(at: Ints) -> Floats:
        return asymptotic_bounds(demand[:, np.newaxis, np.newaxis], think[:, np.newaxis], at).upper_per_s

    within = np.minimum(workers, population)
    log_gap = np.maximum(np.log(bound(within) / exact[:, within - 1]), 0.0)
    shortest = workers / bound(workers)
    return np.asarray(shortest[index] * np.exp((1.0 - hypotheses.order)[:, np.newaxis] * log_gap[index]))
