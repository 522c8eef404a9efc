"""Step time as a curve of the batch at one configuration: straight lines between what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, as_floats

from .points import Points

__all__ = ["BatchCurve"]

FLOOR: Final = 0.1
"""A line that is continued beyond the measured batches ends at this share of the smallest batch's step."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchCurve:
    """Piecewise linear in the batch, continued linearly beyond both ends.

    One measured batch tells no slope: the time is then proportional to the samples.

    Attributes
    ----------
    batch_samples, step_s : float
        Corners, by ascending batch.
    """

    batch_samples: Floats
    step_s: Floats

    @staticmethod
    def of(points: Points) -> BatchCurve:
        """The curve through points that differ in batch (points of equal batch are averaged)."""
        batches, at = np.unique(points.rows.batch_samples, return_inverse=True)
        step_s = np.bincount(at, points.step_s) / np.bincount(at)
        return BatchCurve(as_floats(batches), as_floats(step_s))

    def at(self, batch_samples: Floats) -> Floats:
        """Seconds per step; NaN where one of the batches, measured or asked about, is unknown and they differ."""
        corners, step_s = self.batch_samples, self.step_s
        if len(corners) == 1:
            known = (batch_samples > 0) & (corners[0] > 0)
            scale = np.divide(batch_samples, corners[0], out=np.full(len(batch_samples), np.nan), where=known)
            return as_floats(step_s[0] * np.where(batch_samples == corners[0], 1.0, scale))
        slopes = np.diff(step_s) / np.diff(corners)
        within = np.interp(batch_samples, corners, step_s)
        below = step_s[0] + slopes[0] * (batch_samples - corners[0])
        above = step_s[-1] + slopes[-1] * (batch_samples - corners[-1])
        line = np.where(batch_samples < corners[0], below, np.where(batch_samples > corners[-1], above, within))
        known = (batch_samples > 0) | (batch_samples == corners[0])
        return as_floats(np.where(known, np.maximum(line, FLOOR * step_s[0]), np.nan))
