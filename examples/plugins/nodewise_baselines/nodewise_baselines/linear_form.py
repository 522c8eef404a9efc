"""Forms that are linear in their constants, fitted by non-negative least squares (NNLS)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.optimize import nnls

from nodewise.plugin import Floats, as_floats

from .points import Points
from .rows import Rows

__all__ = ["Features", "LinearCurve", "non_negative"]

Features = Callable[[Rows], Floats]
"""The terms of a form, one column each."""


EQUAL: Final = 1e-9
"""Columns, scaled to a maximum of 1, that differ by less are equal but for rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearCurve:
    """``T = features @ constants``; NaN in rows without a batch where the features need one."""

    features: Features
    constants: Floats
    needs_batch: bool = True

    def __call__(self, rows: Rows) -> Floats:
        step_s = self.features(rows) @ self.constants
        known = (rows.batch_samples > 0) | (not self.needs_batch)
        return as_floats(np.where(known, step_s, np.nan))


def non_negative(features: Features, points: Points, *, relative: bool) -> Floats:
    """Constants >= 0 that minimise the squared errors of the step time.

    Parameters
    ----------
    relative : bool
        Errors as shares of the measured step (rows divided by it); else in seconds, as the peers fit: the slowest steps
        then count most.

    Notes
    -----
    Every column is divided by its maximum, so that the solver's tolerances fit all of them. Of columns that are
    multiples of each other on these points the first alone is used: which one the solver takes would hang on rounding,
    and elsewhere they differ.
    """
    weight = 1.0 / points.step_s if relative else np.ones(len(points))
    terms = features(points.rows) * weight[:, None]
    largest = terms.max(axis=0)
    scale = np.where(largest > 0, largest, 1.0)
    scaled = terms / scale
    used = _distinct(scaled)
    constants = np.zeros(terms.shape[1])
    constants[used] = nnls(scaled[:, used], points.step_s * weight)[0] / scale[used]
    return as_floats(constants)


def _distinct(columns: Floats) -> list[int]:
    """The first of each set of equal columns."""
    used: list[int] = []
    for place in range(columns.shape[1]):
        if not any(np.allclose(columns[:, place], columns[:, other], rtol=EQUAL, atol=EQUAL) for other in used):
            used.append(place)
    return used
