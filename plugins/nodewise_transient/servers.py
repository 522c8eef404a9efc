"""Speed of workers that share parameter servers, where no throughput model of the job is available.

A soft minimum of what the workers offer and what the servers take::

    S = ((sum of s_i)^-p + C^-p)^(-1/p)

C belongs to the model and its servers, not to the workers' device: it may come from runs on another one. Between the
corner of a fixed service (p infinite) and the slow bend of exponential queues (p near 1) lies 5.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
import scipy

from nodewise.plugin import Floats

__all__ = ["SHARPNESS", "fit_shared", "fit_worker", "shared_speed"]

SHARPNESS: Final = 5.0
"""Within the 4 to 8 that fit CM-DARE's six curves of asynchronous clusters alike (cake-lab/CM-DARE, Apache-2.0)."""
UNSEEN: Final = 2.5
"""A capacity above so many times the fastest run slows no run by more than 0.2 %: runs do not identify it."""


def shared_speed(offered: npt.ArrayLike, capacity: float) -> Floats:
    """Steps per second of workers with such a total speed when alone, at servers of a capacity (infinite: no limit)."""
    alone = np.asarray(offered, dtype=np.float64)
    if math.isinf(capacity):
        return alone
    with np.errstate(divide="ignore"):
        return np.asarray((alone**-SHARPNESS + capacity**-SHARPNESS) ** (-1.0 / SHARPNESS), dtype=np.float64)


def fit_worker(workers: npt.ArrayLike, speeds: npt.ArrayLike, *, capacity: float) -> tuple[float, float]:
    """One worker's own speed at a known capacity, and the mean absolute error of ln speed. No run moves it alone."""
    counts, log_speeds = np.asarray(workers, dtype=np.float64), np.log(np.asarray(speeds, dtype=np.float64))
    guess = float(np.median(log_speeds - np.log(counts)))

    def loss(log_speed: float) -> float:
        return float(np.mean(np.abs(np.log(shared_speed(counts * math.exp(log_speed), capacity)) - log_speeds)))

    result = scipy.optimize.minimize_scalar(
        loss, bounds=(guess - 1.0, guess + 2.0), method="bounded", options={"xatol": 1e-7}
    )
    return math.exp(float(result.x)), float(result.fun)


def fit_shared(workers: npt.ArrayLike, speeds: npt.ArrayLike) -> tuple[float, float]:
    """One worker's own speed and the servers' capacity from runs with some numbers of workers.

    The capacity is infinite where the runs do not tell it: answers are upper bounds then, and more workers, or a
    capacity of the same model from another device, are what is missing.
    """
    most = float(np.max(np.asarray(speeds, dtype=np.float64)))
    bounds = (math.log(0.8 * most), math.log(UNSEEN * most))

    def loss(log_capacity: float) -> float:
        return fit_worker(workers, speeds, capacity=math.exp(log_capacity))[1]

    grid = np.linspace(*bounds, 33)
    at = int(np.argmin([loss(float(each)) for each in grid]))
    near = (float(grid[max(at - 1, 0)]), float(grid[min(at + 1, len(grid) - 1)]))
    capacity = math.exp(
        float(scipy.optimize.minimize_scalar(loss, bounds=near, method="bounded", options={"xatol": 1e-6}).x)
    )
    if (
        capacity > 0.98 * UNSEEN * most
        or loss(math.log(capacity)) > 0.98 * fit_worker(workers, speeds, capacity=math.inf)[1]
    ):
        capacity = math.inf
    return fit_worker(workers, speeds, capacity=capacity)[0], capacity
