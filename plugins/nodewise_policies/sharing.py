"""What every policy of this package shares: a view of the curves per job, and the ledger of free devices and quotas.

Conventions: jobs and pools are indexes into the cluster's state. ``devices`` counts worker devices; a job's servers
(``JobState.server_devices``) are taken besides them, in the same pool, and count against the queue's quota too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Grant, Ints, JobState

__all__ = [
    "BUDGET_STRIDE",
    "Candidates",
    "Held",
    "Ledger",
    "Segment",
    "comparable",
    "elsewhere",
    "has_run",
    "out_of_time",
    "per_job_least",
    "remaining_s",
    "smallest_first",
    "submission_order",
    "submission_ranks",
    "weights",
]

BUDGET_STRIDE: Final = 32
"""Grants between two looks at the clock: a grant costs microseconds, a look about as much."""

_TIE_BITS: Final = 2.0**40
"""Bits that comparisons keep: about twelve digits, four less than a double has."""


class Held(NamedTuple):
    """What a job was granted: the row of the curves, and the end of the rows of its pool."""

    row: int
    stop: int


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


def submission_ranks(jobs: Sequence[JobState]) -> list[int]:
    """Per job its place in the order of submission."""
    ranks = [0] * len(jobs)
    for rank, job in enumerate(submission_order(jobs)):
        ranks[job] = rank
    return ranks


def remaining_s(state: ClusterState, curves: Curves, *, restarts: bool) -> Floats:
    """Seconds to the end at every row of the curves; infinite where nothing is trained.

    With ``restarts`` a job that has run pays its restart cost at every row but the one that it runs on.
    """
    jobs, lengths = state.jobs, np.diff(curves.offsets)
    left = np.repeat(np.array([job.remaining_samples for job in jobs], dtype=float), lengths)
    rate = curves.samples_per_s
    with np.errstate(over="ignore"):
        seconds: Floats = np.divide(left, rate, out=np.full(len(rate), np.inf), where=rate > 0)
    if not restarts:
        return seconds
    costs = np.array([job.restart_cost_s if has_run(job) else 0.0 for job in jobs], dtype=float)
    if not costs.any():
        return seconds
    restart_s: Floats = np.where(elsewhere(state, curves), np.repeat(costs, lengths), 0.0)
    return np.add(seconds, restart_s)


def elsewhere(state: ClusterState, curves: Curves) -> NDArray[np.bool_]:
    """Per row of the curves whether it is another pool or count than the job runs on now."""
    jobs, lengths = state.jobs, np.diff(curves.offsets)
    pools = np.array([-1 if job.current is None else job.current.pool for job in jobs], dtype=np.int64)
    counts = np.array(
        [0 if job.current is None else job.current.devices - job.server_devices for job in jobs], dtype=np.int64
    )
    moved: NDArray[np.bool_] = np.repeat(pools, lengths) != curves.pool
    resized: NDArray[np.bool_] = np.repeat(counts, lengths) != curves.devices
    return moved | resized


def per_job_least(curves: Curves, values: Floats) -> Floats:
    """Least value of every job's rows; infinite for a job without rows."""
    least = np.full(len(curves.offsets) - 1, np.inf)
    filled = np.flatnonzero(np.diff(curves.offsets) > 0)
    if len(filled):
        least[filled] = np.minimum.reduceat(values, curves.offsets[filled])
    return least


def weights(state: ClusterState) -> Floats:
    """Every job's weight."""
    return np.array([job.weight for job in state.jobs], dtype=float)


def has_run(job: JobState) -> bool:
    """Whether the job has state to restore when it starts anew."""
    return job.current is not None or job.attained_service_device_s > 0


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

    def reword(self, job: int, why: str) -> None:
        """Say otherwise why the job has its grant."""
        held = self.grants[job]
        self.grants[job] = Grant(held.devices, held.pool, why)

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


def smallest_first(
    state: ClusterState, curves: Curves, candidates: Candidates, ledger: Ledger, budget: Budget, why: str
) -> dict[int, Held] | None:
    """Give every job, by submission, its smallest count while that fits; None when the time ran out.

    A job goes to the pool that it runs in if there is room, else to the pool in which it is fastest on that count
    (ties: first pool). A job that fits nowhere is passed over.
    """
    started: dict[int, Held] = {}
    for turn, job in enumerate(submission_order(state.jobs)):
        if out_of_time(budget, turn):
            return None
        if job in ledger.kept:
            continue
        fitting = [
            segment
            for segment in candidates.segments[job]
            if candidates.devices(segment.start) <= ledger.room(job, segment.pool)
        ]
        if not fitting:
            continue
        current = state.jobs[job].current
        here = [segment for segment in fitting if current is not None and segment.pool == current.pool]
        segment = here[0] if here else max(fitting, key=lambda each: curves.samples_per_s[each.start])
        ledger.take(job, segment.pool, candidates.devices(segment.start), why)
        started[job] = Held(segment.start, segment.stop)
    return started
