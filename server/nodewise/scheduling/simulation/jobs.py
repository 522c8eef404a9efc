"""Jobs of a simulation: requests, true work, and curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_floats, as_ints, freeze
from nodewise.domain.configurations import packed_nodes
from nodewise.domain.schedule import CURVE_COLUMNS, Curves

__all__ = ["JobCurve", "SimulatedJob"]


@dataclass(frozen=True, eq=False)
class JobCurve:
    """Throughput of a job on every (pool, worker devices) that it may run on; may be shared by many jobs.

    Attributes
    ----------
    pool, devices, nodes : (rows,) int
        Pool index, worker devices, and nodes that they are packed on; by pool, then by ascending devices.
    samples_per_s : (rows,) float
        Above 0.
    """

    pool: Ints
    devices: Ints
    nodes: Ints
    samples_per_s: Floats

    def __len__(self) -> int:
        return len(self.devices)

    @classmethod
    def of(cls, rates: Mapping[tuple[int, int], float], devices_per_node: Sequence[int] = ()) -> JobCurve:
        """A curve from samples/s by (pool, devices); rates of 0 are omitted.

        ``devices_per_node`` per pool (0 or not stated = one node) determines how many nodes a packed count takes.

        Raises
        ------
        ValueError
            For an invalid pool, count or rate.
        """
        rows = sorted(key for key, rate in rates.items() if rate != 0)
        for pool, devices in rows:
            if pool < 0 or devices < 1 or not 0 < rates[pool, devices] < np.inf:
                raise ValueError(
                    "a curve needs pools of 0 or more, devices of 1 or more and finite rates above 0, found "
                    f"{rates[pool, devices]} samples/s on {devices} devices of pool {pool}"
                )
        sizes = dict(enumerate(devices_per_node))
        return cls(
            pool=as_ints([pool for pool, _ in rows]),
            devices=as_ints([devices for _, devices in rows]),
            nodes=as_ints([packed_nodes(devices, sizes.get(pool) or devices) for pool, devices in rows]),
            samples_per_s=as_floats([rates[row] for row in rows]),
        )

    @cached_property
    def rates(self) -> dict[tuple[int, int], float]:
        """Samples/s by (pool, devices)."""
        keys = zip(self.pool.tolist(), self.devices.tolist())
        return dict(zip(keys, self.samples_per_s.tolist()))

    @cached_property
    def best(self) -> float:
        """The highest throughput of all rows; 0 without rows."""
        return float(self.samples_per_s.max(initial=0.0))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Distinct numbers of worker devices, ascending."""
        return tuple(sorted(set(self.devices.tolist())))

    @cached_property
    def pools(self) -> tuple[int, ...]:
        """Pools with a row, ascending."""
        return tuple(sorted(set(self.pool.tolist())))

    @classmethod
    def of_rows(cls, of: JobCurve | Curves, rows: slice | NDArray[np.bool_]) -> JobCurve:
        """Some of the rows, by slice or by mask."""
        return cls(*(freeze(getattr(of, name)[rows]) for name in CURVE_COLUMNS))

    def scale(self, factors: Floats) -> JobCurve:
        """The curve with every row's rate multiplied by its factor."""
        return JobCurve(self.pool, self.devices, self.nodes, as_floats(self.samples_per_s * factors))

    def share_rate(self, devices: Sequence[float]) -> float:
        """Samples/s on an exclusive, possibly fractional share of every pool (``devices`` by pool).

        Below a pool's smallest count the job has that count for a part of the time; between two counts it has the
        larger one for a part. The job uses several pools in turn, one at a time, so shares of time with a sum above 1
        are scaled down.
        """
        total = time = 0.0
        for pool, counts, rates in self._from_nothing:
            share = devices[pool]
            total += float(np.interp(share, counts, rates))
            time += min(1.0, share / counts[1])
        return total / max(1.0, time)

    @cached_property
    def _from_nothing(self) -> list[tuple[int, list[float], list[float]]]:
        """(pool, counts, samples/s); the first point is the origin."""
        curves = []
        for pool in self.pools:
            rows = self.pool == pool
            curves.append((pool, [0.0, *self.devices[rows].tolist()], [0.0, *self.samples_per_s[rows].tolist()]))
        return curves


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulatedJob:
    """A job as it arrives.

    Attributes
    ----------
    arrival_s : float
        Seconds from the start of simulated time.
    samples : float
        Declared work, which the policy sees, in the unit of the curve's rates.
    curve : JobCurve
        True throughput. Without rows the job can never run.
    predicted : JobCurve or None
        Throughput as the policy sees it; None = the true one. Rows that ``curve`` lacks cannot be granted.
    stop_samples : float or None
        True work of a job that ends early, which the policy does not see; None = all of ``samples``.
    requested_devices : int
    rigid : bool
        Runs on the requested devices only; else on any count of its curve.
    samples_per_step : float
        Work of a step, which rounds of whole steps do not divide; 0 = work is continuous.
    restart_cost_s : float or None
        Seconds without progress after a change of devices; None = the simulation's.
    kind : int
        Row of the simulation's ``SimulatedSharing``; -1 = it shares with no job.
    weight, queue, deadline_s, minimum_run_s, server_devices
        As in ``JobState``; ``deadline_s`` in simulated time, before inter-arrival times are scaled.
    """

    job_id: str
    arrival_s: float
    samples: float
    curve: JobCurve
    predicted: JobCurve | None = None
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
    kind: int = -1
