"""Verdicts in a sentence, with their numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from nodewise.domain.sharing import DeviceShares, ShareBasis, ShareVerdict, SharingMode, SharingQuestion, SoloJob
from nodewise.domain.words import number

__all__ = ["why"]

_GIB: Final = 2**30


def why(found: DeviceShares, jobs: Sequence[SoloJob], question: SharingQuestion) -> str:
    """What the verdict follows from."""
    if found.verdict is ShareVerdict.DOES_NOT_FIT:
        return _too_large(found, jobs, question)
    if len(jobs) == 1:
        kept = f", of which its slice leaves {_range(found.total)}" if question.mode is SharingMode.MIG else ""
        return f"it has the device to itself{kept}"
    low, _, high = found.total
    total = f"together they do {_range(found.total)} of what one alone does"
    if found.basis is ShareBasis.MEASURED:
        total = f"as measured, {total}"
    if found.verdict is ShareVerdict.EXCLUSIVE:
        return f"{total}: one after the other is faster"
    if found.verdict is ShareVerdict.CONCURRENT:
        return f"{total}: more than one after the other"
    if low == high:
        return f"{total}: as much as one after the other"
    return f"{total}: that may be less or more than one after the other"


def _too_large(found: DeviceShares, jobs: Sequence[SoloJob], question: SharingQuestion) -> str:
    if question.mode is SharingMode.MIG:
        slices = math.fsum(job.slice_share or 1.0 / len(jobs) for job in jobs)
        if slices > 1.0:
            return f"their slices come to {number(slices)} of the device"
        return "a job needs more memory than its slice has"
    if found.memory_bytes is None or question.memory_bytes is None:
        return "they need more memory than the device has"
    need, room = found.memory_bytes / _GIB, question.memory_bytes / _GIB
    return f"they need {number(need)} GiB of the device's {number(room)} GiB"


def _range(total: tuple[float, float, float]) -> str:
    low, middle, high = total
    return f"{middle:.3f}" if low == high else f"{middle:.2f} ({low:.2f} to {high:.2f})"
