"""Closed networks with several classes of customers: exactly where that is cheap, else by Linearizer."""

from __future__ import annotations

import math
from typing import Final

import numpy.typing as npt

from nodewise_laws._classes import network_of_classes
from nodewise_laws.linearizer import linearizer
from nodewise_laws.multiclass_mva import MulticlassMva, exact_mva_multiclass

__all__ = ["MAX_CHEAP_STATES", "multiclass"]

MAX_CHEAP_STATES: Final = 20_000
"""Largest K times product of (N_c + 1) that `multiclass` solves exactly: 5 ms, about what Linearizer takes."""


def multiclass(
    demands_s: npt.ArrayLike,
    think_s: npt.ArrayLike,
    populations: npt.ArrayLike,
    *,
    max_states: int = MAX_CHEAP_STATES,
) -> MulticlassMva:
    """Solve one network of several classes at the given population of each, by the best method that is cheap.

    Parameters
    ----------
    demands_s : (C, K) seconds of service per cycle, each at least 0.
    think_s : (C,) seconds per cycle without queueing, each at least 0.
    populations : (C,) whole numbers of at least 0, one of them at least 1.
    max_states : largest K times product of (N_c + 1) to solve exactly; 0 always takes Linearizer.

    Returns
    -------
    MulticlassMva
        `method` says which it was: "exact" (see `exact_mva_multiclass`) or "linearizer" (see there how far it errs).

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or some class has a cycle without length.
    """
    demands, think, customers = network_of_classes(demands_s, think_s, populations)
    states = math.prod(number + 1 for number in customers.tolist())
    if states * max(demands.shape[1], 1) <= max_states:
        return exact_mva_multiclass(demands, think, customers, max_states=states)
    return linearizer(demands, think, customers)
