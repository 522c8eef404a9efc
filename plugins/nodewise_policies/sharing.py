"""What every policy of this package shares: a view of the curves per job, and the ledger of free devices and quotas.

Conventions: jobs and pools are indexes into the cluster's state. ``devices`` counts worker devices; a job's servers
(``JobState.server_devices``) are taken besides them, in the same pool, and count against the queue's quota too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Grant, Ints, JobState

__all__ = ["BUDGET_STRIDE", "Candidates", "Ledger", "Segment", "comparable", "out_of_time", "submission_order"]

BUDGET_STRIDE: Final = 32
"""Grants between two looks at the clock: a grant costs microseconds, a look about as much."""

_TIE_BITS: Final = 2.0**40
"""Bits that comparisons keep: about twelve digits, four less than a double has."""


class Segment(NamedTuple):
    """Rows ``start`` to ``stop`` of the curves: one job in one pool, by ascending devices."""

    pool: int
    start: int
    stop: int


def comparable(values: Floats) -> Floats:
    """The values rounded to twelve digits, so that ties by the formula are ties in floating point as well."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * _TIE_BITS) / _TIE_BITS, exponent)


def submission_order(jobs: Sequence[JobState]) -> list[int]:
    """Jobs by submit time, then by id: the order that breaks every tie."""
    return sorted(range(len(jobs)), key=lambda job: (jobs[job].submit_time_s, jobs[job].job_id))


def out_of_time(budget: Budget, grants: int) -> bool:
    """Whether the time is over; looks at the clock once in ``BUDGET_STRIDE`` grants, the first included."""
    return grants % BUDGET_STRIDE == 0 and budget.remaining_s() <= 0


class Candidates:
    """The answered (pool, devices) of every job as segments of the curves' rows.

    Attributes
    ----------
    segments : list of lists of Segment
        Per job, by pool; empty = the job has no curve and can be given nothing.
    starts : (segments,) int
        First row of every segment, ascending.
    """

    def __init__(self, curves: Curves) -> None:
        self._devices = curves.devices
        self.segments: list[list[Segment]] = [[] for _ in range(len(curves.offsets) - 1)]
        self.starts: Ints = np.zeros(0, dtype=np.int64)
        rows = len(curves.devices)
        if not rows:
            return
        job = np.repeat(np.arange(len(self.segments)), np.diff(curves.offsets))
        breaks = np.flatnonzero((np.diff(job) != 0) | (np.diff(curves.pool) != 0)) + 1
        self.starts = np.concatenate((np.zeros(1, dtype=np.int64), breaks))
        stops = np.concatenate((breaks, [rows]))
        firsts = zip(job[self.starts].tolist(), curves.pool[self.starts].tolist(), self.starts.tolist(), stops.tolist())
        for owner, pool, start, stop in firsts:
            self.segments[owner].append(Segment(pool, start, stop))

    def fitting(self, segment: Segment, room: int) -> int:
        """End of the segment's rows with at most ``room`` worker devices; ``segment.start`` = none fits."""
        if room < 1:
            return segment.start
        found = np.searchsorted(self._devices[segment.start : segment.stop], room, side="right")
        return segment.start + int(found)

    def at_least(self, segment: Segment, devices: int) -> int:
        """First row of the segment with at least that many worker devices; ``segment.stop`` = there is none."""
        found = np.searchsorted(self._devices[segment.start : segment.stop], devices, side="left")
        return segment.start + int(found)

    def devices(self, row: int) -> int:
        """Worker devices of a row."""
        return int(self._devices[row])


class Ledger:
    """Free devices per pool, what is left of each queue's quota, and the grants so far.

    Opening it clears every allocation, except those of jobs within their minimum run: they keep what they hold, and it
    is subtracted first. (The service settles such jobs before it asks a policy; then they come without a curve and
    their devices are not in the pools. A job without a curve gets nothing and takes nothing from the others.)
    """

    def __init__(self, state: ClusterState, candidates: Candidates) -> None:
        self._jobs = state.jobs
        self.free = [pool.total_devices for pool in state.pools]
        self._quota = dict(state.quotas)
        self.grants = [Grant(0)] * len(state.jobs)
        self.kept: set[int] = set()
        for index, job in enumerate(state.jobs):
            held = job.current
            if held is None or not candidates.segments[index] or job.minimum_run_s <= held.age_s:
                continue
            self.kept.add(index)
            workers = held.devices - job.server_devices
            self.take(index, held.pool, workers, f"within its minimum run of {job.minimum_run_s:g} s")

    def room(self, job: int, pool: int) -> int:
        """Worker devices that a job without a grant could be given in the pool; below 1 = none."""
        return min(self.free[pool], self.quota_left(job)) - self._jobs[job].server_devices

    def extra_room(self, job: int) -> int:
        """Worker devices that a job could be given on top of its grant."""
        return min(self.free[self.grants[job].pool], self.quota_left(job))

    def quota_left(self, job: int) -> int:
        """Devices that the job's queue may still take; without a quota, all that is free anywhere."""
        left = self._quota.get(self._jobs[job].queue)
        return sum(self.free) if left is None else left

    def take(self, job: int, pool: int, devices: int, why: str = "") -> None:
        """Give the job, which must have no grant, worker devices and its servers in the pool."""
        self._spend(job, pool, devices + self._jobs[job].server_devices)
        self.grants[job] = Grant(devices, pool, why)

    def raise_to(self, job: int, devices: int, why: str = "") -> None:
        """Give the job, which has a grant, more worker devices in the same pool."""
        held = self.grants[job]
        self._spend(job, held.pool, devices - held.devices)
        self.grants[job] = Grant(devices, held.pool, why or held.why)

    def _spend(self, job: int, pool: int, devices: int) -> None:
        self.free[pool] -= devices
        queue = self._jobs[job].queue
        if queue in self._quota:
            self._quota[queue] -= devices

    def has_free(self) -> bool:
        """Whether any pool has a free device."""
        return any(free > 0 for free in self.free)

    def allocation(self, memory: bytes, *, complete: bool = True) -> Allocation:
        """The grants as the policy's answer."""
        return Allocation(grants=tuple(self.grants), complete=complete, memory=memory)
