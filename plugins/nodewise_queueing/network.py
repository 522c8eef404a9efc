"""The closed network of one kind of worker, and the three curves between which a real system lies."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nodewise.plugin import Floats
from nodewise_laws import OverlappedMva, overlapped_mva

__all__ = ["Network"]


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
        Seconds of service that a cycle asks of each station under load.
    saved_s : tuple of float
        Seconds of the residence at each station that do not lengthen the cycle.
    residual_share : tuple of float
        What an arrival finds left of the service under way: 1 where stations are shared, less where they serve in order
        of arrival and their service hardly varies.
    """

    think_s: float
    demands_s: tuple[float, ...]
    saved_s: tuple[float, ...]
    residual_share: tuple[float, ...]

    @property
    def alone_s(self) -> float:
        """Seconds of a cycle of one worker."""
        return self.think_s + sum(max(0.0, d - s) for d, s in zip(self.demands_s, self.saved_s, strict=True))

    @property
    def knee(self) -> float:
        """Workers at which the asymptotes cross, W* = cycle / largest demand; infinite without any demand."""
        largest = max(self.demands_s)
        return self.alone_s / largest if largest > 0.0 else float("inf")

    def shared(self, population: int) -> OverlappedMva:
        """Stations shared fairly by workers out of step, for 1 to `population`: mean value analysis."""
        return overlapped_mva(
            self.demands_s, self.saved_s, self.think_s, population, residual_share=self.residual_share
        )

    def orderly_rate(self, population: int) -> Floats:
        """(n,) the asymptotic bound min(W / cycle alone, 1 / D_max): nobody waits until a station is full."""
        workers = np.arange(1, population + 1)
        shortest_s = min(max(self.demands_s), self.alone_s)
        return np.asarray(1.0 / np.maximum(self.alone_s / workers, shortest_s))

    def in_step_rate(self, population: int) -> Floats:
        """(n,) the other asymptotic bound W / (Z + W D): all workers are at the same station at the same time."""
        workers = np.arange(1, population + 1)
        demand = sum(self.demands_s)
        return np.asarray(workers / (self.alone_s + (workers - 1) * demand))

    def dearer(self, factor: float) -> Network:
        """All demands multiplied, alone as under load."""
        return replace(
            self,
            demands_s=tuple(demand * factor for demand in self.demands_s),
            saved_s=tuple(saved * factor for saved in self.saved_s),
        )

    def slower(self, factor: float) -> Network:
        """Compute multiplied."""
        return replace(self, think_s=self.think_s * factor)
