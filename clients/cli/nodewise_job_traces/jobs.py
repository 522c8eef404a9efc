"""Jobs from files and laws: the requested devices, the actual work, and the curves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Curve", "Job"]


@dataclass(frozen=True, eq=False)
class Curve:
    """Throughput of a job on every (pool, worker devices) that it may run on; may be shared by many jobs.

    Attributes
    ----------
    rates : mapping of (int, int) to float
        Samples/s, above 0, by pool (its place in the cluster) and worker devices, in ascending order.
    """

    rates: Mapping[tuple[int, int], float]

    def __len__(self) -> int:
        return len(self.rates)

    @classmethod
    def of(cls, rates: Mapping[tuple[int, int], float]) -> Curve:
        """A curve from samples/s by (pool, devices); rates of 0 are left out.

        Raises
        ------
        ValueError
            For a rate or count that cannot be.
        """
        rows = sorted(key for key, rate in rates.items() if rate != 0)
        for pool, devices in rows:
            if pool < 0 or devices < 1 or not 0 < rates[pool, devices] < math.inf:
                raise ValueError(
                    f"a curve needs at least 1 device and finite rates above 0, found {rates[pool, devices]} "
                    f"samples/s on {devices} devices of pool {pool}"
                )
        return cls({row: rates[row] for row in rows})

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Distinct numbers of worker devices, ascending."""
        return tuple(sorted({devices for _, devices in self.rates}))

    def rate_on(self, devices: int) -> float | None:
        """Samples/s in the first pool that has the count; None if no pool has it."""
        return next((rate for (_, count), rate in self.rates.items() if count == devices), None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Job:
    """A job as it arrives.

    Attributes
    ----------
    arrival_s : float
        Seconds from the start of simulated time.
    samples : float
        Declared work, which the policy sees, in the unit of the curve's rates.
    curve : Curve
        True throughput. Without rows the job can never run.
    predicted : Curve or None
        Throughput as the policy sees it; None = the true one.
    stop_samples : float or None
        True work, hidden from the policy, where the job ends early; None = all of ``samples``.
    requested_devices : int
    rigid : bool
        Runs on the requested devices only; else on any count of its curve.
    samples_per_step : float
        Work is indivisible below this where rounds deal out whole steps; 0 = it flows.
    restart_cost_s : float or None
        Seconds without progress after a change of devices; None = the simulation's.
    weight, queue, deadline_s, minimum_run_s, server_devices
        As in a request to schedule; ``deadline_s`` in simulated time.
    """

    job_id: str
    arrival_s: float
    samples: float
    curve: Curve
    predicted: Curve | None = None
    stop_samples: float | None = None
    requested_devices: int = 1
    rigid: bool = False
    samples_per_step: float = 0.0
    restart_cost_s: float | None = None
    weight: float = 1.0
    queue: str = ""
    deadline_s: float | None = None
    minimum_run_s: float = 0.0
    server_devices: int = 0
