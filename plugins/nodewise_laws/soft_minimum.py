"""p-norm soft minimum: a closed form for throughput between what workers ask and what servers give.

    X = (A^-p + C^-p)^(-1/p),   A = sum of the workers' own rates,  C = capacity of the servers

p -> infinity gives the asymptotic bound min(A, C); p = 1 gives the shape of Optimus' speed function
(Y. Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning clusters", EuroSys
2018); where A = C, X = C 2^(-1/p). A heuristic and not a law of queueing: p has to come from evidence.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, broadcast, float_array, non_negative

__all__ = ["soft_minimum", "soft_minimum_demand"]


def soft_minimum(demand_per_s: npt.ArrayLike, capacity_per_s: npt.ArrayLike, order: npt.ArrayLike) -> FloatArray:
    """Throughput that `demand_per_s` gets out of `capacity_per_s`.

    Parameters
    ----------
    demand_per_s : (...) rate that the workers would reach together if nothing limited them, the sum of
        their own rates, at least 0.
    capacity_per_s : (...) rate that the servers can sustain, in the same unit, at least 0; infinite
        means no limit.
    order : (...) p, more than 0; infinite means the plain minimum.

    Returns
    -------
    (...) array
        Rate in the same unit, never above either argument; nondecreasing in each of the three.

    Raises
    ------
    ValueError
        An argument is out of its range, NaN, or does not fit the others.
    """
    demand = non_negative("demand_per_s", demand_per_s)
    capacity = _capacity(capacity_per_s)
    exponent = _order(order)
    broadcast(demand_per_s=demand, capacity_per_s=capacity, order=exponent)
    smaller, larger = np.minimum(demand, capacity), np.maximum(demand, capacity)
    # Written by the ratio of the two, which is at most 1: no power can overflow, 0 and infinity work.
    ratio = np.divide(smaller, larger, out=np.zeros(np.shape(smaller)), where=larger > 0.0)
    finite = np.isfinite(exponent)
    power = np.where(finite, exponent, 1.0)
    softened = smaller * np.exp(-np.log1p(ratio**power) / power)
    return np.asarray(np.where(finite, softened, smaller))


def soft_minimum_demand(
    throughput_per_s: npt.ArrayLike, capacity_per_s: npt.ArrayLike, order: npt.ArrayLike
) -> FloatArray:
    """Workers' own rate that makes the soft minimum reproduce a measured throughput.

    ::

        A = (X^-p - C^-p)^(-1/p)

    The soft minimum of one worker's rate is less than that rate, so a measured X(1) is not that rate.

    Parameters
    ----------
    throughput_per_s : (...) measured rate X, at least 0 and less than the capacity (at infinite order,
        at most the capacity).
    capacity_per_s : (...) rate that the servers can sustain, in the same unit; infinite means no limit.
    order : (...) p, more than 0; infinite means the plain minimum.

    Returns
    -------
    (...) array
        Rate A with `soft_minimum(A, C, p) == X`, at least X.

    Raises
    ------
    ValueError
        An argument is out of its range, NaN, or does not fit the others; a measured throughput at or
        above the capacity has no such rate.
    """
    throughput = non_negative("throughput_per_s", throughput_per_s)
    capacity = _capacity(capacity_per_s)
    exponent = _order(order)
    shape = broadcast(throughput_per_s=throughput, capacity_per_s=capacity, order=exponent)
    finite = np.broadcast_to(np.isfinite(exponent), shape)
    reachable = np.where(finite, throughput < capacity, throughput <= capacity)
    if not np.all(reachable):
        message = (
            "throughput_per_s must be less than capacity_per_s (at most, for infinite order), "
            f"got {throughput_per_s!r} and {capacity_per_s!r}"
        )
        raise ValueError(message)
    ratio = np.divide(throughput, capacity, out=np.zeros(shape), where=capacity > 0.0)
    power = np.where(np.isfinite(exponent), exponent, 1.0)
    # 1 - ratio^p without cancellation close to saturation; log 0 = -inf gives 1, as it should. Rows of
    # infinite order are replaced below, so their ratio of 1 must not divide by zero here. At a tiny order
    # the rate may exceed what doubles hold and comes out infinite.
    with np.errstate(divide="ignore", over="ignore"):
        remaining = -np.expm1(power * np.log(np.where(finite, ratio, 0.0)))
        demand = throughput * remaining ** (-1.0 / power)
    return np.asarray(np.where(finite, demand, throughput))


def _capacity(capacity_per_s: npt.ArrayLike) -> FloatArray:
    """Validate a capacity, which may be infinite."""
    capacity = float_array("capacity_per_s", capacity_per_s)
    if not np.all(capacity >= 0.0):
        message = f"capacity_per_s must be at least 0 (infinite means no limit), got {capacity_per_s!r}"
        raise ValueError(message)
    return capacity


def _order(order: npt.ArrayLike) -> FloatArray:
    """Validate an order p, which may be infinite."""
    exponent = float_array("order", order)
    if not np.all(exponent > 0.0):
        message = f"order must be more than 0 (infinite means the plain minimum), got {order!r}"
        raise ValueError(message)
    return exponent
