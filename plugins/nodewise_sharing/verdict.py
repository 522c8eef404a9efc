"""Whether jobs should share a device: shares of any number of jobs, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from nodewise.plugin import (
    Budget,
    DeviceShares,
    Floats,
    NodewiseError,
    Reason,
    ShareBasis,
    ShareVerdict,
    SoloJob,
    freeze,
)
from nodewise_sharing.shares import PairShares, ShareModel

__all__ = ["share_device", "share_devices", "verdict_of"]

ORDER: Final = (ShareBasis.SOLO, ShareBasis.PARTNER, ShareBasis.COMPLETED, ShareBasis.MEASURED)
CHUNK: Final = 1024
"""Pairs predicted at a time: their columns take some MB, and a budget is looked at in between."""


def share_device(
    jobs: Sequence[SoloJob], model: ShareModel, *, device_bytes: float | None = None, coverage: float = 0.9
) -> DeviceShares:
    """Shares of one set of jobs; see `share_devices`."""
    (shares,) = share_devices([jobs], model, device_bytes=device_bytes, coverage=coverage)
    return shares


def share_devices(
    sets: Sequence[Sequence[SoloJob]],
    model: ShareModel,
    *,
    device_bytes: float | None = None,
    coverage: float = 0.9,
    budget: Budget | None = None,
) -> list[DeviceShares]:
    """Shares of each of several sets of jobs on one device, in the mode whose pairs `model` was learned from.

    Of more than two, what each partner costs adds up: 1/s_i - 1 = sum_j (1/s_ij - 1). That is the first order of the
    arrival theorem, and exact where all are saturated (n equal jobs keep 1/n). Ends of ranges add up alike, the widest
    that partners can make it together.

    Memory: needs add up (each process has its context in its own figure). Unknown needs pass. Jobs are told apart by
    their names. Raises NodewiseError DEADLINE_EXCEEDED when the budget has nothing left.
    """
    places: dict[tuple[str, str], int] = {}
    pairs: list[tuple[SoloJob, SoloJob]] = []
    of_sets = [[_place(pair, places, pairs) for pair in combinations(jobs, 2)] for jobs in sets]
    parts = []
    for start in range(0, len(pairs), CHUNK):
        if budget is not None and budget.remaining_s() <= 0:
            raise NodewiseError(
                Reason.DEADLINE_EXCEEDED,
                ("the deadline passed before all pairs were predicted; ask for fewer pairs, or allow more time"),
            )
        parts.append(model.predict(pairs[start : start + CHUNK], coverage))
    return [
        _device(jobs, [_one(parts, place) for place in of_set], device_bytes)
        for jobs, of_set in zip(sets, of_sets, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is predicted of one pair: rows of low ends, middles and high ends, and ends of the total."""

    shares: Floats
    total: tuple[float, float]
    basis: ShareBasis

    @property
    def reverse(self) -> _Pair:
        return _Pair(self.shares[:, ::-1], self.total, self.basis)


def _place(
    pair: tuple[SoloJob, SoloJob], places: dict[tuple[str, str], int], pairs: list[tuple[SoloJob, SoloJob]]
) -> tuple[int, bool]:
    """Index of the answer about a pair, which is asked for in one order only, and whether the order is reversed."""
    turned = pair[0].name > pair[1].name
    pair = (pair[1], pair[0]) if turned else pair
    key = pair[0].name, pair[1].name
    if key not in places:
        places[key] = len(pairs)
        pairs.append(pair)
    return places[key], turned


def _one(parts: Sequence[PairShares], place: tuple[int, bool]) -> _Pair:
    part, row = parts[place[0] // CHUNK], place[0] % CHUNK
    shares = np.array([part.low[row], part.middle[row], part.high[row]])
    pair = _Pair(shares, (float(part.total_low[row]), float(part.total_high[row])), part.basis[row])
    return pair.reverse if place[1] else pair


def _device(jobs: Sequence[SoloJob], pairs: Sequence[_Pair], device_bytes: float | None) -> DeviceShares:
    needs = [job.memory_bytes for job in jobs]
    memory = None if None in needs else float(sum(need for need in needs if need is not None))
    count = len(jobs)
    if not pairs:
        low = middle = high = np.ones(count)
    elif count == 2:
        low, middle, high = pairs[0].shares
    else:
        low, middle, high = (_together(np.array([pair.shares[end] for pair in pairs]), count) for end in range(3))
    ends = pairs[0].total if count == 2 else (float(low.sum()), float(high.sum()))
    summed = float(middle.sum())
    total = min(ends[0], summed), summed, max(ends[1], summed)  # sums may differ by rounding
    basis = min((pair.basis for pair in pairs), key=ORDER.index) if pairs else None
    verdict = verdict_of(total, count, memory, device_bytes)
    return DeviceShares(freeze(low), freeze(middle), freeze(high), total, verdict, basis, memory)


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


def verdict_of(
    total: tuple[float, float, float], jobs: int, memory: float | None, device: float | None
) -> ShareVerdict:
    """What a total of shares comes to, of so many jobs that need so much of a device's memory (None = not known)."""
    if memory is not None and device is not None and memory > device:
        return ShareVerdict.DOES_NOT_FIT
    if jobs < 2 or total[2] < 1.0:
        return ShareVerdict.EXCLUSIVE
    return ShareVerdict.CONCURRENT if total[0] > 1.0 else ShareVerdict.SERIALISED
