"""Equal share (EQUI): devices dealt out in turns, whatever the curves say.

Source: the EQUI rule as in pinta-scheduler (round-robin, one device at a time, in order of submission; a reshuffle is
skipped while allocations differ by at most one), generalised to allowed counts, servers, pools and quotas.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves
from nodewise_policies.sharing import NEVER, CurvePosition, Ledger, Segment

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
        ledger = _even_already(Ledger(state, curves, budget))
        if ledger is not None:
            return ledger.allocation()
        ledger = Ledger(state, curves, budget)
        positions: dict[int, CurvePosition] = {}
        # The first turns start jobs, and those that cannot be started are out of it.
        ordered = ledger.in_turn(state.columns.order, ledger.needs)
        active: Iterable[int] = (job for job in ordered if job not in ledger.kept)
        turn = 0
        while active:
            still = []
            for job in active:
                if ledger.out_of_time(turn):
                    return ledger.allocation(complete=False)
                turn += 1
                if _raise_count(ledger, positions, job):
                    still.append(job)
            active = still
        return ledger.allocation()


def _raise_count(ledger: Ledger, positions: dict[int, CurvePosition], job: int) -> bool:
    """Give the job its next allowed count; False when it has its largest or the next does not fit."""
    devices = ledger.curves.devices
    if job not in positions:
        segment = _first_pool(ledger, job)
        if segment is None:
            return False
        positions[job] = CurvePosition(segment.start, segment.stop)
        ledger.take(
            job, segment.pool, int(devices[segment.start]), ("the job's turns in the round-robin of equal shares")
        )
        return True
    row, stop = positions[job]
    if not _can_rise(ledger, job, row, stop):
        return False
    positions[job] = CurvePosition(row + 1, stop)
    ledger.raise_to(job, int(devices[row + 1]))
    return True


def _can_rise(ledger: Ledger, job: int, row: int, stop: int) -> bool:
    if row + 1 >= stop:
        return False
    devices = ledger.curves.devices
    return int(devices[row + 1]) - int(devices[row]) <= ledger.extra_devices(job)


def _first_pool(ledger: Ledger, job: int) -> Segment | None:
    """Where the job starts: its own pool, else the emptiest in which its smallest count fits."""
    return ledger.opening(job, lambda segment: ledger.free[segment.pool])


def _even_already(ledger: Ledger) -> Ledger | None:
    """A ledger of present grants, if they are equal shares already and no job could be raised; else None."""
    state, candidates, devices = ledger.state, ledger.candidates, ledger.curves.devices
    positions: dict[int, CurvePosition] = {}
    for job in np.flatnonzero(state.columns.pool >= 0).tolist():
        current = state.jobs[job].current
        segments = candidates.of(job)
        if current is None or not segments or job in ledger.kept:
            continue
        workers = current.devices - state.jobs[job].server_devices
        here = next((segment for segment in segments if segment.pool == current.pool), None)
        if here is None:
            return None
        row = candidates.at_least(here, workers)
        if row >= here.stop or devices[row] != workers or workers > ledger.available_devices(job, here.pool):
            return None
        ledger.take(job, here.pool, workers, "unchanged: shares are equal already")
        positions[job] = CurvePosition(row, here.stop)
    if not positions:
        return None
    most = max(ledger.grants[job].devices for job in positions)
    for job, (row, stop) in positions.items():
        if _can_rise(ledger, job, row, stop) or (ledger.grants[job].devices < most - 1 and row + 1 < stop):
            return None
    waiting = np.flatnonzero((candidates.least < NEVER) & (state.columns.pool < 0))
    if len(waiting) and most > 1:
        return None
    startable = any(_first_pool(ledger, job) is not None for job in ledger.in_turn(waiting, ledger.needs))
    return None if startable else ledger
