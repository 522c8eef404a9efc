"""Exact mean value analysis of closed queueing networks with several classes of customers.

Classes are kinds of workers (a device type each) with demands and think times of their own. The cost is
the product of (N_c + 1) over the classes, so this is for small populations.

Source: M. Reiser and S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks",
J. ACM 27(2), 1980.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, freeze
from nodewise_laws._classes import network_of_classes

__all__ = ["MAX_MULTICLASS_STATES", "MulticlassMethod", "MulticlassMva", "exact_mva_multiclass"]

MulticlassMethod = Literal["exact", "linearizer", "bard-schweitzer"]
"""How a network of several classes was solved; only the first is exact."""

MAX_MULTICLASS_STATES: Final = 1_000_000
"""Largest product of (N_c + 1) that `exact_mva_multiclass` accepts: a second or so, tens of megabytes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MulticlassMva:
    """Mean values of one network of C classes and K queueing stations at its full population.

    Attributes
    ----------
    demands_s : (C, K) seconds of service that a cycle of each class asks of each station.
    think_s : (C,) seconds that a cycle of each class spends without queueing.
    populations : (C,) customers of each class.
    throughput_per_s : (C,) cycles per second of each class, all its customers together.
    residence_s : (C, K) seconds that a cycle spends at each station; 0 for a class without customers.
    queue_length : (C, K) mean number of customers of each class at each station.
    method : what solved it.
    residual : how far an approximation was from its fixed point when it stopped: the largest change of the share of a
        class that is at a station, from 0 to 1, in the last sweep. 0 for an exact solution.
    """

    demands_s: FloatArray
    think_s: FloatArray
    populations: IntArray
    throughput_per_s: FloatArray
    residence_s: FloatArray
    queue_length: FloatArray
    method: MulticlassMethod = "exact"
    residual: float = 0.0

    @property
    def utilisation(self) -> FloatArray:
        """(C, K) share of time that each station is busy with each class: U = X D."""
        return self.throughput_per_s[:, np.newaxis] * self.demands_s


def exact_mva_multiclass(
    demands_s: npt.ArrayLike,
    think_s: npt.ArrayLike,
    populations: npt.ArrayLike,
    *,
    max_states: int = MAX_MULTICLASS_STATES,
) -> MulticlassMva:
    """Solve one network of several classes exactly at the given population of each.

    ::

        R_ck(N) = D_ck (1 + sum_j L_jk(N - 1_c));  X_c(N) = N_c / (Z_c + sum_k R_ck(N))
        L_ck(N) = X_c(N) R_ck(N);  L(0) = 0

    Exact for processor sharing; for first come, first served only where service is exponential with
    the same mean for all classes.

    Parameters
    ----------
    demands_s : (C, K) seconds of service per cycle, each at least 0.
    think_s : (C,) seconds per cycle without queueing, each at least 0.
    populations : (C,) whole numbers of at least 0, one of them at least 1.
    max_states : largest accepted product of (N_c + 1).

    Returns
    -------
    MulticlassMva
        The values at the full population.

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, some class has a cycle without
        length, or the populations need more than `max_states` states.
    """
    demands, think, customers = network_of_classes(demands_s, think_s, populations)
    classes, stations = demands.shape
    states = math.prod(number + 1 for number in customers.tolist())
    if states > max_states:
        message = (
            f"populations {customers.tolist()} need {states} states, more than max_states {max_states}; "
            "merge classes or use fewer customers"
        )
        raise ValueError(message)

    # States are numbered in mixed radix, so the state with one customer of class c fewer lies strides[c]
    # back. All states of one total population depend only on those of the total before: one array each.
    strides = np.ones(classes, dtype=np.int64)
    strides[:-1] = np.cumprod(customers[:0:-1] + 1)[::-1]
    state = np.arange(states)
    present = state[:, np.newaxis] // strides % (customers + 1)
    totals = present.sum(axis=1)
    order = np.argsort(totals, kind="stable")
    level_ends = np.cumsum(np.bincount(totals))
    queue = np.zeros((states, stations))
    for start, end in pairwise(level_ends.tolist()):
        level = order[start:end]
        for index in range(classes):
            here = level[present[level, index] > 0]
            residence = demands[index] * (1.0 + queue[here - strides[index]])
            rate = present[here, index] / (think[index] + residence.sum(axis=1))
            queue[here] += rate[:, np.newaxis] * residence

    throughput = np.zeros(classes)
    residence_s = np.zeros((classes, stations))
    for index in np.flatnonzero(customers).tolist():
        residence_s[index] = demands[index] * (1.0 + queue[-1 - strides[index]])
        throughput[index] = customers[index] / (think[index] + residence_s[index].sum())
    return MulticlassMva(
        demands_s=freeze(demands.copy()),
        think_s=freeze(think.copy()),
        populations=customers,
        throughput_per_s=freeze(throughput),
        residence_s=freeze(residence_s),
        queue_length=freeze(throughput[:, np.newaxis] * residence_s),
    )
