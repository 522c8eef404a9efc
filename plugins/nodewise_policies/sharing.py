"""What every policy of this package shares: a view of the curves per job, and the ledger of free devices and quotas.

Conventions: jobs and pools are indexes into the cluster's state. ``devices`` counts worker devices; a job's servers
(``JobState.server_devices``) are taken besides them, in the same pool, and count against the queue's quota too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from hashlib import blake2b
from typing import Final, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Grant, Ints, JobState

__all__ = [
    "KEY_BYTES",
    "NEVER",
    "Candidates",
    "CurvePosition",
    "Ledger",
    "Segment",
    "comparable",
    "elsewhere",
    "fair_shares",
    "job_key",
    "per_job_least",
    "per_row",
    "remaining_s",
    "smallest_first",
]

BUDGET_STRIDE: Final = 32
"""Grants between two looks at the clock: a grant costs microseconds, a look about as much."""
KEY_BYTES: Final = 8
"""Of a job's name in a policy's memory."""
SHORTEST_S: Final = 1e-9
"""No job is decided about as if it ended sooner: logarithms and quotients of what is left stay numbers."""

NEVER: Final = 2**62
"""Devices that no cluster has."""
_FIRST_LOOK: Final = 64
"""Jobs that are looked at before those behind them are searched for ones that still fit; then twice as many."""
_NOTHING: Final = Grant(0)

_TIE_BITS: Final = 2.0**40
"""Bits that comparisons keep: about twelve digits, four less than a double has."""


ScalarT = TypeVar("ScalarT", bound=np.generic)


class CurvePosition(NamedTuple):
    """A job's grant on the curves: its row, and the end of the rows of its pool."""

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


def job_key(job: JobState) -> bytes:
    """The job's name in a policy's memory."""
    return blake2b(job.job_id.encode(), digest_size=KEY_BYTES).digest()


def per_row(curves: Curves, values: NDArray[ScalarT]) -> NDArray[ScalarT]:
    """A value per job as one per row of the curves."""
    return np.repeat(values, np.diff(curves.offsets))


def remaining_s(state: ClusterState, curves: Curves, *, restarts: bool) -> Floats:
    """Seconds to the end at every row of the curves, at least SHORTEST_S; infinite where nothing is trained.

    With ``restarts`` a job that has run pays its restart cost at every row but the one that it runs on.
    """
    columns, rate = state.columns, curves.samples_per_s
    left = per_row(curves, columns.remaining_samples)
    with np.errstate(over="ignore"):
        seconds: Floats = np.divide(left, rate, out=np.full(len(rate), np.inf), where=rate > 0)
    seconds = np.maximum(seconds, SHORTEST_S)
    costs = np.where(columns.has_run, columns.restart_cost_s, 0.0)
    if not restarts or not costs.any():
        return seconds
    restart_s: Floats = np.where(elsewhere(state, curves), per_row(curves, costs), 0.0)
    return np.add(seconds, restart_s)


def elsewhere(state: ClusterState, curves: Curves) -> NDArray[np.bool_]:
    """Per row of the curves whether it is another pool or count than the job runs on now."""
    columns = state.columns
    counts = np.where(columns.pool >= 0, columns.held_devices - columns.server_devices, 0)
    moved: NDArray[np.bool_] = per_row(curves, columns.pool) != curves.pool
    resized: NDArray[np.bool_] = per_row(curves, counts) != curves.devices
    return moved | resized


def per_job_least(curves: Curves, values: Floats) -> Floats:
    """Least value of every job's rows; infinite for a job without rows."""
    least = np.full(len(curves.offsets) - 1, np.inf)
    filled = np.flatnonzero(np.diff(curves.offsets) > 0)
    if len(filled):
        least[filled] = np.minimum.reduceat(values, curves.offsets[filled])
    return least


def fair_shares(state: ClusterState, curves: Curves) -> Floats:
    """Devices of the cluster in proportion to the weights of the jobs that have a curve."""
    claims = np.where(np.diff(curves.offsets) > 0, state.columns.weight, 0.0)
    shares: Floats = sum(pool.total_devices for pool in state.pools) * claims / max(claims.sum(), np.finfo(float).tiny)
    return shares


