"""Serving jobs by score: again and again the job and count of least score among those that fit.

Every job is served once. Ties: earlier submission, smaller id, within a job fewer devices, then the first pool.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heapreplace

import numpy as np

from nodewise.plugin import Budget, Curves, Floats
from nodewise_policies.sharing import Candidates, Held, Ledger, out_of_time

__all__ = ["Service"]


class Service:
    """Grants by least score.

    Parameters
    ----------
    scores : (rows,) float
        Per row of the curves, at least 0, rounded so that ties are ties; infinite = never.
    ranks : list of int
        Per job its place in the order of submission.

    Attributes
    ----------
    held : dict of int to Held
        What each served job holds, in order of service.
    """

    def __init__(
        self, curves: Curves, candidates: Candidates, ledger: Ledger, ranks: list[int], scores: Floats
    ) -> None:
        self._curves = curves
        self._candidates = candidates
        self._ledger = ledger
        self._ranks = ranks
        self._scores = scores
        self.held: dict[int, Held] = {}

    def serve(self, budget: Budget, why: Callable[[float], str]) -> bool:
        """Serve until nothing is free or fits; False when the time ran out. ``why`` words a grant by its score.

        A heap holds each job's best row. An entry may be out of date only in one way: its row no longer fits. Free
        devices and quotas only shrink, so a job's best score only grows, and looking again when the entry surfaces
        gives what a scan of all rows would.
        """
        heap = self._first_choices()
        ledger, devices, pools = self._ledger, self._curves.devices, self._curves.pool
        while heap and ledger.has_free():
            score, rank, job, row = heap[0]
            if out_of_time(budget, len(self.held)):
                return False
            count, pool = int(devices[row]), int(pools[row])
            if count > ledger.room(job, pool):
                again = self._best(job)
                if again is None:
                    heappop(heap)
                else:
                    heapreplace(heap, (float(self._scores[again]), rank, job, again))
                continue
            heappop(heap)
            ledger.take(job, pool, count, why(score))
            stop = next(segment.stop for segment in self._candidates.segments[job] if segment.pool == pool)
            self.held[job] = Held(row, stop)
        return True

    def _first_choices(self) -> list[tuple[float, int, int, int]]:
        """(score, rank, job, row) of every job's best row in the empty cluster, as a heap."""
        offsets, values = self._curves.offsets, self._scores
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
            (score, self._ranks[owner], owner, row)
            for owner, row, score in zip(jobs.tolist(), best.tolist(), values[best].tolist())
            if owner not in self._ledger.kept and score < np.inf
        ]
        heapify(heap)
        return heap

    def _best(self, job: int) -> int | None:
        """Row of least score among those that fit now; ties: fewer devices, then the first pool."""
        best: tuple[float, int, int, int] | None = None
        for segment in self._candidates.segments[job]:
            stop = self._candidates.fitting(segment, self._ledger.room(job, segment.pool))
            if stop == segment.start:
                continue
            row = segment.start + int(self._scores[segment.start : stop].argmin())
            found = (float(self._scores[row]), int(self._curves.devices[row]), segment.pool, row)
            if found[0] < np.inf and (best is None or found < best):
                best = found
        return None if best is None else best[3]
