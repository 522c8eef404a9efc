"""Whether jobs should share a device: shares of any number of jobs, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np

from nodewise.plugin import Floats, freeze
from nodewise_sharing.jobs import SoloJob
from nodewise_sharing.shares import Basis, PairShares, ShareModel

__all__ = ["DeviceShares", "Verdict", "share_device"]

ORDER: Final = (Basis.SOLO, Basis.PARTNER, Basis.COMPLETED, Basis.MEASURED)


class Verdict(StrEnum):
    """What sharing comes to. The total of all shares is the work done per second, 1 = one job alone."""

    DOES_NOT_FIT = "does not fit"
    """Together they need more memory than the device has."""
    EXCLUSIVE = "exclusive"
    """The total is below 1 all over its range: one after the other is faster."""
    SERIALISED = "serialised"
    """The range of the total holds 1: they take turns, and nothing is known to be gained."""
    CONCURRENT = "concurrent"
    """The total is above 1 all over its range."""


@dataclass(frozen=True, slots=True)
class DeviceShares:
    """Jobs on one device: the range of each one's share of its solo speed, its middle, and the verdict."""

    low: Floats
    middle: Floats
    high: Floats
    total: tuple[float, float, float]
    """Low end, middle and high end of the sum of shares."""
    verdict: Verdict
    basis: Basis | None
    """The weakest of what the pairs rest on; None for a job alone."""
    memory_bytes: float | None
    """What the jobs need together; None = unknown for one of them."""


def share_device(
    jobs: Sequence[SoloJob], model: ShareModel, *, device_bytes: float | None = None, coverage: float = 0.9
) -> DeviceShares:
    """Shares of one or more jobs on one device, in the mode whose pairs `model` was learned from.

    Of more than two, what each partner costs adds up: 1/s_i - 1 = sum_j (1/s_ij - 1). That is the first order of the
    arrival theorem, and exact where all are saturated (n equal jobs keep 1/n). Ends of ranges add up alike, the widest
    that partners can make it together.

    Memory: needs add up (each process has its context in its own figure). Unknown needs pass.
    """
    needs = [job.memory_bytes for job in jobs]
    memory = None if None in needs else float(sum(need for need in needs if need is not None))
    count = len(jobs)
    pairs = [(jobs[i], jobs[j]) for i in range(count) for j in range(i + 1, count)]
    if not pairs:
        one = np.ones(count)
        shares = PairShares(one, one, one, (), one, one)
        low = middle = high = freeze(one)
    else:
        shares = model.predict(pairs, coverage)
        low, middle, high = (freeze(_together(part, count)) for part in (shares.low, shares.middle, shares.high))
    if count == 2:
        total = float(shares.total_low[0]), float(middle.sum()), float(shares.total_high[0])
    else:
        total = float(low.sum()), float(middle.sum()), float(high.sum())
    basis = min(shares.basis, key=ORDER.index) if pairs else None
    return DeviceShares(low, middle, high, total, _verdict(total, count, memory, device_bytes), basis, memory)


def _together(shares: Floats, count: int) -> Floats:
    """(pairs x 2) shares of the pairs of `count` jobs -> (count,) shares among all."""
    cost = np.ones(count)
    first, second = np.triu_indices(count, 1)
    with np.errstate(divide="ignore"):
        excess = 1.0 / shares - 1.0
    np.add.at(cost, first, excess[:, 0])
    np.add.at(cost, second, excess[:, 1])
    # Shares above 1 are solo runs that were slow: several of them do not make a job faster without end.
    return 1.0 / np.maximum(cost, 0.5)


def _verdict(total: tuple[float, float, float], jobs: int, memory: float | None, device: float | None) -> Verdict:
    if memory is not None and device is not None and memory > device:
        return Verdict.DOES_NOT_FIT
    if jobs < 2 or total[2] < 1.0:
        return Verdict.EXCLUSIVE
    return Verdict.CONCURRENT if total[0] > 1.0 else Verdict.SERIALISED
