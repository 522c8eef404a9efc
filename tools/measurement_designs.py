"""Orders in which fixed designs run configurations, for comparison with what the service suggests.

A design is fixed before the first result: it knows configurations, and none of their step times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats

__all__ = ["Row", "cheapest_first", "doubling", "optimal", "random_order"]

RIDGE: Final = 1e-2
"""On the information of columns with mean 1: two points do not tell four coefficients."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A configuration: machines, workers in total, samples per worker."""

    nodes: int
    workers: int
    batch: int


def doubling(rows: Sequence[Row]) -> list[int]:
    """1, 2, 4, 8, ... nodes with the most workers that each has; then the counts in between, upwards."""
    fullest = sorted(range(len(rows)), key=lambda index: (rows[index].nodes, -rows[index].workers))
    first: dict[int, int] = {}
    for index in fullest:
        first.setdefault(rows[index].nodes, index)
    doubled = [index for nodes, index in first.items() if nodes & (nodes - 1) == 0]
    between = [index for index in first.values() if index not in doubled]
    return [*doubled, *between, *(index for index in fullest if index not in first.values())]


def cheapest_first(rows: Sequence[Row]) -> list[int]:
    """By nodes, then workers."""
    return sorted(range(len(rows)), key=lambda index: rows[index])


def random_order(rows: Sequence[Row], seed: int) -> list[int]:
    """A permutation."""
    return [int(index) for index in np.random.default_rng(seed).permutation(len(rows))]


def features(rows: Sequence[Row]) -> Floats:
    """(rows, 4) Ernest's features of a step: 1, samples per worker, workers, ln workers.

    S. Venkataraman et al., "Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics", NSDI 2016.
    """
    workers = np.array([float(row.workers) for row in rows])
    batch = np.array([float(row.batch) for row in rows])
    return np.stack([np.ones(len(rows)), batch, workers, np.log(workers)], axis=1)


def optimal(rows: Sequence[Row], start: Sequence[Row], *, criterion: str) -> list[int]:
    """Optimal design over Ernest's features, one run at a time: what adds most to the information of those before it.

    Parameters
    ----------
    criterion : str
        "A": least trace of the inverse information, Ernest's own (there relaxed and under a budget). "D": largest
        determinant. "D/cost": the gain of its logarithm per node, as all runs have equally many steps.
    """
    columns = features([*rows, *start])
    columns /= columns[: len(rows)].mean(axis=0).clip(1e-9)
    candidates, measured = columns[: len(rows)], columns[len(rows) :]
    inverse = np.linalg.inv(measured.T @ measured + RIDGE * np.eye(columns.shape[1]))
    left, order = list(range(len(rows))), []
    while left:
        along = candidates[left] @ inverse
        leverage = np.einsum("ij,ij->i", along, candidates[left])
        if criterion == "A":
            gain = np.einsum("ij,ij->i", along, along) / (1.0 + leverage)
        else:
            gain = np.log1p(leverage)
        if criterion == "D/cost":
            gain = gain / np.array([rows[index].nodes for index in left])
        best = int(np.argmax(gain))
        inverse = inverse - np.outer(along[best], along[best]) / (1.0 + leverage[best])
        order.append(left.pop(best))
    return order
