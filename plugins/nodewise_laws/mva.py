"""Exact mean value analysis of single-class closed queueing networks.

The network: `n` customers (workers) circulate for ever between one delay station, where nobody waits
(think time, computing), and `K` queueing stations of load-independent rate (links, the server's update).
With processor sharing the means below are exact for any service law of the given mean (BCMP theorem);
with first come, first served they are exact for exponential service.

Sources: M. Reiser and S. S. Lavenberg, "Mean-value analysis of closed multichain queuing networks",
J. ACM 27(2), 1980; F. Baskett, K. M. Chandy, R. R. Muntz and F. G. Palacios, "Open, closed, and mixed
networks of queues with different classes of customers", J. ACM 22(2), 1975.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsIndex

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, count, frozen, non_negative, non_negative_scalar

__all__ = ["MvaCurve", "MvaCurves", "exact_mva", "exact_mva_many"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MvaCurve:
    """What exact MVA says of one network at populations 1..n; index 0 is population 1.

    Attributes
    ----------
    demands_s : (K,) seconds of service that one cycle asks of each queueing station.
    think_s : seconds that one cycle spends without queueing.
    throughput_per_s : (n,) cycles per second of all customers together.
    residence_s : (n, K) seconds that one cycle spends at each station, waiting and in service.
    queue_length : (n, K) mean number of customers at each station, the one in service included.
    """

    demands_s: FloatArray
    think_s: float
    throughput_per_s: FloatArray
    residence_s: FloatArray
    queue_length: FloatArray

    @property
    def population(self) -> IntArray:
        """(n,) the populations 1..n that the rows stand for."""
        return np.arange(1, self.throughput_per_s.size + 1)

    @property
    def utilisation(self) -> FloatArray:
        """(n, K) share of time that each station is busy: utilisation law, U = X D."""
        return self.throughput_per_s[:, np.newaxis] * self.demands_s

    @property
    def cycle_s(self) -> FloatArray:
        """(n,) seconds of one customer's cycle: Little's law, n / X = Z + sum of R."""
        return self.population / self.throughput_per_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MvaCurves:
    """What exact MVA says of J networks at populations 1..n; column 0 is population 1.

    Attributes
    ----------
    demands_s : (J, K) seconds of service per cycle and queueing station.
    think_s : (J,) seconds per cycle without queueing.
    throughput_per_s : (J, n) cycles per second of all customers of a network together.
    residence_s : (J, n, K) seconds per cycle at each station, waiting and in service.
    queue_length : (J, n, K) mean number of customers at each station.
    """

    demands_s: FloatArray
    think_s: FloatArray
    throughput_per_s: FloatArray
    residence_s: FloatArray
    queue_length: FloatArray

    @property
    def population(self) -> IntArray:
        """(n,) the populations 1..n that the columns stand for."""
        return np.arange(1, self.throughput_per_s.shape[1] + 1)

    @property
    def utilisation(self) -> FloatArray:
        """(J, n, K) share of time that each station is busy: utilisation law, U = X D."""
        return self.throughput_per_s[:, :, np.newaxis] * self.demands_s[:, np.newaxis, :]

    @property
    def cycle_s(self) -> FloatArray:
        """(J, n) seconds of one customer's cycle: Little's law, n / X = Z + sum of R."""
        return self.population / self.throughput_per_s


def exact_mva(demands_s: npt.ArrayLike, think_s: float, population: SupportsIndex) -> MvaCurve:
    """Solve one network exactly for every population from 1 to `population`.

    ::

        R_k(n) = D_k (1 + L_k(n-1));  X(n) = n / (Z + sum_k R_k(n));  L_k(n) = X(n) R_k(n);  L_k(0) = 0

    Parameters
    ----------
    demands_s : (K,) seconds of service per cycle at each queueing station, each at least 0; K may be 0.
    think_s : seconds per cycle without queueing (delay station Z), at least 0.
    population : largest number of customers, at least 1.

    Returns
    -------
    MvaCurve
        One row per population; cost O(population x K).

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or a cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=1)
    think = non_negative_scalar("think_s", think_s)
    customers = count("population", population, minimum=1)
    service: list[float] = demands.tolist()
    _reject_cycle_out_of_range(sum(service) + think)

    # Plain floats: for a handful of stations, NumPy's cost per call exceeds that of the arithmetic.
    throughput: list[float] = []
    residence: list[float] = []
    rate, last = 0.0, service
    for number in range(1, customers + 1):
        last = [demand * (1.0 + rate * spent) for demand, spent in zip(service, last, strict=True)]
        rate = number / (think + sum(last))
        throughput.append(rate)
        residence += last
    rates = np.array(throughput)
    spent_s = np.array(residence).reshape(customers, len(service))
    return MvaCurve(
        demands_s=frozen(demands.copy()),
        think_s=think,
        throughput_per_s=frozen(rates),
        residence_s=frozen(spent_s),
        queue_length=frozen(rates[:, np.newaxis] * spent_s),
    )


def exact_mva_many(demands_s: npt.ArrayLike, think_s: npt.ArrayLike, population: SupportsIndex) -> MvaCurves:
    """Solve J networks of K stations each, exactly, for every population from 1 to `population`.

    The same recursion as `exact_mva`, over the population in Python and over the networks in NumPy:
    from about five networks on it is the quicker of the two. A network of fewer stations than K has
    its missing demands set to 0, which changes nothing.

    Parameters
    ----------
    demands_s : (J, K) seconds of service per cycle at each queueing station, each at least 0.
    think_s : (J,) or scalar, seconds per cycle without queueing, at least 0.
    population : largest number of customers, the same for all networks, at least 1.

    Returns
    -------
    MvaCurves
        One row per network, one column per population.

    Raises
    ------
    ValueError
        An argument is negative, not finite or of the wrong shape, or some cycle takes no time at all.
    """
    demands = non_negative("demands_s", demands_s, ndim=2)
    think = non_negative("think_s", think_s)
    networks, stations = demands.shape
    if think.shape not in ((), (networks,)):
        message = f"think_s must be a scalar or of shape ({networks},) to fit demands_s, got {think.shape}"
        raise ValueError(message)
    think = np.broadcast_to(think, (networks,)).copy()
    customers = count("population", population, minimum=1)
    if networks:
        cycles = demands.sum(axis=1) + think
        _reject_cycle_out_of_range(float(cycles.min()))
        _reject_cycle_out_of_range(float(cycles.max()))

    # Population is the outer axis while computing, so that each step writes one contiguous block.
    throughput = np.empty((customers, networks))
    residence = np.empty((customers, networks, stations))
    queue = np.zeros((networks, stations))
    for index in range(customers):
        spent = residence[index]
        np.multiply(demands, 1.0 + queue, out=spent)
        throughput[index] = (index + 1) / (think + spent.sum(axis=1))
        queue = throughput[index, :, np.newaxis] * spent
    residence = np.ascontiguousarray(residence.transpose(1, 0, 2))
    rates = np.ascontiguousarray(throughput.T)
    return MvaCurves(
        demands_s=frozen(demands.copy()),
        think_s=frozen(think),
        throughput_per_s=frozen(rates),
        residence_s=frozen(residence),
        queue_length=frozen(rates[:, :, np.newaxis] * residence),
    )


def _reject_cycle_out_of_range(cycle_s: float) -> None:
    """Refuse a cycle of no length, whose throughput would be infinite, and what doubles cannot hold."""
    if not 1e-300 < cycle_s < 1e300:
        message = (
            "demands_s and think_s must add up to a cycle of more than 0 seconds "
            f"(between 1e-300 and 1e300), got {cycle_s!r}"
        )
        raise ValueError(message)
