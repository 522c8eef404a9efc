"""Means and confidence intervals of the same simulation with several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Estimate", "estimate_mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Mean over repetitions and its confidence interval; ``lower`` and ``upper`` are None for one repetition."""

    mean: float
    lower: float | None
    upper: float | None
    repetitions: int


def estimate_mean(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """The mean of independent repetitions with Student's interval."""
    mean = float(np.mean(values))
    if len(values) < 2:
        return Estimate(mean=mean, lower=None, upper=None, repetitions=len(values))
    from scipy.stats import t  # noqa: PLC0415 - takes 0.5 s to import, and few callers repeat

    half = float(t.ppf((1 + confidence) / 2, len(values) - 1)) * float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return Estimate(mean=mean, lower=mean - half, upper=mean + half, repetitions=len(values))
