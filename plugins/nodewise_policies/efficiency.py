"""Least remaining time over efficiency, then fill.

Source: the policy ``hell`` of pinta-scheduler, implemented from its description. With thr(n) the throughput on n worker
devices and n_min the job's smallest answered count in that pool (1 where possible):

    rem(n) = samples left / thr(n)                      seconds
    eff(n) = thr(n) n_min / (n thr(n_min))              speed-up per device
    ratio(n) = rem(n) / eff(n) = samples left x n x thr(n_min) / (n_min thr(n)^2)

1. Schedule: among the jobs without a grant and the counts that fit, the least ratio (ties: earlier submission, smaller
   id, within a job fewer devices, then the first pool); until nothing is free or fits.
2. Fill: per scheduled job the extra devices, of those that fit, that minimise rem (the fewest that do); serve the job
   that needs the fewest (same ties) and strike it off; until nothing is free.

Within a job the least ratio is the greatest speed-up x efficiency. A straight curve takes every device and the order is
shortest remaining work first; a flat curve takes one device before the fill.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats
from nodewise_policies.sharing import Candidates, Ledger, comparable, out_of_time, submission_order

__all__ = ["EfficiencySrpt", "ratios"]


def ratios(state: ClusterState, curves: Curves, candidates: Candidates) -> Floats:
    """Remaining time over efficiency of every row, divided by the job's weight; infinite where nothing is trained."""
    rows = len(curves.devices)
    if not rows:
        return np.zeros(0)
    lengths = np.diff(np.concatenate((candidates.starts, [rows])))
    per_device = curves.samples_per_s[candidates.starts] / curves.devices[candidates.starts]
    left = np.array([job.remaining_samples / job.weight for job in state.jobs])
    work = np.repeat(left, np.diff(curves.offsets)) * curves.devices * np.repeat(per_device, lengths)
    rate = curves.samples_per_s
    with np.errstate(over="ignore", divide="ignore"):
        return comparable(np.divide(work, rate * rate, out=np.full(rows, np.inf), where=rate > 0))