class Candidates:
    """The answered (pool, devices) of every job as segments of the curves' rows.

    Attributes
    ----------
    starts : (segments,) int
        First row of every segment, ascending.
    least : (jobs,) int
        Smallest count in any pool; more than there are for a job without a curve, which can be given nothing.
    """

    def __init__(self, curves: Curves) -> None:
        self._devices = curves.devices
        rows, offsets = len(curves.devices), curves.offsets
        begins = np.zeros(rows + 1, dtype=bool)
        begins[1:rows] = curves.pool[1:] != curves.pool[:-1]
        begins[offsets] = True
        begins[rows] = True
        self._edges = np.flatnonzero(begins)
        self._first = np.searchsorted(self._edges, offsets)
        self.starts: Ints = self._edges[:-1]
        self._pools = curves.pool[self.starts]
        self.least: Ints = np.full(len(offsets) - 1, NEVER)
        filled = np.flatnonzero(np.diff(offsets) > 0)
        if rows:
            self.least[filled] = np.minimum.reduceat(curves.devices, offsets[filled])

    def of(self, job: int) -> list[Segment]:
        """The job's segments by pool; empty = it has no curve."""
        first, last = self._first[job], self._first[job + 1]
        edges = self._edges[first : last + 1].tolist()
        return [Segment(*each) for each in zip(self._pools[first:last].tolist(), edges, edges[1:])]

    def stops(self, rows: Ints) -> Ints:
        """Where the segments of some rows end."""
        return self._edges[np.searchsorted(self._edges, rows, side="right")]

    def has(self, job: int) -> bool:
        """Whether the job has a curve."""
        return bool(self._first[job] < self._first[job + 1])

    def fitting(self, segment: Segment, max_devices: int) -> int:
        """End of the segment's rows with at most ``max_devices`` worker devices; ``segment.start`` = none fits."""
        return self.at_least(segment, max_devices + 1)

    def at_least(self, segment: Segment, devices: int) -> int:
        """First row of the segment with at least that many worker devices; ``segment.stop`` = there is none."""
        return segment.start + int(self._devices[segment.start : segment.stop].searchsorted(devices))


