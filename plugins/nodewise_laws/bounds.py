"""Bounds of closed queueing networks: what holds without solving them.

Every function broadcasts: `demands_s` has the stations on its last axis, and its other axes broadcast
against `think_s` and `population`. One network over a whole curve: demands (K,), population (n,).
J networks: demands (J, 1, K), think (J, 1), population (n,).

Sources: E. D. Lazowska, J. Zahorjan, G. S. Graham and K. C. Sevcik, "Quantitative System Performance",
Prentice-Hall 1984, chapter 5; J. Zahorjan, K. C. Sevcik, D. L. Eager and B. Galler, "Balanced job bound
analysis of queueing networks", Comm. ACM 25(2), 1982.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, broadcast, counts, float_array, non_negative

__all__ = ["ThroughputBounds", "asymptotic_bounds", "balanced_job_bounds", "knee_population"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ThroughputBounds:
    """Cycles per second that a network cannot fall below or exceed, element by element.

    Attributes
    ----------
    lower_per_s, upper_per_s : arrays of one shape, cycles per second of all customers together.
    """

    lower_per_s: FloatArray
    upper_per_s: FloatArray


def asymptotic_bounds(demands_s: npt.ArrayLike, think_s: npt.ArrayLike, population: npt.ArrayLike) -> ThroughputBounds:
    """Bound throughput by the cases that every customer queues behind every other, and that none ever queues.

    ::

        W / (Z + W D) <= X(W) <= min(W / (Z + D), 1 / D_max),   D = sum of D_k

    Parameters
    ----------
    demands_s : (..., K) seconds of service per cycle and station, each at least 0, K at least 1.
    think_s : (...) seconds per cycle without queueing, at least 0.
    population : (...) number of customers W, whole numbers of at least 1.

    Returns
    -------
    ThroughputBounds
        Arrays of the common shape of the arguments (stations removed).

    Raises
    ------
    ValueError
        An argument is negative, not finite or does not fit the others, or a cycle takes no time.
    """
    demands, think, customers = _network(demands_s, think_s, population)
    total, largest = demands.sum(axis=-1), demands.max(axis=-1)
    return ThroughputBounds(
        lower_per_s=customers / (think + customers * total),
        upper_per_s=np.minimum(customers / (think + total), _capacity(largest)),
    )


def balanced_job_bounds(
    demands_s: npt.ArrayLike, think_s: npt.ArrayLike, population: npt.ArrayLike
) -> ThroughputBounds:
    """Bound throughput by two balanced networks, one slower and one faster; tighter than the asymptotes.

    ::

        W / (D + Z + (W-1) D_max / (1 + Z / (W D)))
            <= X(W) <= min(1 / D_max, W / (D + Z + (W-1) D_avg / (1 + Z / D)))

    D_avg is taken over the stations of positive demand: a station without customers balances nothing,
    and leaving it out tightens the upper bound.

    Parameters
    ----------
    demands_s : (..., K) seconds of service per cycle and station, each at least 0, K at least 1.
    think_s : (...) seconds per cycle without queueing, at least 0.
    population : (...) number of customers W, whole numbers of at least 1.

    Returns
    -------
    ThroughputBounds
        Arrays of the common shape of the arguments (stations removed).

    Raises
    ------
    ValueError
        An argument is negative, not finite or does not fit the others, or a cycle takes no time.
    """
    demands, think, customers = _network(demands_s, think_s, population)
    total, largest = demands.sum(axis=-1), demands.max(axis=-1)
    mean = total / np.maximum(np.count_nonzero(demands, axis=-1), 1)
    # D_max / (1 + Z / (W D)) is written as D_max W D / (W D + Z): D may be 0, the sum cannot.
    behind_largest = largest * customers * total / (customers * total + think)
    behind_mean = mean * total / (total + think)
    waiting = customers - 1
    return ThroughputBounds(
        lower_per_s=customers / (total + think + waiting * behind_largest),
        upper_per_s=np.minimum(customers / (total + think + waiting * behind_mean), _capacity(largest)),
    )


def knee_population(demands_s: npt.ArrayLike, think_s: npt.ArrayLike) -> FloatArray:
    """Population at which the two upper asymptotes cross: W* = (Z + D) / D_max.

    Parameters
    ----------
    demands_s : (..., K) seconds of service per cycle and station, each at least 0, K at least 1.
    think_s : (...) seconds per cycle without queueing, at least 0.

    Returns
    -------
    (...) array
        Number of customers, not rounded; infinite where no station has a demand, so nothing saturates.

    Raises
    ------
    ValueError
        An argument is negative, not finite or does not fit the other, or a cycle takes no time.
    """
    demands, think, _ = _network(demands_s, think_s, 1)
    return np.asarray((think + demands.sum(axis=-1)) * _capacity(demands.max(axis=-1)))


def _network(
    demands_s: npt.ArrayLike, think_s: npt.ArrayLike, population: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Validate one broadcastable family of networks."""
    demands = float_array("demands_s", demands_s)
    if demands.ndim == 0 or demands.shape[-1] == 0:
        message = f"demands_s must have at least one station on its last axis, got shape {demands.shape}"
        raise ValueError(message)
    demands = non_negative("demands_s", demands)
    think = non_negative("think_s", think_s)
    customers = counts("population", population, minimum=1)
    broadcast(demands_s=demands[..., 0], think_s=think, population=customers)
    if not np.all(demands.sum(axis=-1) + think > 1e-300):
        message = "demands_s and think_s must add up to a cycle of more than 0 seconds"
        raise ValueError(message)
    return demands, think, customers


def _capacity(largest_demand_s: FloatArray) -> FloatArray:
    """Cycles per second that the busiest station can do at most; infinite without any demand."""
    capacity: FloatArray = np.full(np.shape(largest_demand_s), np.inf)
    np.divide(1.0, largest_demand_s, out=capacity, where=largest_demand_s > 1e-300)
    return capacity
