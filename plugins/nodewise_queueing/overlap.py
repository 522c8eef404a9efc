"""Closed network whose cycle is shorter than its work: part of each residence costs the worker no time.

Two effects make it so. Transfers that ran while the worker computed are hidden. And a lone transfer may be cheaper than
one under load: the burst of a link that was idle is free, but the link has to carry the bytes all the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws import exact_mva

__all__ = ["Cycles", "Stations", "cycles_of", "optimistic_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stations:
    """A closed network.

    Attributes
    ----------
    think_s : float
        Seconds per cycle without queueing: compute.
    demands_s : tuple of float
        Seconds of service that a cycle asks of each station under load.
    saved_s : tuple of float
        Seconds of the residence at each station that do not lengthen the cycle; below 0 = delay that is no queueing.
    """

    think_s: float
    demands_s: tuple[float, ...]
    saved_s: tuple[float, ...]

    @property
    def alone_s(self) -> float:
        """Seconds of a cycle of one worker."""
        return self.think_s + sum(max(0.0, d - s) for d, s in zip(self.demands_s, self.saved_s, strict=True))

    @property
    def knee(self) -> float:
        """Workers at which the asymptotes cross, W* = cycle / largest demand; infinite without any demand."""
        largest = max(self.demands_s)
        return self.alone_s / largest if largest > 0.0 else float("inf")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cycles:
    """Solved network at populations 1..n; index 0 is population 1.

    Attributes
    ----------
    rate_per_s : (n,) cycles per second of all workers together.
    exposed_s : (n, K) seconds of a cycle spent at each station and not saved.
    """

    rate_per_s: Floats
    exposed_s: Floats


def cycles_of(stations: Stations, population: int) -> Cycles:
    """Exact mean value analysis where nothing is saved; else the heuristic that keeps the load and shortens the cycle.

    ::

        R_k(n) = D_k (1 + L_k(n-1));  X(n) = n / (Z + sum_k max(0, R_k(n) - h_k));  L_k(n) = X(n) R_k(n)

    The second is not a product form. Two limits keep it physical: no station serves more than 1 / D_max (unless one
    worker alone was measured to be faster), and holds no more than n customers.
    """
    if not any(stations.saved_s):
        curve = exact_mva(stations.demands_s, stations.think_s, population)
        return Cycles(rate_per_s=curve.throughput_per_s, exposed_s=curve.residence_s)
    demands, saved, think = stations.demands_s, stations.saved_s, stations.think_s
    busiest = max(range(len(demands)), key=demands.__getitem__)
    shortest_s = min(demands[busiest], stations.alone_s)
    rates: list[float] = []
    exposed: list[list[float]] = []
    queue = [0.0] * len(demands)
    for number in range(1, population + 1):
        residence = [demand * (1.0 + length) for demand, length in zip(demands, queue, strict=True)]
        parts = [max(0.0, spent - hidden) for spent, hidden in zip(residence, saved, strict=True)]
        cycle = think + sum(parts)
        if cycle < number * shortest_s:
            parts[busiest] += number * shortest_s - cycle
            cycle = number * shortest_s
        rate = number / cycle
        rates.append(rate)
        exposed.append(parts)
        queue = [min(rate * spent, float(number)) for spent in residence]
    return Cycles(rate_per_s=np.array(rates), exposed_s=np.array(exposed))


def optimistic_rate(stations: Stations, population: int) -> Floats:
    """(n,) the asymptotic bound min(W / cycle alone, 1 / D_max): nobody waits until a station is full.

    Real systems whose phases hardly vary, served in order, lie between mean value analysis and this.
    """
    workers = np.arange(1, population + 1)
    shortest_s = min(max(stations.demands_s), stations.alone_s)
    return np.asarray(1.0 / np.maximum(stations.alone_s / workers, shortest_s))