class Ledger:
    """One decision: what it is about, free devices per pool, what is left of each queue's quota, the grants so far.

    Opening it clears every allocation, except those of jobs within their minimum run: they keep what they hold, and it
    is subtracted first. (The service settles such jobs before it asks a policy; then they come without a curve and
    their devices are not in the pools. A job without a curve gets nothing and takes nothing from the others.)

    Attributes
    ----------
    free : list of int
        By pool.
    servers, needs : (jobs,) int
        Devices that a job's servers take besides those of its workers; both together at its smallest count.
    kept : set of int
        Jobs within their minimum run.
    """

    def __init__(self, state: ClusterState, curves: Curves, budget: Budget) -> None:
        self.state, self.curves, self._budget = state, curves, budget
        self.candidates = Candidates(curves)
        self._jobs = state.jobs
        self.servers = state.columns.server_devices
        self.needs: Ints = self.candidates.least + self.servers
        self.free = [pool.total_devices for pool in state.pools]
        self._quota = dict(state.quotas)
        self.grants = [_NOTHING] * len(state.jobs)
        self.kept: set[int] = set()
        for index in np.flatnonzero(state.columns.pool >= 0).tolist():
            job = state.jobs[index]
            current = job.current
            if current is None or job.minimum_run_s <= current.age_s or not self.candidates.has(index):
                continue
            self.kept.add(index)
            workers = current.devices - job.server_devices
            self.take(index, current.pool, workers, f"within its minimum run of {job.minimum_run_s:g} s")

    @cached_property
    def ranks(self) -> Ints:
        """Per job its place in the order of submission, which breaks ties."""
        ranks = np.empty(len(self._jobs), dtype=np.int64)
        ranks[self.state.columns.order] = np.arange(len(self._jobs))
        return ranks

    def out_of_time(self, grants: int) -> bool:
        """Whether the time is over; looks at the clock once in ``BUDGET_STRIDE`` grants, the first included."""
        return grants % BUDGET_STRIDE == 0 and self._budget.remaining_s() <= 0

    def available_devices(self, job: int, pool: int) -> int:
        """Worker devices that a job without a grant could be given in the pool; below 1 = none."""
        return min(self.free[pool], self.quota_left(job)) - self._jobs[job].server_devices

    def extra_devices(self, job: int) -> int:
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
        grant = self.grants[job]
        self._spend(job, grant.pool, devices - grant.devices)
        self.grants[job] = Grant(devices, grant.pool, why or grant.why)

    def reword(self, job: int, why: str) -> None:
        """Say otherwise why the job has its grant."""
        grant = self.grants[job]
        self.grants[job] = Grant(grant.devices, grant.pool, why)

    def _spend(self, job: int, pool: int, devices: int) -> None:
        self.free[pool] -= devices
        queue = self._jobs[job].queue
        if queue in self._quota:
            self._quota[queue] -= devices

    def fitting_together(self, pools: Ints, devices: Ints) -> int:
        """How many of these demands (devices with servers), from the first on, fit all together; 0 under quotas.

        They could be granted one after the other without looking at each.
        """
        if self._quota:
            return 0
        fit = np.ones(len(pools), dtype=bool)
        for pool, free in enumerate(self.free):
            fit &= np.cumsum(np.where(pools == pool, devices, 0)) <= free
        return len(fit) if fit.all() else int(fit.argmin())

    def has_free(self) -> bool:
        """Whether any pool has a free device."""
        return self.most_free() > 0

    def most_free(self) -> int:
        """Free devices of the pool that has most: more fits nowhere."""
        return max(self.free, default=0)

    def in_turn(self, order: Ints, needs: Ints) -> Iterator[int]:
        """Jobs in this order, but for such as cannot fit any more; a long queue costs little once devices are scarce.

        Parameters
        ----------
        needs : (jobs,) int
            Devices, servers included, below which a job cannot run.
        """
        looks = _FIRST_LOOK
        while len(order := order[needs[order] <= self.most_free()]):
            yield from order[:looks].tolist()
            order, looks = order[looks:], 2 * looks

    def opening(self, job: int, merit: Callable[[Segment], float]) -> Segment | None:
        """Where the job's smallest count fits: the pool that it runs in, else that of greatest merit (ties: first)."""
        rows, current = self.curves.devices, self._jobs[job].current
        fitting = [
            each for each in self.candidates.of(job) if rows[each.start] <= self.available_devices(job, each.pool)
        ]
        here = [each for each in fitting if current is not None and each.pool == current.pool]
        return here[0] if here else max(fitting, key=merit, default=None)

    def allocation(self, *, complete: bool = True) -> Allocation:
        """The grants as the policy's answer; its memory stays what it is."""
        return Allocation(grants=tuple(self.grants), complete=complete, memory=self.state.memory)


def smallest_first(ledger: Ledger, why: str) -> dict[int, CurvePosition] | None:
    """Give every job, by submission, its smallest count while that fits; None when the time ran out.

    A job goes to the pool that it runs in if there is room, else to the pool in which it is fastest on that count
    (ties: first pool). A job that fits nowhere is passed over.
    """
    started: dict[int, CurvePosition] = {}
    devices, rates = ledger.curves.devices, ledger.curves.samples_per_s
    for turn, job in enumerate(ledger.in_turn(ledger.state.columns.order, ledger.needs)):
        if ledger.out_of_time(turn):
            return None
        segment = None if job in ledger.kept else ledger.opening(job, lambda each: float(rates[each.start]))
        if segment is not None:
            ledger.take(job, segment.pool, int(devices[segment.start]), why)
            started[job] = CurvePosition(segment.start, segment.stop)
    return started
