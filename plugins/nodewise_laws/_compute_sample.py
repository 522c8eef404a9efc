"""A fixed sample of compute times of many workers: a Latin hypercube.

Every worker has the same 1,024 stratified times in an order of its own, so that one worker's mean is exact and, sample
by sample, adding a worker adds a time to those of the others (M. D. McKay, R. J. Beckman and W. J. Conover,
Technometrics 21(2), 1979).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import scipy

from nodewise_laws._checks import FloatArray, IntArray, freeze

SAMPLE_SIZE: Final = 1024
"""Samples of the hypercube: the standard error of a round is at most 1 / 32 of the spread of its slowest worker."""

SAMPLED_WORKERS: Final = 128
"""Number of workers in the sample that is kept."""

MOST_WORKERS: Final = 4096
"""Largest number of workers that `mixed_times` samples."""

_TIMES_AT_ONCE: Final = 1 << 19
"""Times in the sample of more workers than are kept: 4 MiB of doubles, so 128 samples of 4,096 workers."""

_SEED: Final = 20_240_229
_NEARLY_CONSTANT_CV: Final = 1e-3


@lru_cache(maxsize=32)
def relative_times(cv: float) -> FloatArray:
    """(samples, workers) compute times of mean 1."""
    return freeze(_strata(cv, SAMPLE_SIZE)[_kept_orders()])


def mixed_times(workers: IntArray, mean_s: FloatArray, cv: FloatArray) -> FloatArray:
    """(samples, W) compute times of classes of workers: how many (C,), their means and variations.

    Up to `SAMPLED_WORKERS` of them the sample is that of `relative_times`; more, at most `MOST_WORKERS`, make do with
    fewer samples.
    """
    total = int(workers.sum())
    orders = _kept_orders()[:, :total]
    if total > SAMPLED_WORKERS:
        orders = _orders(total, min(_TIMES_AT_ONCE // total, SAMPLE_SIZE))
    columns = np.split(orders, np.cumsum(workers)[:-1], axis=1)
    classes = zip(columns, mean_s.tolist(), cv.tolist(), strict=True)
    return np.concatenate([mean * _strata(spread, orders.shape[0])[order] for order, mean, spread in classes], axis=1)


def time_quantiles(cv: float, shares: FloatArray) -> FloatArray:
    """Quantiles of the gamma distribution with mean 1."""
    if cv < _NEARLY_CONSTANT_CV:
        return np.asarray(np.maximum(1.0 + cv * scipy.special.ndtri(np.maximum(shares, 1e-12)), 0.0))
    shape = 1.0 / cv**2
    return np.asarray(scipy.special.gammaincinv(shape, shares) / shape)


def _strata(cv: float, samples: int) -> FloatArray:
    """(samples,) ascending times whose mean is 1 exactly."""
    strata = time_quantiles(cv, (np.arange(samples) + 0.5) / samples)
    return np.asarray(strata / strata.mean())


@lru_cache(maxsize=1)
def _kept_orders() -> IntArray:
    """(samples, workers) for each worker an order of the strata, the same for ever."""
    return _orders(SAMPLED_WORKERS, SAMPLE_SIZE)


def _orders(workers: int, samples: int) -> IntArray:
    """(samples, workers) for each worker an order of so many strata."""
    generator = np.random.default_rng(_SEED)
    strata = np.broadcast_to(np.arange(samples), (workers, samples))
    return np.ascontiguousarray(generator.permuted(strata, axis=1).T)
