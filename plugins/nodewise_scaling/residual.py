"""What the form leaves over: a Gaussian process on ln T, near in configuration, near in error.

C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, chapters 2 and 8.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_scaling.form import Places

__all__ = ["RESIDUAL_SD", "centres_of", "coordinates", "covariance"]

RESIDUAL_SD: Final = 0.10
"""Standard deviation of ln T about the form: forms fitted to everything err by 8 to 13 % (median, mean) in sample."""

LENGTHS: Final = (1.0, 1.0, 1.5)
"""In ln of nodes, of workers per node, and of the batch: a factor of e apart, errors are related by 1 / e."""

NODE_STEP: Final = 0.5
"""Extra distance between one node and several: another link carries the exchange."""


def coordinates(at: Places) -> Floats:
    """(rows, 3) places in units of LENGTHS."""
    nodes = np.log(at.nodes) + NODE_STEP * (at.nodes > 1.0)
    workers = np.log(0.5 * (at.sharing + at.per_node))
    return np.asarray(np.stack([nodes, workers, np.log(at.batch)], axis=1) / np.array(LENGTHS))


def covariance(first: Floats, second: Floats) -> Floats:
    """(rows of first, rows of second): exponential kernel of variance RESIDUAL_SD**2."""
    # In place: for predictions this matrix is most of the work, and its copies were most of its time.
    distance = first @ (-2.0 * second.T)
    distance += (first**2).sum(axis=1)[:, np.newaxis]
    distance += (second**2).sum(axis=1)
    np.sqrt(np.maximum(distance, 0.0, out=distance), out=distance)
    np.exp(np.negative(distance, out=distance), out=distance)
    distance *= RESIDUAL_SD**2
    return np.asarray(distance)


def centres_of(kernel: Floats, count: int) -> Ints:
    """Rows that represent all others: greedily, those of largest remaining variance (pivoted Cholesky)."""
    left = np.diag(kernel).copy()
    factor = np.zeros((count, len(left)))
    centres = np.empty(count, dtype=np.int64)
    for index in range(count):
        row = int(np.argmax(left))
        centres[index] = row
        spanned = factor[:index, row] @ factor[:index]
        factor[index] = (kernel[row] - spanned) / np.sqrt(max(float(left[row]), 1e-12))
        left = np.maximum(left - factor[index] ** 2, 0.0)
        left[centres[: index + 1]] = -1.0
    return centres
