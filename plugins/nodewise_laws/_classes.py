"""Validation shared by the solvers of networks with several classes of customers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, counts, non_negative


def network_of_classes(
    demands_s: npt.ArrayLike, think_s: npt.ArrayLike, populations: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return demands (C, K), think times (C,) and populations (C,), or name the one that is wrong."""
    demands = non_negative("demands_s", demands_s, ndim=2)
    classes, _ = demands.shape
    think = non_negative("think_s", think_s, ndim=1)
    customers = counts("populations", populations, minimum=0)
    for name, array in (("think_s", think), ("populations", customers)):
        if array.shape != (classes,):
            message = f"{name} must have shape ({classes},), an entry per row of demands_s, got {array.shape}"
            raise ValueError(message)
    if not customers.any():
        message = f"populations must hold at least one customer, got {populations!r}"
        raise ValueError(message)
    if not np.all(demands.sum(axis=1) + think > 1e-300):
        message = "demands_s and think_s must add up to a cycle of more than 0 seconds in every class"
        raise ValueError(message)
    return demands, think, customers
