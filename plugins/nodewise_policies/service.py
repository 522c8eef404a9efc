"""Serving jobs by score: again and again the job and count of least score among those that fit.

Every job is served once. Ties: earlier submission, smaller id, within a job fewer devices, then the first pool.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

import numpy as np

from nodewise.plugin import Floats, Ints
from nodewise_policies.sharing import CurvePosition, Ledger

__all__ = ["Service"]

_FIRST_LOOK: Final = 256
"""Jobs that are taken out of the queue at first, then twice as many: most of a long queue is never sorted."""


class _Choice(NamedTuple):
    """A job's best row; the heap serves the least tuple."""

    score: float
    rank: int
    job: int
    row: int


@dataclass
class Service:
    """Grants by least score.

    Parameters
    ----------
    scores : (rows,) float
        Per row of the curves, at least 0, rounded so that ties are ties; infinite = never.

    Attributes
    ----------
    held : dict of int to CurvePosition
        What each served job holds, in order of service.
    """

    ledger: Ledger
    scores: Floats
    held: dict[int, CurvePosition] = field(default_factory=dict)

    def serve(self, why: Callable[[float], str]) -> bool:
        """Serve until nothing is free or fits; False when the time ran out. ``why`` words a grant by its score.

        A heap holds the best row of each of the best jobs. An entry may be out of date only in one way: its row no
        longer fits. Free devices and quotas only shrink, so a job's best score only grows, and looking again when the
        entry surfaces gives what a scan of all rows would.
        """
        jobs, rows = self._first_choices()
        heap: list[_Choice] = []
        last, looks = -np.inf, _FIRST_LOOK
        ledger, devices, pools = self.ledger, self.ledger.curves.devices, self.ledger.curves.pool
        while ledger.has_free():
            if len(jobs) and (not heap or heap[0].score > last):
                fits = ledger.needs[jobs] <= ledger.most_free()
                last, best, jobs, rows = self._select(jobs[fits], rows[fits], looks)
                looks *= 2
                if not heap:
                    done = self._serve_together(best, why)
                    if done is None:
                        return False
                    best = best[done:]
                heap += best
                heapify(heap)
                continue
            if not heap:
                break
            score, rank, job, row = heap[0]
            if ledger.out_of_time(len(self.held)):
                return False
            count, pool = int(devices[row]), int(pools[row])
            if count > ledger.available_devices(job, pool):
                again = self._best(job)
                if again is None:
                    heappop(heap)
                else:
                    heapreplace(heap, _Choice(float(self.scores[again]), rank, job, again))
                continue
            heappop(heap)
            ledger.take(job, pool, count, why(score))
            stop = next(segment.stop for segment in self.ledger.candidates.of(job) if segment.pool == pool)
            self.held[job] = CurvePosition(row, stop)
        return True

    def _select(self, jobs: Ints, rows: Ints, looks: int) -> tuple[float, list[_Choice], Ints, Ints]:
        """About so many of the best choices, in order, the last score among them, and jobs and rows that wait on."""
        scores = self.scores[rows]
        last = np.inf if len(rows) <= looks else float(np.partition(scores, looks - 1)[looks - 1])
        best = np.flatnonzero(scores <= last)
        best = best[np.lexsort((self.ledger.ranks[jobs[best]], scores[best]))]
        job = jobs[best]
        columns = (scores[best].tolist(), self.ledger.ranks[job].tolist(), job.tolist(), rows[best].tolist())
        waits = scores > last
        return last, list(map(_Choice, *columns)), jobs[waits], rows[waits]

    def _serve_together(self, best: list[_Choice], why: Callable[[float], str]) -> int | None:
        """Serve the first jobs that fit together; returns their number, or None when the time ran out."""
        rows = np.array([choice.row for choice in best], dtype=np.int64)
        jobs = np.array([choice.job for choice in best], dtype=np.int64)
        pools, devices = self.ledger.curves.pool[rows], self.ledger.curves.devices[rows]
        fit = self.ledger.fitting_together(pools, devices + self.ledger.servers[jobs])
        columns = (pools[:fit].tolist(), devices[:fit].tolist(), self.ledger.candidates.stops(rows[:fit]).tolist())
        for (score, _, job, row), pool, count, stop in zip(best, *columns):
            if self.ledger.out_of_time(len(self.held)):
                return None
            self.ledger.take(job, pool, count, why(score))
            self.held[job] = CurvePosition(row, stop)
        return fit

    def _first_choices(self) -> tuple[Ints, Ints]:
        """Jobs that may be served, and each one's best row in the empty cluster."""
        offsets, values = self.ledger.curves.offsets, self.scores
        lengths = np.diff(offsets)
        jobs = np.flatnonzero(lengths > 0)
        if not len(jobs):
            return jobs, jobs
        least = np.minimum.reduceat(values, offsets[jobs])
        asking = (least < np.inf) & ~np.isin(jobs, list(self.ledger.kept))
        # What equals nothing stands for the rows of jobs that do not ask.
        rows = np.flatnonzero(values == np.repeat(np.where(asking, least, np.nan), lengths[jobs]))
        jobs = jobs[asking]
        if len(rows) > len(jobs):
            owner = np.searchsorted(offsets, rows, side="right") - 1
            order = np.lexsort((self.ledger.curves.pool[rows], self.ledger.curves.devices[rows], owner))
            rows = rows[order[np.unique(owner[order], return_index=True)[1]]]
        return jobs, rows

    def _best(self, job: int) -> int | None:
        """Row of least score among those that fit now; ties: fewer devices, then the first pool."""
        best: tuple[float, int, int, int] | None = None
        for segment in self.ledger.candidates.of(job):
            stop = self.ledger.candidates.fitting(segment, self.ledger.available_devices(job, segment.pool))
            if stop == segment.start:
                continue
            row = segment.start + int(self.scores[segment.start : stop].argmin())
            best_key = (float(self.scores[row]), int(self.ledger.curves.devices[row]), segment.pool, row)
            if best_key[0] < np.inf and (best is None or best_key < best):
                best = best_key
        return None if best is None else best[3]
