"""What a job keeps before any pair was measured, by how a device is shared: turns, overlap, slices.

All figures are shares of solo speed. The step of a job is host time and device time, the latter the busy share u of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodewise.plugin import Floats, SoloJob
from nodewise_laws import multiclass
from nodewise_sharing.jobs import busy_of

__all__ = ["mps_range", "overlap_shares", "slice_range", "turn_shares"]


def turn_shares(jobs: Sequence[SoloJob]) -> Floats:
    """Kernels take turns: each job keeps X_i / X_i alone in a closed network of the device and the jobs' hosts.

    One customer per class, device demand u_i and think time 1 - u_i: for two jobs 1 / (1 + u_1 u_2) (Reiser and
    Lavenberg, "Mean-value analysis of closed multichain queuing networks", JACM 27, 1980).
    """
    busy = np.array([busy_of(job) for job in jobs])
    return multiclass(busy[:, None], 1.0 - busy, np.ones(busy.size, dtype=np.int64)).throughput_per_s


def overlap_shares(jobs: Sequence[SoloJob]) -> Floats:
    """Kernels overlap wherever no resource is asked for more than it has: 1 / (1 + sum_r max(0, sum_i u_i,r - 1)).

    The resources are processors and device memory; an optimistic end, for cache and order of kernels stand aside.
    """
    busy = sum(busy_of(job) for job in jobs)
    memory = sum(job.memory_utilisation or 0.0 for job in jobs)
    excess = max(0.0, busy - 1.0) + max(0.0, memory - 1.0)
    return np.full(len(jobs), 1.0 / (1.0 + excess))


def mps_range(jobs: Sequence[SoloJob], filled: Sequence[float | None] = ()) -> tuple[Floats, Floats]:
    """Least and most that jobs of one context keep: turns and overlap.

    `filled` are the shares of the device that the kernels of each job fill (`processors_filled`; None = not known).
    Beside kernels that fill it nothing else is placed: then jobs take turns, and both ends are that.
    """
    turns = turn_shares(jobs)
    if any(share is not None and share >= 1.0 for share in filled):
        return turns, turns
    return turns, np.maximum(turns, overlap_shares(jobs))


def slice_range(job: SoloJob, fraction: float, filled: float | None = None) -> tuple[float, float]:
    """Least and most that a job keeps on a slice with `fraction` of the processors, whatever runs beside it.

    Its device work slows down by `filled` / `fraction`, never below 1: 1 / (1 - u + u max(1, filled / fraction)), where
    `filled` is the share of the whole device that its kernels fill (`processors_filled`, at most 1). Where that is not
    known, kernels may fill all of it or fit the slice.
    """
    if not 0.0 < fraction <= 1.0:
        raise ValueError(
            f"fraction is {fraction}: a slice must have more than 0 and at most 1 of the device's processors"
        )
    busy = busy_of(job)
    slowest = max(1.0, min(1.0, 1.0 if filled is None else filled) / fraction)
    quickest = 1.0 if filled is None else slowest
    return 1.0 / (1.0 - busy + busy * slowest), 1.0 / (1.0 - busy + busy * quickest)
