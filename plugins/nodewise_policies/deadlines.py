"""Deadlines: each job gets the cheapest allocation that still meets its deadline; jobs without one share the rest.

Sources: Gu et al., "ElasticFlow: an elastic serverless training platform for distributed deep learning", ASPLOS'23
(admission, the least share that satisfies a deadline, leftovers by marginal return), on a continuous time axis.

1. Admission and planning: by earliest deadline, jobs that were admitted before first, each job is put into the
   earliest gap of the reservations so far in which some count ends in time, at the cheapest count there. Cost is the
   price of its nodes where all pools it may run in have one, else devices (servers included) times seconds. A job that
   fits no gap is not admitted. Those admitted keep precedence over those that come later.
2. Jobs whose gap begins now get their devices; the others wait for theirs, which are lent out meanwhile.
3. What is free now goes to the jobs without a deadline, and to those that were not admitted, by the capped efficiency
   rule (``capped``).
4. What is left raises jobs, where ln(rate) rises most per device. Early ends make room for whoever comes.

Remaining time includes the restart that another count costs. Who was admitted is in the memory: give it back. A
reservation in the future supposes that curves are right and nobody ends early: it is made anew at every decision.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats, Ints, JobState
from nodewise_policies.ascent import ascended
from nodewise_policies.capped import capped_scores
from nodewise_policies.service import Service
from nodewise_policies.sharing import (
    Candidates,
    Held,
    Ledger,
    comparable,
    out_of_time,
    per_row,
    remaining_s,
    submission_ranks,
)
from nodewise_policies.timeline import Timeline

__all__ = ["DeadlineAware"]

_KEY_BYTES: Final = 8
"""Of an admitted job's name in the memory."""


class DeadlineAware:
    """Cheapest count that meets each deadline, with admission; the rest by the capped efficiency rule.

    Parameters: ``cap_factor``, ``age_weight`` as of that rule; ``slack`` (part of the remaining time that a plan keeps
    in hand, against errors of prediction).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Plan, start, share, raise; what was granted when the time is over stands."""
        candidates = Candidates(curves)
        ledger = Ledger(state, candidates)
        ranks = submission_ranks(state)
        seconds = remaining_s(state, curves, restarts=True)
        plan = _Plan(state, curves, candidates, ledger, seconds)
        complete = plan.make(budget, ranks)
        held = dict(plan.started)
        if complete:
            scores = capped_scores(state, curves, candidates, seconds)
            for job in plan.planned:
                scores[curves.rows(job)] = np.inf
            service = Service(curves, candidates, ledger, ranks, scores)
            complete = service.serve(budget, "best effort: aged remaining time over efficiency {:.6g} s".format)
            held.update(service.held)
            for job in service.held:
                if job in plan.late:
                    ledger.reword(job, "cannot meet its deadline any more: best effort")
        if complete and ledger.has_free():
            values = -np.log(seconds) * per_row(curves, state.columns.weight)
            complete = ascended(ledger, curves, values, held, ranks, budget)
        return ledger.allocation(plan.memory(), complete=complete)


class _Plan:
    """Reservations of the jobs with deadlines.

    Attributes
    ----------
    started : dict of int to Held
        Jobs that get devices now.
    planned, late : set of int
        Jobs that have a reservation; jobs with a deadline that have none.
    """

    def __init__(
        self, state: ClusterState, curves: Curves, candidates: Candidates, ledger: Ledger, seconds: Floats
    ) -> None:
        self._state = state
        self._curves = curves
        self._candidates = candidates
        self._ledger = ledger
        self._seconds = seconds * (1 + state.parameters["slack"])
        self._costs = np.zeros(0)
        self._queues = {queue: len(state.pools) + place for place, queue in enumerate(sorted(state.quotas))}
        quotas = [state.quotas[queue] for queue in sorted(state.quotas)]
        self._timeline = Timeline([pool.total_devices for pool in state.pools] + quotas)
        for job in sorted(ledger.kept):
            grant, asker = ledger.grants[job], state.jobs[job]
            age_s = 0.0 if asker.current is None else asker.current.age_s
            held = grant.devices + asker.server_devices
            self._timeline.reserve(self._resources(job, grant.pool), held, 0.0, asker.minimum_run_s - age_s)
        self.started: dict[int, Held] = {}
        self.planned: set[int] = set()
        self.late: set[int] = set()

    def make(self, budget: Budget, ranks: Ints) -> bool:
        """Reserve, admitted jobs first, then by earliest deadline; False when the time ran out."""
        admitted = _admitted(self._state.memory)
        jobs = self._state.jobs
        asking = [
            (_key(job) not in admitted, job.deadline_s, int(ranks[index]), index)
            for index, job in enumerate(jobs)
            if job.deadline_s is not None and self._candidates.has(index) and index not in self._ledger.kept
        ]
        if asking:
            self._costs = comparable(_per_second(self._state, self._curves) * self._seconds)
        for turn, (_, deadline_s, _, job) in enumerate(sorted(asking)):
            if out_of_time(budget, turn):
                return False
            self._reserve(job, deadline_s - self._state.now_s)
        return True

    def _reserve(self, job: int, latest_s: float) -> None:
        asker = self._state.jobs[job]
        found = []
        for segment in self._candidates.of(job):
            rows = slice(segment.start, segment.stop)
            devices = self._curves.devices[rows] + asker.server_devices
            resources = self._resources(job, segment.pool)
            slot = self._timeline.earliest(resources, devices, self._seconds[rows], self._costs[rows], latest_s)
            if slot is not None:
                row = segment.start + slot.choice
                found.append((slot.start_s, float(self._costs[row]), segment.pool, row, segment))
        if not found:
            self.late.add(job)
            return
        start_s, _, pool, row, segment = min(found)
        workers = int(self._curves.devices[row])
        self._timeline.reserve(
            self._resources(job, pool), workers + asker.server_devices, start_s, float(self._seconds[row])
        )
        self.planned.add(job)
        if start_s <= 0:
            in_hand_s = latest_s - float(self._seconds[row])
            self._ledger.take(job, pool, workers, f"cheapest that meets its deadline, {in_hand_s:.4g} s in hand")
            self.started[job] = Held(row, segment.stop)

    def _resources(self, job: int, pool: int) -> list[int]:
        queue = self._state.jobs[job].queue
        return [pool, self._queues[queue]] if queue in self._queues else [pool]

    def memory(self) -> bytes:
        """Keys of the admitted jobs, sorted."""
        return b"".join(sorted(_key(self._state.jobs[job]) for job in self.planned))


def _per_second(state: ClusterState, curves: Curves) -> Floats:
    """Of every row the price of its nodes, where all pools that the job may run in have one, else its devices."""
    devices = (curves.devices + per_row(curves, state.columns.server_devices)).astype(float)
    prices = np.array([pool.price_per_node_hour or 0.0 for pool in state.pools])
    unknown = frozenset(index for index, pool in enumerate(state.pools) if pool.price_per_node_hour is None)
    priced = [unknown.isdisjoint(job.allowed_pools) for job in state.jobs]
    if not any(priced):
        return devices
    return np.where(per_row(curves, np.array(priced)), prices[curves.pool] / 3600 * curves.nodes, devices)


def _key(job: JobState) -> bytes:
    return blake2b(job.job_id.encode(), digest_size=_KEY_BYTES).digest()


def _admitted(memory: bytes) -> set[bytes]:
    return {memory[start : start + _KEY_BYTES] for start in range(0, len(memory), _KEY_BYTES)}
