"""Sums and quantiles of segments of a column, bit for bit independent of the order of rows within a segment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints

__all__ = ["counts", "maxima", "means", "minima", "quantiles"]


def counts(segment: Ints, segments: int) -> Ints:
    """Rows of each segment."""
    return np.bincount(segment, minlength=segments)


def means(values: Floats | NDArray[np.bool_], segment: Ints, segments: int) -> Floats:
    """Mean of each segment; NaN where it has no rows."""
    # Sums of rounded numbers depend on their order; an order by value does not depend on the table's.
    order = np.lexsort((values, segment))
    sums = np.bincount(segment[order], weights=values[order], minlength=segments)
    with np.errstate(invalid="ignore"):
        return np.asarray(sums / counts(segment, segments))


def maxima(values: Floats, segment: Ints, segments: int) -> Floats:
    """Largest value of each segment; NaN where it has no rows."""
    return quantiles(values, segment, segments, 1.0)


def minima(values: Floats, segment: Ints, segments: int) -> Floats:
    """Smallest value of each segment; NaN where it has no rows."""
    return quantiles(values, segment, segments, 0.0)


def quantiles(values: Floats, segment: Ints, segments: int, share: float) -> Floats:
    """Quantile of each segment, linear between neighbours as ``numpy.quantile``; NaN where it has no rows."""
    result = np.full(segments, np.nan)
    rows = counts(segment, segments)
    there = rows > 0
    sorted_values = values[np.lexsort((values, segment))]
    first = (np.cumsum(rows) - rows)[there]
    position = share * (rows[there] - 1)
    below = np.floor(position).astype(np.int64)
    low = sorted_values[first + below]
    high = sorted_values[first + np.minimum(below + 1, rows[there] - 1)]
    with np.errstate(invalid="ignore"):  # NaN between infinities
        result[there] = low + (high - low) * (position - below)
    return result
