"""Texts that explain verdicts with their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nodewise.domain.sharing import DeviceShares, ShareBasis, ShareVerdict, SharingMode, SharingQuestion, SoloJob
from nodewise.domain.words import number

__all__ = ["why"]

_GIB: Final = 2**30


def why(shares: DeviceShares, jobs: Sequence[SoloJob], question: SharingQuestion) -> str:
    """The reason of the verdict."""
    if shares.verdict is ShareVerdict.DOES_NOT_FIT:
        return _too_large(shares, jobs, question)
    if len(jobs) == 1:
        slice_text = f", at {_range(shares.total)} of its speed" if question.mode is SharingMode.MIG else ""
        return f"it is alone on the device{slice_text}"
    low, _, high = shares.total
    total = f"together they reach {_range(shares.total)} times the throughput of one alone"
    if shares.basis is ShareBasis.MEASURED:
        total = f"as measured, {total}"
    if shares.verdict is ShareVerdict.EXCLUSIVE:
        return f"{total}: running one after the other is faster"
    if shares.verdict is ShareVerdict.CONCURRENT:
        return f"{total}: faster than one after the other"
    if low == high:
        return f"{total}: as fast as one after the other"
    return f"{total}: slower or faster than one after the other"


def _too_large(shares: DeviceShares, jobs: Sequence[SoloJob], question: SharingQuestion) -> str:
    if question.mode is SharingMode.MIG:
        slices = math.fsum(job.slice_share or 1.0 / len(jobs) for job in jobs)
        if slices > 1.0:
            return f"their slices sum to {number(slices)} of the device, more than all of it"
        return "a job needs more memory than its slice has"
    if shares.memory_bytes is None or question.memory_bytes is None:
        return "they need more memory than the device has"
    need, capacity = shares.memory_bytes / _GIB, question.memory_bytes / _GIB
    return f"they need {number(need)} GiB, and the device has {number(capacity)} GiB"


def _range(total: tuple[float, float, float]) -> str:
    low, middle, high = total
    return f"{middle:.3f}" if low == high else f"{middle:.2f} ({low:.2f} to {high:.2f})"