class EfficiencySrpt:
    """Serves the job and count of least remaining time over efficiency; ``fill`` then gives out what is left.

    All allocations are cleared each round (jobs are malleable and may be preempted). A weight divides the job's ratio:
    weight 2 counts as half the work. The fill does not look at weights.
    """

    def __init__(self, *, fill: bool) -> None:
        self._fill = fill

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Schedule, then fill; what was granted when the time is over stands."""
        candidates = Candidates(curves)
        ledger = Ledger(state, candidates)
        ranks = [0] * len(state.jobs)
        for rank, job in enumerate(submission_order(state.jobs)):
            ranks[job] = rank
        round_ = _Round(state, curves, candidates, ledger, ranks)
        complete = round_.schedule(budget)
        if complete and self._fill:
            complete = round_.fill(budget)
        return ledger.allocation(state.memory, complete=complete)


class _Round:
    """One decision: both steps over the same ledger."""

    def __init__(
        self, state: ClusterState, curves: Curves, candidates: Candidates, ledger: Ledger, ranks: list[int]
    ) -> None:
        self._state = state
        self._curves = curves
        self._candidates = candidates
        self._ledger = ledger
        self._ranks = ranks
        self._ratios = ratios(state, curves, candidates)
        self._scheduled: list[tuple[int, int, int]] = []  # (job, row, end of its segment), in order of service

    def schedule(self, budget: Budget) -> bool:
        """Step 1 with a heap of each job's best row; False when the time ran out.

        An entry may be out of date only in one way: its row no longer fits. Free devices and quotas only shrink, so a
        job's best ratio only grows, and looking again when the entry surfaces gives what a scan of all rows would.
        """
        heap = self._first_choices()
        ledger, devices, pools = self._ledger, self._curves.devices, self._curves.pool
        while heap and ledger.has_free():
            _, rank, job, row = heap[0]
            if out_of_time(budget, len(self._scheduled)):
                return False
            count, pool = int(devices[row]), int(pools[row])
            if count > ledger.room(job, pool):
                again = self._best(job)
                if again is None:
                    heappop(heap)
                else:
                    heapreplace(heap, (float(self._ratios[again]), rank, job, again))
                continue
            heappop(heap)
            ledger.take(job, pool, count, f"remaining time over efficiency {self._ratios[row]:.6g} s")
            stop = next(segment.stop for segment in self._candidates.segments[job] if segment.pool == pool)
            self._scheduled.append((job, row, stop))
        return True

    def _first_choices(self) -> list[tuple[float, int, int, int]]:
        """(ratio, rank, job, row) of every job's best row in the empty cluster, as a heap."""
        offsets, values = self._curves.offsets, self._ratios
        filled = np.flatnonzero(np.diff(offsets) > 0)
        if not len(filled):
            return []
        least = np.minimum.reduceat(values, offsets[filled])
        tied = np.flatnonzero(values == np.repeat(least, np.diff(offsets)[filled]))
        job = np.searchsorted(offsets, tied, side="right") - 1
        order = np.lexsort((self._curves.pool[tied], self._curves.devices[tied], job))
        jobs, first = np.unique(job[order], return_index=True)
        best = tied[order[first]]
        heap = [
            (ratio, self._ranks[owner], owner, row)
            for owner, row, ratio in zip(jobs.tolist(), best.tolist(), values[best].tolist())
            if owner not in self._ledger.kept and ratio < np.inf
        ]
        heapify(heap)
        return heap

    def _best(self, job: int) -> int | None:
        """Row of least ratio among those that fit now; ties: fewer devices, then the first pool."""
        best: tuple[float, int, int, int] | None = None
        for segment in self._candidates.segments[job]:
            stop = self._candidates.fitting(segment, self._ledger.room(job, segment.pool))
            if stop == segment.start:
                continue
            row = segment.start + int(self._ratios[segment.start : stop].argmin())
            found = (float(self._ratios[row]), int(self._curves.devices[row]), segment.pool, row)
            if found[0] < np.inf and (best is None or found < best):
                best = found
        return None if best is None else best[3]

    def fill(self, budget: Budget) -> bool:
        """Step 2; False when the time ran out.

        A job's choices are the counts at which its throughput exceeds that of every smaller one: the last of them that
        fits is the first minimiser of rem. When less is free, choices that no longer fit are dropped, and the job needs
        fewer extras.
        """
        stairs = self._stairs()
        queues = {job: self._state.jobs[job].queue for job in stairs}
        fewest = [(steps[-1], self._ranks[job], job) for job, steps in stairs.items()]
        heapify(fewest)
        most: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for job, steps in stairs.items():
            most.setdefault((self._ledger.grants[job].pool, queues[job]), []).append((-steps[-1], job))
        for entries in most.values():
            heapify(entries)
        served = 0
        while fewest:
            extras, _, job = heappop(fewest)
            if job not in stairs or stairs[job][-1] != extras:
                continue
            if out_of_time(budget, served):
                return False
            served += 1
            held = self._ledger.grants[job]
            self._ledger.raise_to(job, held.devices + extras, f"{held.why}, and {extras} of the devices left over")
            del stairs[job]
            for (pool, queue), entries in most.items():
                if pool == held.pool or queue == queues[job]:
                    self._trim(entries, stairs, fewest)
        return True

    def _stairs(self) -> dict[int, list[int]]:
        """Per scheduled job the numbers of extra devices that fit and raise its throughput, ascending."""
        stairs = {}
        for job, row, end in self._scheduled:
            room = self._ledger.extra_room(job)
            if room < 1 or row + 1 == end:
                continue
            extras = self._curves.devices[row:end] - self._curves.devices[row]
            rates = comparable(self._curves.samples_per_s[row:end][extras <= room])
            peaks = np.maximum.accumulate(rates)
            steps = extras[np.flatnonzero(np.diff(peaks) > 0) + 1]
            if len(steps):
                stairs[job] = steps.tolist()
        return stairs

    def _trim(
        self, entries: list[tuple[int, int]], stairs: dict[int, list[int]], fewest: list[tuple[int, int, int]]
    ) -> None:
        """Drop the choices of jobs (of one pool and queue, most extras first) that no longer fit."""
        while entries:
            most, job = entries[0]
            if job not in stairs or stairs[job][-1] != -most:
                heappop(entries)
                continue
            room = self._ledger.extra_room(job)
            if -most <= room:
                return
            steps = stairs[job]
            while steps and steps[-1] > room:
                steps.pop()
            if steps:
                heapreplace(entries, (-steps[-1], job))
                heappush(fewest, (steps[-1], self._ranks[job], job))
            else:
                heappop(entries)
                del stairs[job]
