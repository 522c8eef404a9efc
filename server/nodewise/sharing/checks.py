"""Checks of a sharing model's answers: one answer a set, ranges in order, plausible numbers."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from nodewise.domain.sharing import DeviceShares, ShareBasis, ShareVerdict, SharingQuestion
from nodewise.hosting.soundness import is_text

__all__ = ["wrong_shares"]

MOST_SHARE: Final = 100.0
"""The largest share: a job that runs a hundred times as fast beside another as alone is an error."""
SLACK: Final = 1e-9
"""Relative error of sums of floating-point numbers in another order."""


def wrong_shares(answer: Any, question: SharingQuestion) -> str | None:
    """Why an answer is invalid; None = it is valid."""
    if not isinstance(answer, list | tuple) or len(answer) != len(question.sets):
        return f"it must answer {len(question.sets)} sets, in order"
    for place, (shares, jobs) in enumerate(zip(answer, question.sets, strict=True)):
        wrong = _wrong_with(shares, len(jobs))
        if wrong is not None:
            return f"set {place}: {wrong}"
    return None


def _wrong_with(answer: Any, count: int) -> str | None:
    if not isinstance(answer, DeviceShares):
        return f"must be DeviceShares, found {type(answer).__name__}"
    ends: tuple[Any, ...] = answer.low, answer.middle, answer.high
    if not all(isinstance(end, np.ndarray) and end.shape == (count,) and end.dtype.kind == "f" for end in ends):
        return f"low, middle and high must be float arrays of {count} jobs"
    total: Any = answer.total
    if not isinstance(total, tuple) or len(total) != 3 or not all(isinstance(each, float) for each in total):
        return "total must be three numbers"
    rows = [*zip(*(end.tolist() for end in ends), strict=True), total]
    for low, middle, high in rows:
        if not (0.0 <= low <= middle <= high < MOST_SHARE * count and math.isfinite(high)):
            return f"low, middle and high must be 0 or more and ascend, found {low:g}, {middle:g} and {high:g}"
    if abs(total[1] - math.fsum(answer.middle.tolist())) > SLACK * max(1.0, total[1]):
        return "the middle of the total must be the sum of the middles"
    return _wrong_words(answer, count)


def _wrong_words(answer: DeviceShares, count: int) -> str | None:
    verdict: Any = answer.verdict
    basis: Any = answer.basis
    memory: Any = answer.memory_bytes
    if not isinstance(verdict, ShareVerdict):
        return "verdict must be a ShareVerdict"
    if not (isinstance(basis, ShareBasis) if count > 1 else basis is None or isinstance(basis, ShareBasis)):
        return "basis must be a ShareBasis, or None of a job alone"
    if memory is not None and not (isinstance(memory, float) and 0.0 <= memory < math.inf):
        return "memory_bytes must be 0 or more, or None"
    warnings: Any = answer.warnings
    if not isinstance(warnings, tuple) or not all(is_text(each) for each in warnings):
        return "warnings must be texts"
    return None
