"""Failures at a constant rate: the best interval between checkpoints, and the share of time that is progress.

A job of N seconds saves C seconds after every W of work; it is lost at rate 1 / M, restarts in R, and what was not
saved is done again. J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future
Generation Computer Systems 22, 2006::

    E[T] = (N / W) M e^(R / M) (e^((W + C) / M) - 1)      losses may hit saves and restarts too

with its exact optimum W = M (1 + w), where w = W0(-e^(-1 - C / M)) and W0 is Lambert's function. There
e^((W + C) / M) = -1 / w, so that the share of time that is progress, N / E[T], is -w e^(-R / M).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy

from nodewise.domain.columns import Floats

__all__ = ["assumed_save_s", "best_interval_s", "expected_run_s", "useful_ratio"]

RESTART_S: Final = 600.0
"""Seconds from a failure until the job runs again, where nobody states them."""
SAVED_BYTES_PER_S: Final = 1e9
SAVE_S: Final = 60.0
SAVED: Final = ("memory_weights_bytes", "memory_optimizer_bytes")
"""Columns of memory that a checkpoint holds."""
NEAR: Final = 1e-3
"""Below it, the next term of the series is below 1e-13."""
LEAST_RATIO: Final = 1e-9
"""Of a job that fails before it can save anything: rates stay above 0."""


def best_interval_s(save_s: npt.ArrayLike, between_losses_s: npt.ArrayLike) -> Floats:
    """Work between two saves, in seconds, that minimises E[T]."""
    mean = np.asarray(between_losses_s, dtype=np.float64)
    return np.asarray(mean * (1.0 + _branch(np.asarray(save_s, dtype=np.float64) / mean)), dtype=np.float64)


def expected_run_s(
    work_s: npt.ArrayLike,
    interval_s: npt.ArrayLike,
    save_s: npt.ArrayLike,
    restart_s: npt.ArrayLike,
    between_losses_s: npt.ArrayLike,
) -> Floats:
    """E[T] in seconds; the last save counts as well."""
    mean, interval, save, restart = (
        np.asarray(each, dtype=np.float64) for each in (between_losses_s, interval_s, save_s, restart_s)
    )
    cycles = np.asarray(work_s, dtype=np.float64) / interval
    return np.asarray(cycles * mean * np.exp(restart / mean) * np.expm1((interval + save) / mean))


def useful_ratio(
    between_losses_s: npt.ArrayLike,
    save_s: npt.ArrayLike,
    restart_s: npt.ArrayLike,
    interval_s: npt.ArrayLike | None = None,
) -> Floats:
    """Share of a job's time that is progress, N / E[T]: at a stated interval, or at the best one; above 0."""
    mean = np.asarray(between_losses_s, dtype=np.float64)
    with np.errstate(over="ignore"):
        if interval_s is None:
            ratio = -_branch(np.asarray(save_s, dtype=np.float64) / mean) * np.exp(-np.asarray(restart_s) / mean)
        else:
            ratio = np.asarray(interval_s) / expected_run_s(interval_s, interval_s, save_s, restart_s, mean)
    return np.asarray(np.clip(ratio, LEAST_RATIO, 1.0), dtype=np.float64)


def _branch(saves: Floats) -> Floats:
    """The number w, of C / M; near the branch point -1 by its series, where the function itself loses digits.

    R. M. Corless et al., "On the Lambert W function", Advances in Computational Mathematics 5, 1996, eq. 4.22.
    """
    p = np.sqrt(-2.0 * np.expm1(-saves))
    series = -1.0 + p * (1.0 - p * (1.0 / 3.0 - p * 11.0 / 72.0))
    far: Any = -np.exp(-1.0 - saves)  # SciPy's stubs know no arrays of any shape
    return np.where(p < NEAR, series, scipy.special.lambertw(far).real)


def assumed_save_s(
    parameter_bytes: float | None, memory: Mapping[str, Floats], devices_per_node: Floats
) -> tuple[Floats, str]:
    """Seconds of a save in each row, and where they come from: memory of weights and optimizer, or the parameters.

    Parameters
    ----------
    memory : mapping of name to float column
        Bytes of a device by their use, as in ``Predictions.extra``.
    """
    seconds, why = SAVE_S, "the size of the model is not known"
    if parameter_bytes:
        seconds = 3.0 * parameter_bytes / SAVED_BYTES_PER_S
        why = "one node writes the parameters and two moments of each at 1 GB/s"
    per_device = sum((memory[name] for name in SAVED if name in memory), np.zeros(len(devices_per_node)))
    if per_device.any():
        why = "each node writes weights and optimizer state of its devices at 1 GB/s"
    return np.where(per_device > 0.0, per_device * devices_per_node / SAVED_BYTES_PER_S, seconds), why
