"""Deadlines: each job gets the cheapest allocation that still meets its deadline; jobs without one share the rest.

Sources: Gu et al., "ElasticFlow: an elastic serverless training platform for distributed deep learning", ASPLOS'23
(admission, the least share that satisfies a deadline, leftovers by marginal return), on a continuous time axis.

1. Admission and planning: by earliest deadline, jobs that were admitted before first, each job is planned into the
   earliest gap of the reservations so far in which some count ends in time, at the cheapest count there. Cost is the
   price of its nodes where all pools it may run in have one, else devices (servers included) times seconds. A job that
   fits no gap is not admitted. Those admitted keep precedence over those that come later.
2. Jobs whose reservation begins now get their devices; the others wait for theirs, which other jobs use meanwhile.
3. What is free now goes to the jobs without a deadline, and to those that were not admitted, by the capped efficiency
   rule (``capped_efficiency``).
4. Devices that are left raise jobs, where ln(rate) rises most per device. Early ends free devices for later jobs.

Remaining time includes the restart that another count costs. The policy's memory lists the admitted jobs: send it back
with the next request. A reservation in the future assumes that the curves are right and that no job ends early, so
plans are made anew at every decision.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nodewise.plugin import Allocation, Budget, ClusterState, Curves, Floats
from nodewise_policies.capped_efficiency import capped_scores, fill
from nodewise_policies.service import Service
from nodewise_policies.sharing import KEY_BYTES, CurvePosition, Ledger, comparable, job_key, per_row, remaining_s
from nodewise_policies.timeline import Timeline

__all__ = ["DeadlineAware"]


class DeadlineAware:
    """Cheapest count that meets each deadline, with admission; the rest by the capped efficiency rule.

    Parameters: ``cap_factor``, ``age_weight`` as of that rule; ``slack`` (part of the remaining time that a plan keeps
    in hand, against errors of prediction).
    """

    def decide(self, state: ClusterState, curves: Curves, budget: Budget) -> Allocation:
        """Plan, start, share, raise; what was granted when the time is over stands."""
        ledger = Ledger(state, curves, budget)
        seconds = remaining_s(state, curves, restarts=True)
        plan = _Plan(ledger, seconds)
        complete = plan.make()
        positions = dict(plan.started)
        if complete:
            scores = capped_scores(ledger, seconds)
            for job in plan.planned:
                scores[curves.rows(job)] = np.inf
            service = Service(ledger, scores)
            complete = service.serve(
                "best effort by remaining time over efficiency, less for time waited: {:.4g} s".format
            )
            positions.update(service.held)
            for job in service.held:
                if job in plan.late:
                    ledger.reword(job, "the job cannot meet its deadline any more: scheduled as best effort")
        answer = ledger.allocation(complete=complete and fill(ledger, seconds, positions))
        return replace(answer, memory=plan.memory())


class _Plan:
    """Reservations of the jobs with deadlines.

    Attributes
    ----------
    started : dict of int to CurvePosition
        Jobs that get devices now.
    planned, late : set of int
        Jobs that have a reservation; jobs with a deadline that have none.
    """

    def __init__(self, ledger: Ledger, seconds: Floats) -> None:
        state = ledger.state
        self._ledger = ledger
        self._jobs = state.jobs
        self._seconds = seconds * (1 + state.parameters["slack"])
        self._costs = np.zeros(0)
        self._queues = {queue: len(state.pools) + place for place, queue in enumerate(sorted(state.quotas))}
        quotas = [state.quotas[queue] for queue in sorted(state.quotas)]
        self._timeline = Timeline([pool.total_devices for pool in state.pools] + quotas)
        for job in sorted(ledger.kept):
            grant, asker = ledger.grants[job], state.jobs[job]
            age_s = 0.0 if asker.current is None else asker.current.age_s
            device_count = grant.devices + asker.server_devices
            self._timeline.reserve(self._resources(job, grant.pool), device_count, 0.0, asker.minimum_run_s - age_s)
        self.started: dict[int, CurvePosition] = {}
        self.planned: set[int] = set()
        self.late: set[int] = set()

    def make(self) -> bool:
        """Reserve, admitted jobs first, then by earliest deadline; False when the time ran out."""
        ledger, state = self._ledger, self._ledger.state
        admitted = {state.memory[start : start + KEY_BYTES] for start in range(0, len(state.memory), KEY_BYTES)}
        asking = [
            (job_key(job) not in admitted, job.deadline_s, int(ledger.ranks[index]), index)
            for index, job in enumerate(self._jobs)
            if job.deadline_s is not None and ledger.candidates.has(index) and index not in ledger.kept
        ]
        if asking:
            self._costs = comparable(_per_second(state, ledger.curves) * self._seconds)
        for turn, (_, deadline_s, _, job) in enumerate(sorted(asking)):
            if ledger.out_of_time(turn):
                return False
            self._reserve(job, deadline_s - state.now_s)
        return True

    def _reserve(self, job: int, latest_s: float) -> None:
        servers, counts = self._jobs[job].server_devices, self._ledger.curves.devices
        options = []
        for segment in self._ledger.candidates.of(job):
            rows = slice(segment.start, segment.stop)
            devices = counts[rows] + servers
            resources = self._resources(job, segment.pool)
            slot = self._timeline.earliest(resources, devices, self._seconds[rows], self._costs[rows], latest_s)
            if slot is not None:
                row = segment.start + slot.choice
                options.append((slot.start_s, float(self._costs[row]), segment.pool, row, segment))
        if not options:
            self.late.add(job)
            return
        start_s, _, pool, row, segment = min(options)
        workers = int(counts[row])
        self._timeline.reserve(self._resources(job, pool), workers + servers, start_s, float(self._seconds[row]))
        self.planned.add(job)
        if start_s <= 0:
            in_hand_s = latest_s - float(self._seconds[row])
            self._ledger.take(
                job, pool, workers, (f"cheapest count that meets the deadline, {in_hand_s:.4g} s before it")
            )
            self.started[job] = CurvePosition(row, segment.stop)

    def _resources(self, job: int, pool: int) -> list[int]:
        queue = self._jobs[job].queue
        return [pool, self._queues[queue]] if queue in self._queues else [pool]

    def memory(self) -> bytes:
        """Keys of the admitted jobs, sorted."""
        return b"".join(sorted(job_key(self._jobs[job]) for job in self.planned))


def _per_second(state: ClusterState, curves: Curves) -> Floats:
    """Of every row the price of its nodes, where all pools that the job may run in have one, else its devices."""
    devices = (curves.devices + per_row(curves, state.columns.server_devices)).astype(float)
    prices = np.array([pool.price_per_node_hour or 0.0 for pool in state.pools])
    unknown = frozenset(index for index, pool in enumerate(state.pools) if pool.price_per_node_hour is None)
    priced = [unknown.isdisjoint(job.allowed_pools) for job in state.jobs]
    if not any(priced):
        return devices
    return np.where(per_row(curves, np.array(priced)), prices[curves.pool] / 3600 * curves.nodes, devices)
