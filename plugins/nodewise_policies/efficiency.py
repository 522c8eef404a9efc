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

from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Ints
from nodewise_policies.service import Service
from nodewise_policies.sharing import Candidates, CurvePosition, Ledger, comparable, per_row, remaining_s

__all__ = ["EfficiencySrpt", "ratios", "ratios_at"]


def ratios(state: ClusterState, curves: Curves, candidates: Candidates, seconds: Floats) -> Floats:
    """Remaining time (``seconds``, per row) over efficiency, divided by the job's weight; infinite where it never ends.

    Rounded so that ties by the formula are ties in floating point.
    """
    if not len(curves.devices):
        return np.zeros(0)
    per_device = curves.samples_per_s[candidates.starts] / curves.devices[candidates.starts]
    lengths = np.diff(np.concatenate((candidates.starts, [len(curves.devices)])))
    straight = np.asarray(curves.devices * np.repeat(per_device, lengths), dtype=float)
    claims = per_row(curves, state.columns.weight)
    return _ratios(seconds, straight, curves.samples_per_s, claims)


def ratios_at(rows: Ints, curves: Curves, candidates: Candidates, seconds: Floats, claims: Floats) -> Floats:
    """As ``ratios``, of some rows (ascending), with claims per job instead of weights."""
    if not len(rows):
        return np.zeros(0)
    first = candidates.starts[np.searchsorted(candidates.starts, rows, side="right") - 1]
    straight = curves.devices[rows] * (curves.samples_per_s[first] / curves.devices[first])
    job = np.searchsorted(curves.offsets, rows, side="right") - 1
    return _ratios(seconds[rows], straight, curves.samples_per_s[rows], claims[job])


def _ratios(seconds: Floats, straight: Floats, rates: Floats, claims: Floats) -> Floats:
    """Seconds over efficiency and claims; ``straight`` = the rates if they grew with the devices."""
    inverse_efficiency: Floats = np.divide(straight, rates, out=np.full(len(rates), np.inf), where=rates > 0)
    with np.errstate(over="ignore"):
        return comparable(seconds * inverse_efficiency / claims)


class EfficiencySrpt:
    """Serves the job and count of least remaining time over efficiency; ``fill`` then gives out what is left.

    All allocations are cleared each round (jobs are malleable and may be preempted). A weight divides the job's ratio:
    weight 2 counts as half the work. The fill does not look at weights. Parameter ``count_restarts`` (1 = remaining
    time includes the restart that a change costs).
    """

    def __init__(self, *, fill: bool) -> None:
        self._fill = fill

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Schedule, then fill; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        seconds = remaining_s(state, curves, restarts=state.parameters.get("count_restarts", 0.0) >= 0.5)
        service = Service(ledger, ratios(state, curves, ledger.candidates, seconds))
        complete = service.serve("remaining time over efficiency {:.6g} s".format)
        if complete and self._fill and ledger.has_free():
            complete = _Fill(ledger, service.held).fill()
        return ledger.allocation(complete=complete)


@dataclass
class _Fill:
    """Step 2 over the ledger and the grants of step 1."""

    ledger: Ledger
    held: dict[int, CurvePosition]

    def fill(self) -> bool:
        """Step 2; False when the time ran out.

        A job's choices are the counts at which its throughput exceeds that of every smaller one: the last of them that
        fits is the first minimiser of rem. When less is free, choices that no longer fit are dropped, and the job needs
        fewer extras.
        """
        stairs = self._stairs()
        queues = {job: self.ledger.state.jobs[job].queue for job in stairs}
        fewest = [(steps[-1], int(self.ledger.ranks[job]), job) for job, steps in stairs.items()]
        heapify(fewest)
        most: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for job, steps in stairs.items():
            most.setdefault((self.ledger.grants[job].pool, queues[job]), []).append((-steps[-1], job))
        for entries in most.values():
            heapify(entries)
        served = 0
        while fewest:
            extras, _, job = heappop(fewest)
            if job not in stairs or stairs[job][-1] != extras:
                continue
            if self.ledger.out_of_time(served):
                return False
            served += 1
            grant = self.ledger.grants[job]
            self.ledger.raise_to(
                job, grant.devices + extras, (f"{grant.why}, and {extras} of the devices that were left over")
            )
            del stairs[job]
            for (pool, queue), entries in most.items():
                if pool == grant.pool or queue == queues[job]:
                    self._trim(entries, stairs, fewest)
        return True

    def _stairs(self) -> dict[int, list[int]]:
        """Per scheduled job the numbers of extra devices that fit and raise its throughput, ascending."""
        stairs, curves = {}, self.ledger.curves
        for job, (row, end) in self.held.items():
            extra_devices = self.ledger.extra_devices(job)
            if extra_devices < 1 or row + 1 == end:
                continue
            extras = curves.devices[row:end] - curves.devices[row]
            rates = comparable(curves.samples_per_s[row:end][extras <= extra_devices])
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
            extra_devices = self.ledger.extra_devices(job)
            if -most <= extra_devices:
                return
            steps = stairs[job]
            while steps and steps[-1] > extra_devices:
                steps.pop()
            if steps:
                heapreplace(entries, (-steps[-1], job))
                heappush(fewest, (steps[-1], int(self.ledger.ranks[job]), job))
            else:
                heappop(entries)
                del stairs[job]
