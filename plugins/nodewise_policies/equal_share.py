"""Equal share (EQUI): devices dealt out in turns, whatever the curves say.

Source: the EQUI rule as in pinta-scheduler (round-robin, one device at a time, in order of submission; a reshuffle is
skipped while allocations differ by at most one), generalised to allowed counts, servers, pools and quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves
from nodewise_policies.sharing import NEVER, Candidates, Ledger, Segment, in_turn, out_of_time

__all__ = ["EqualShare"]


class EqualShare:
    """Raises job after job, by submission, to its next allowed count until devices, quotas or counts run out.

    - A job's first turn picks its pool: the one it runs in if there is room, else the one with most free devices (ties:
      first pool). It stays there.
    - Nothing is changed while the counts held differ by at most one (jobs at their largest count apart) and no free
      device could raise anyone.
    - A job whose next count does not fit is done; the others go on.
    - Weights are not used: this is not a weighted round-robin. Remaining work is not used either.
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Keep what is even already, else deal anew."""
        candidates = Candidates(curves)
        held = _even_already(state, candidates)
        if held is not None:
            return held.allocation(state.memory)
        ledger = Ledger(state, candidates)
        rows: dict[int, tuple[int, Segment]] = {}
        # The first turns start jobs, and those that cannot be started are out of it.
        needs = candidates.least + ledger.servers
        active: Iterable[int] = (job for job in in_turn(state.columns.order, needs, ledger) if job not in ledger.kept)
        turn = 0
        while active:
            still = []
            for job in active:
                if out_of_time(budget, turn):
                    return ledger.allocation(state.memory, complete=False)
                turn += 1
                if _raised(state, candidates, ledger, rows, job):
                    still.append(job)
            active = still
        return ledger.allocation(state.memory)


def _raised(
    state: ClusterState, candidates: Candidates, ledger: Ledger, rows: dict[int, tuple[int, Segment]], job: int
) -> bool:
    """Give the job its next allowed count; False when it has its largest or the next does not fit."""
    if job not in rows:
        segment = _first_pool(state, candidates, ledger, job)
        if segment is None:
            return False
        rows[job] = (segment.start, segment)
        ledger.take(job, segment.pool, candidates.devices(segment.start), "its turns of an equal share")
        return True
    row, segment = rows[job]
    if not _can_rise(candidates, ledger, job, row, segment):
        return False
    rows[job] = (row + 1, segment)
    ledger.raise_to(job, candidates.devices(row + 1))
    return True


def _can_rise(candidates: Candidates, ledger: Ledger, job: int, row: int, segment: Segment) -> bool:
    if row + 1 >= segment.stop:
        return False
    return candidates.devices(row + 1) - candidates.devices(row) <= ledger.extra_room(job)


def _first_pool(state: ClusterState, candidates: Candidates, ledger: Ledger, job: int) -> Segment | None:
    """Where the job starts: its own pool, else the emptiest in which its smallest count fits."""
    fitting = [
        segment for segment in candidates.of(job) if candidates.devices(segment.start) <= ledger.room(job, segment.pool)
    ]
    current = state.jobs[job].current
    here = [segment for segment in fitting if current is not None and segment.pool == current.pool]
    if here:
        return here[0]
    return max(fitting, key=lambda segment: ledger.free[segment.pool], default=None)


def _even_already(state: ClusterState, candidates: Candidates) -> Ledger | None:
    """The ledger of what is held, if that is an equal share already and nobody could be raised; else None."""
    ledger = Ledger(state, candidates)
    counts: dict[int, int] = {}
    rows: dict[int, tuple[int, Segment]] = {}
    for job in np.flatnonzero(state.columns.pool >= 0).tolist():
        current = state.jobs[job].current
        segments = candidates.of(job)
        if current is None or not segments or job in ledger.kept:
            continue
        workers = current.devices - state.jobs[job].server_devices
        here = [segment for segment in segments if segment.pool == current.pool]
        row = candidates.at_least(here[0], workers) if here else 0
        if not here or row >= here[0].stop or candidates.devices(row) != workers:
            return None
        if workers > ledger.room(job, here[0].pool):
            return None
        ledger.take(job, here[0].pool, workers, "shares are equal already")
        counts[job], rows[job] = workers, (row, here[0])
    if not rows:
        return None
    most = max(counts.values())
    for job, (row, segment) in rows.items():
        if _can_rise(candidates, ledger, job, row, segment):
            return None
        if counts[job] < most - 1 and row + 1 < segment.stop:
            return None
    waiting = np.flatnonzero((candidates.least < NEVER) & (state.columns.pool < 0))
    if len(waiting) and most > 1:
        return None
    for job in in_turn(waiting, candidates.least + ledger.servers, ledger):
        if _first_pool(state, candidates, ledger, job) is not None:
            return None
    return ledger
