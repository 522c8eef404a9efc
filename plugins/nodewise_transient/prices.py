"""Dollars of machines: prices are stated by tier, constant or as a series over time; none is built in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats

__all__ = ["PriceSeries", "cluster_dollars"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PriceSeries:
    """A price (or a carbon intensity) per hour that holds from each time on; the first time is the start."""

    since_s: Floats
    per_h: Floats

    def integral(self, start_s: npt.ArrayLike, end_s: npt.ArrayLike) -> Floats:
        """What a machine costs from a start to an end, neither before the first time."""
        return self._until(np.asarray(end_s)) - self._until(np.asarray(start_s))

    def _until(self, time_s: Floats) -> Floats:
        before = np.concatenate(([0.0], np.cumsum(self.per_h[:-1] * np.diff(self.since_s))))
        at = np.searchsorted(self.since_s, time_s, side="right") - 1
        return np.asarray((before[at] + self.per_h[at] * (time_s - self.since_s[at])) / 3600.0)


def cluster_dollars(
    uptimes_s: npt.ArrayLike, per_h: npt.ArrayLike, *, time_s: float, servers_per_h: float = 0.0, startup_s: float = 0.0
) -> float:
    """Dollars of workers until they go or the job ends, and of servers until it ends.

    Parameters
    ----------
    uptimes_s : each worker's life, from its creation; infinite if it was never taken.
    per_h : dollars per hour of each, or of all.
    time_s : length of the job.
    startup_s : seconds before the job that survivors and servers are billed for, too.
    """
    billed_s = np.minimum(np.asarray(uptimes_s, dtype=np.float64), time_s + startup_s)
    workers = float(np.sum(billed_s * np.asarray(per_h, dtype=np.float64)))
    return (workers + servers_per_h * (time_s + startup_s)) / 3600.0
