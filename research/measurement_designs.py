"""Orders in which fixed designs run configurations, for comparison with what the service suggests.

A design is fixed before the first result: it knows configurations, and none of their step times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.domain.columns import Floats

__all__ = ["CRITERIA", "Row", "doubling", "optimal", "random_order"]

CRITERIA: Final = ("A-optimal", "D-optimal", "D-optimal/node")

RIDGE: Final = 1e-2
"""On the information of columns with mean 1: two points do not tell four coefficients."""


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """A configuration: machines with workers, workers in total, samples per worker (0 = not known), servers."""

    nodes: int
    workers: int
    batch: int
    servers: int = 0


def doubling(rows: Sequence[Row]) -> list[int]:
    """1, 2, 4, 8, ... nodes with the most workers that each has; then the counts between them; then the rest."""
    upwards = sorted(range(len(rows)), key=lambda index: (rows[index].nodes, -rows[index].workers))
    fullest: dict[int, int] = {}
    for index in upwards:
        fullest.setdefault(rows[index].nodes, index)
    doubled = [index for nodes, index in fullest.items() if nodes & (nodes - 1) == 0]
    between = [index for index in fullest.values() if index not in doubled]
    return [*doubled, *between, *(index for index in upwards if index not in fullest.values())]


def random_order(rows: Sequence[Row], seed: int) -> list[int]:
    """A permutation."""
    order: list[int] = np.random.default_rng(seed).permutation(len(rows)).tolist()
    return order


def optimal(rows: Sequence[Row], start: Sequence[Row], criterion: str) -> list[int]:
    """Optimal design over Ernest's features, one run at a time: what adds most to the information of those before it.

    Parameters
    ----------
    criterion : str
        "A-optimal": least trace of the inverse information, which is Ernest's own (there relaxed, under a budget).
        "D-optimal": largest determinant. "D-optimal/node": the most gain of its logarithm per node, as all runs have
        equally many steps.
    """
    columns = features([*rows, *start])
    columns /= np.maximum(columns[: len(rows)].mean(axis=0), 1e-9)
    candidates, measured = columns[: len(rows)], columns[len(rows) :]
    inverse = np.linalg.inv(measured.T @ measured + RIDGE * np.eye(columns.shape[1]))
    left, order = list(range(len(rows))), []
    while left:
        along = candidates[left] @ inverse
        leverage = np.einsum("ij,ij->i", along, candidates[left])
        if criterion == "A-optimal":
            gain = np.einsum("ij,ij->i", along, along) / (1.0 + leverage)
        else:
            gain = np.log1p(leverage)
        if criterion == "D-optimal/node":
            gain = gain / np.array([rows[index].nodes + rows[index].servers for index in left])
        best = int(np.argmax(gain))
        inverse = inverse - np.outer(along[best], along[best]) / (1.0 + leverage[best])
        order.append(left.pop(best))
    return order


def features(rows: Sequence[Row]) -> Floats:
    """(rows, 4) Ernest's features of a step: 1, samples per worker, workers, ln workers.

    S. Venkataraman et al., "Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics", NSDI 2016.
    """
    workers = np.array([float(row.workers) for row in rows])
    batch = np.array([float(max(row.batch, 1)) for row in rows])
    return np.stack([np.ones(len(rows)), batch, workers, np.log(workers)], axis=1)
