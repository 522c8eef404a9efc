"""Synchronous first, asynchronous after: the time of a switch after a fraction of the work.

::

    T(f) = f T_sync + (1 - f) T_async + T_switch          T_switch only where 0 < f < 1

T_sync and T_async are the times of all the work in one mode, from any throughput model or measured. Accuracy is never
predicted: which fractions reach it is data of a workload, and depends on the order (synchronous first).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats

__all__ = ["SwitchPoint", "feasible", "hybrid_s", "next_fraction", "synchronous_step_s"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchPoint:
    """A run of a workload: the share of its steps done synchronously, and the accuracy it reached."""

    fraction: float
    accuracy: float


def hybrid_s(fraction: npt.ArrayLike, *, synchronous_s: float, asynchronous_s: float, switch_s: float = 0.0) -> Floats:
    """Time of a job that is synchronous for a fraction of its steps."""
    share = np.asarray(fraction, dtype=np.float64)
    if not np.all((share >= 0.0) & (share <= 1.0)):
        raise ValueError("fraction must be from 0 to 1")
    both = (share > 0.0) & (share < 1.0)
    return share * synchronous_s + (1.0 - share) * asynchronous_s + np.where(both, switch_s, 0.0)


def synchronous_step_s(step_s: npt.ArrayLike, exchange_s: float, multipliers: npt.ArrayLike = 1.0) -> float:
    """One synchronous step: the slowest worker's, and the exchange.

    ``multipliers`` are measured slow-downs of each worker's whole step. A delay on one worker's link is no addend: each
    tensor waits for it, and where the worker's machine also hosts a share of the parameters, all workers do.
    """
    return float(np.max(np.asarray(step_s, dtype=np.float64) * np.asarray(multipliers, dtype=np.float64))) + exchange_s


def feasible(points: tuple[SwitchPoint, ...], *, least_accuracy: float) -> tuple[float, ...]:
    """The fractions that runs of this workload have shown to reach an accuracy, rising; the first is the fastest."""
    reached: dict[float, list[float]] = {}
    for point in points:
        reached.setdefault(point.fraction, []).append(point.accuracy)
    return tuple(sorted(f for f, each in reached.items() if sum(each) / len(each) >= least_accuracy))


def next_fraction(points: tuple[SwitchPoint, ...], *, least_accuracy: float, width: float = 0.01) -> float | None:
    """The fraction to try next with a job that recurs: bisection between what failed and what reached the accuracy.

    Synchronous training is taken to reach it. Absent once the two are closer than ``width``.
    """
    reached = min((p.fraction for p in points if p.accuracy >= least_accuracy), default=1.0)
    failed = max((p.fraction for p in points if p.accuracy < least_accuracy and p.fraction < reached), default=0.0)
    return 0.5 * (failed + reached) if reached - failed > width else None
