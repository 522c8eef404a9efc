"""The rules: step times at other scales from measured points, each a line or two of arithmetic.

``g`` workers, ``m`` samples per worker and step, ``T`` seconds per step, ``X = g m / T`` samples/s.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from nodewise.plugin import MEASUREMENT_LOG_SPREAD, Floats
from nodewise_simple.evidence import Points, Rows

__all__ = [
    "FIXED_LOG_SD",
    "FIXED_POWER",
    "FIXED_S",
    "RULES",
    "Curve",
    "Rule",
    "batch_line",
    "last_known",
    "line",
    "power_law",
]

Curve = Callable[[Rows], Floats]
"""Seconds per step of each row."""

Rule = Callable[[Points], Curve | str]
"""A curve through points, or what they lack."""

FIXED_S: Final = 0.08
FIXED_POWER: Final = 0.65
FIXED_LOG_SD: Final = 0.7
"""Seconds of a step that no batch changes are ``FIXED_S T^FIXED_POWER`` of the shortest measured step ``T``, and the
standard deviation of their ln: launches, the optimiser, messages. Longer steps are of deeper models, which have more of
each. Median regression over the sources of MLPerf's entries, from 2 ms of a recommender's step of 4 ms to half a second
of 55 s of the largest models: 0.087, 0.67 and 0.69, rounded towards the middle of what it is with any one source left
out, 0.053 to 0.115, 0.53 to 0.74 and 0.57 to 0.76 (research/learn_simple_rules.py)."""

LARGEST_FIXED_SHARE: Final = 0.5
"""Of the shortest measured step, what is at most taken as fixed where no run tells: more of it would be exchange."""

_GRID: Final = np.linspace(-4.0, 4.0, 129)
"""Deviations of ln of the fixed part that are tried."""

FLOOR: Final = 0.1
"""A line continued beyond the measured batches ends at this share of its nearest measured step."""


def last_known(points: Points) -> Curve:
    """``T`` of the largest measured scale that is no larger than the asked one (else of the smallest), at equal ``m``.

    Piecewise linear in ``m``, and continued so. A scale with one measured ``m`` has the slope of the largest scale with
    several, as what it adds is exchange; where there is none, a line with the usual fixed part: nearly all of a long
    step is in proportion to ``m``, a device keeps its samples/s.
    """
    scales = np.unique(points.rows.workers)
    measured = [_at_scale(points, scale) for scale in scales]
    slopes = [_slope(*each) for each in measured if len(each[0]) > 1]
    curves = [_in_batch(*each, slopes[-1] if slopes else None) for each in measured]

    def curve(rows: Rows) -> Floats:
        place = np.maximum(np.searchsorted(scales, rows.workers, side="right") - 1, 0)
        step_s = np.zeros(len(rows))
        for at in np.unique(place):
            step_s[place == at] = curves[at](rows.samples_per_worker[place == at])
        return step_s

    return curve


def batch_line(points: Points) -> Curve:
    """``T = c + s m`` with ``c, s >= 0``: exchange is hidden, and work that no batch changes is not.

    The most probable constants: relative errors of steps as large as between equal runs, and ``ln c`` about
    what it is elsewhere. Two different batches tell ``c`` by themselves, one batch leaves it where it is expected.
    """
    fixed, slope = line(points.rows.samples_per_worker, points.step_s)
    return lambda rows: fixed + slope * rows.samples_per_worker


def power_law(points: Points) -> Curve | str:
    """``ln X`` linear in ``ln g``, by least squares."""
    log_workers = np.log(points.rows.workers)
    if not log_workers.min() < log_workers.max():
        return "runs of two different numbers of workers"
    log_rate = np.log(points.rows.samples / points.step_s)
    centred = log_workers - log_workers.mean()
    slope = float(centred @ log_rate / (centred @ centred))
    level = float(log_rate.mean() - slope * log_workers.mean())
    return lambda rows: rows.samples / np.exp(level + slope * np.log(rows.workers))


RULES: Final[dict[str, Rule]] = {"last-known": last_known, "batch-line": batch_line, "power-law": power_law}
"""Rules that need runs only, by the names of their estimators."""


def line(samples: Floats, step_s: Floats) -> tuple[float, float]:
    """Seconds per step that no batch changes, and seconds per sample of a worker."""
    shortest = float(step_s.min())
    middle = min(FIXED_S * shortest**FIXED_POWER, LARGEST_FIXED_SHARE * shortest)
    fixed = middle * np.exp(FIXED_LOG_SD * _GRID)
    fixed = fixed[fixed < shortest]
    rest, per_sample = 1.0 - fixed[:, None] / step_s, samples / step_s
    slope = np.maximum(rest @ per_sample, 0.0) / (per_sample @ per_sample)
    misfit = ((slope[:, None] * per_sample - rest) ** 2).sum(axis=1) / MEASUREMENT_LOG_SPREAD**2
    best = int(np.argmin(misfit + _GRID[: len(fixed)] ** 2))
    return float(fixed[best]), float(slope[best])


def _at_scale(points: Points, workers: float) -> tuple[Floats, Floats]:
    """Samples per worker, and mean step, of one number of workers."""
    own = points.rows.workers == workers
    samples, inverse = np.unique(points.rows.samples_per_worker[own], return_inverse=True)
    return samples, np.bincount(inverse, points.step_s[own]) / np.bincount(inverse)


def _slope(samples: Floats, step_s: Floats) -> float:
    """Seconds per sample over all that was measured of a scale."""
    return max(float((step_s[-1] - step_s[0]) / (samples[-1] - samples[0])), 0.0)


def _in_batch(samples: Floats, step_s: Floats, slope: float | None) -> Callable[[Floats], Floats]:
    """The curve of a scale through its points, and beyond them."""
    if len(samples) == 1:
        own = line(samples, step_s)[1] if slope is None else slope
        return lambda samples_asked: np.maximum(step_s[0] + own * (samples_asked - samples[0]), FLOOR * step_s[0])
    slopes = np.diff(step_s) / np.diff(samples)

    def curve(samples_asked: Floats) -> Floats:
        below = np.maximum(step_s[0] - slopes[0] * (samples[0] - samples_asked), FLOOR * step_s[0])
        above = np.maximum(step_s[-1] + slopes[-1] * (samples_asked - samples[-1]), FLOOR * step_s[-1])
        return np.where(
            samples_asked < samples[0],
            below,
            np.where(samples_asked > samples[-1], above, np.interp(samples_asked, samples, step_s)),
        )

    return curve
