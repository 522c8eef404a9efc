"""The closed network of one kind of worker, and the three curves between which a real system is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws import flow_capped_rates, load_dependent, overlapped_mva

__all__ = ["Network", "NetworkSolution"]

CONVOLVED: Final = 512
"""Workers up to which load-dependent stations are solved exactly: the cost grows with the square."""


@dataclass(frozen=True, slots=True, eq=False)
class NetworkSolution:
    """Rates of 1 to n workers together, per second, and (n, K) seconds of a cycle spent at each station, not saved."""

    rate_per_s: Floats
    exposed_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Workers that circulate between a delay (compute) and queueing stations.

    The cycle may be shorter than its work: part of each residence then costs the worker no time. Transfers that ran
    while the worker computed are hidden. And a lone transfer may be cheaper than one under load: the burst of a link
    that was idle is free, but the link has to carry the bytes all the same.

    Attributes
    ----------
    think_s : float
        Seconds per cycle without queueing: compute, and delays that load no station.
    demands_s : tuple of float
        Seconds of service that a cycle asks of each station when it is full.
    saved_s : tuple of float
        Seconds of the residence at each station that do not lengthen the cycle.
    flows : tuple of float
        Workers that a station serves at once before they slow each other down: its rate over the most that one worker's
        own link takes; at least 1, need not be whole. A lone worker spends `flows` times the demand there.
    residual_share : tuple of float
        What an arrival finds left of the service under way: 1 where stations are shared, less where they serve in order
        of arrival and their service hardly varies.
    """

    think_s: float
    demands_s: tuple[float, ...]
    saved_s: tuple[float, ...]
    flows: tuple[float, ...]
    residual_share: tuple[float, ...]

    @property
    def alone_s(self) -> float:
        """Seconds of a cycle of one worker."""
        stations = zip(self.demands_s, self.flows, self.saved_s, strict=True)
        return self.think_s + sum(max(0.0, demand * flows - saved) for demand, flows, saved in stations)

    @property
    def knee(self) -> float:
        """Workers at which the asymptotes cross, W* = cycle / largest demand; infinite without any demand."""
        largest = max(self.demands_s)
        return self.alone_s / largest if largest > 0.0 else float("inf")

    def solve_fair_sharing(self, population: int) -> NetworkSolution:
        """Stations shared fairly by workers out of step, for 1 to `population`: mean value analysis."""
        saved = [s - d * (f - 1.0) for d, f, s in zip(self.demands_s, self.flows, self.saved_s, strict=True)]
        plain = overlapped_mva(self.demands_s, saved, self.think_s, population, residual_share=self.residual_share)
        capped = any(flows > 1.0 for flows in self.flows) and sum(self.saved_s) <= self.think_s
        if not capped:
            return NetworkSolution(plain.throughput_per_s, plain.exposed_s)
        return self._cap(NetworkSolution(plain.throughput_per_s, plain.exposed_s))

    def _cap(self, delayed: NetworkSolution) -> NetworkSolution:
        """The same where workers' links are the slower ones: stations whose rate grows with the workers present.

        Exact (convolution) for a network whose think time is shorter by what is saved, up to CONVOLVED workers; beyond,
        in the proportion found there to `delayed`, the network in which a slow link is a delay beside the queue.
        """
        population = len(delayed.rate_per_s)
        exact = min(population, CONVOLVED)
        rates = np.stack([flow_capped_rates(exact, flows) for flows in self.flows])
        alone = np.array(self.demands_s) * np.array(self.flows)
        curve = load_dependent(alone, rates, max(self.think_s - sum(self.saved_s), 0.0), exact)
        rate, exposed = delayed.rate_per_s.copy(), delayed.exposed_s.copy()
        rate[exact:] *= curve.throughput_per_s[-1] / rate[exact - 1]
        rate[:exact] = curve.throughput_per_s
        rate = np.minimum(rate, self.orderly_rate(population))
        exposed[:exact] = np.maximum(curve.residence_s - self.saved_s, 0.0)
        return NetworkSolution(rate, exposed)

    def orderly_rate(self, population: int) -> Floats:
        """(n,) the asymptotic bound min(W / cycle of one worker, 1 / D_max): no waiting until a station is full."""
        alone_s = self.alone_s
        shortest_s = min(max(self.demands_s), alone_s)
        return np.asarray(1.0 / np.maximum(alone_s / np.arange(1, population + 1), shortest_s))

    def in_step_rate(self, orderly_rate: Floats) -> Floats:
        """(n,) the other asymptotic bound W / (Z + W D): all workers are at the same station at the same time."""
        workers = np.arange(1, len(orderly_rate) + 1)
        demand = sum(self.demands_s)
        return np.minimum(workers / (self.alone_s + (workers - 1) * demand), orderly_rate)

    def dearer(self, factor: float) -> Network:
        """All demands multiplied, of one worker as under load."""
        return replace(
            self,
            demands_s=tuple(demand * factor for demand in self.demands_s),
            saved_s=tuple(saved * factor for saved in self.saved_s),
        )

    def slower(self, factor: float) -> Network:
        """Compute multiplied."""
        return replace(self, think_s=self.think_s * factor)
