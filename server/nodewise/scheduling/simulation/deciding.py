"""Calls the policy and applies its grants: runs begin and end, devices move between jobs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import compress, count
from operator import attrgetter
from typing import Final

from nodewise.domain.schedule import Grant, Shares
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call, impossible
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.packing import both_ways, hosts_of
from nodewise.scheduling.policy_answers import sound_answer
from nodewise.scheduling.rounding import Rounds, first_round, make_offer, next_round
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.recording import Recorder
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings
from nodewise.scheduling.simulation.view import View

__all__ = ["Decider"]

_devices = attrgetter("devices")

EVENT_S: Final = 50e-6
"""Approximate time of an event; a decision counts as the events of its time, so that the budget is checked in time."""


@dataclass(eq=False)
class Decider:
    """Decides which job holds which devices, by the policy.

    Attributes
    ----------
    needs_decision : bool
        Jobs or nodes have changed since the last decision.
    round_ends_s : float
        When the last running job ends its part of the round (drained rounds only).
    """

    policy: LoadedPlugin[PolicyRecord]
    view: View
    nodes: Sequence[PoolNodes]
    settings: SimulationSettings
    recorder: Recorder
    budget: Budget
    needs_decision: bool = False
    round_ends_s: float = 0.0
    _ends: list[tuple[float, int, int, ActiveJob]] = field(default_factory=list)
    _memory: bytes = b""
    _rounds: Rounds | None = None
    _decided_s: float | None = None
    _running: dict[int, ActiveJob] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._drains_rounds = self.settings.clock is Clock.DRAINED_ROUNDS
        self._policy_name = f"{self.policy.record.name} {self.policy.record.version}"

    @property
    def running(self) -> int:
        """Jobs that hold devices."""
        return len(self._running)

    # --- events between decisions

    def arrive(self, job: ActiveJob) -> None:
        """Add a job that arrives."""
        self.view.arrive(job)
        self.needs_decision = True

    def next_end_s(self) -> float:
        """When the next running job completes."""
        ends = self._ends
        while ends and ends[0][3].run != ends[0][2]:
            heappop(ends)
        return ends[0][0] if ends else math.inf

    def finish_next(self) -> None:
        """Complete the job that ends at ``next_end_s``."""
        at_s, _, _, job = heappop(self._ends)
        self._close(job, at_s, job.left)
        self.view.depart(job)
        self.recorder.completed(job, at_s)
        self.needs_decision = True

    def node_event(self, at_s: float, pool: int, node: int, fails: bool) -> None:  # noqa: FBT001 - as drawn
        """A node fails, and its jobs return to their last checkpoint; or it is repaired."""
        nodes = self.nodes[pool]
        if fails:
            for job in list(self._running.values()):
                if job.pool == pool and any(each == node for each, _ in job.placement):
                    checkpointed_samples = job.checkpointed_samples(at_s)
                    self.recorder.record_loss(job, job.progress(at_s) - checkpointed_samples)
                    self._close(job, at_s, checkpointed_samples)
            self.recorder.capacity_changed(at_s)
            nodes.fail(node)
        else:
            self.recorder.capacity_changed(at_s)
            nodes.repair(node)
        self.view.nodes_changed(self.nodes)
        self.needs_decision = True

    # --- decisions

    def may_decide_s(self, now_s: float) -> float:
        """When the next decision may be made, after the minimum interval; infinite when none is needed."""
        if not self.needs_decision:
            return math.inf
        decided_s = -math.inf if self._decided_s is None else self._decided_s
        return max(now_s, decided_s + self.settings.minimum_decision_interval_s)

    def decide(self, now_s: float) -> int:
        """Call the policy if a decision is due, and begin the next round; returns the work, in events."""
        grants: Sequence[Grant]
        before_s = self.recorder.decision_s
        if self._rounds is not None or self._due(now_s):
            grants = self._ask_policy(now_s)
        elif self._drains_rounds:
            grants = [Grant(job.devices, job.pool) for job in self.view.jobs]
        else:
            return 1
        if self.settings.sharing is None:
            self._apply(now_s, grants)
        else:
            self._apply_shared(now_s, grants)
        return 1 + len(grants) // 16 + int((self.recorder.decision_s - before_s) / EVENT_S)

    def _due(self, now_s: float) -> bool:
        """Whether to call a policy that allocates devices; shares of time state themselves how long they are valid."""
        settings = self.settings
        if settings.on_changes_only and not self.needs_decision:
            return False
        if self._decided_s is None or not self._running:
            return True
        return now_s - self._decided_s >= settings.minimum_decision_interval_s

    def _ask_policy(self, now_s: float) -> Sequence[Grant]:
        """A grant for each job in the view: the policy's, or the next round of its shares."""
        state, curves = self.view.state(now_s, self._memory)
        start_s = time.perf_counter()
        if self._rounds is not None:
            offer = make_offer(state, curves)
            next_grants = next_round(self._rounds, offer, state, self._policy_name)
            if next_grants is not None:
                grants, self._rounds = next_grants
                self.recorder.decision_s += time.perf_counter() - start_s
                self.needs_decision = False
                return grants
        policy, check = self.policy.record.policy, partial(sound_answer, state=state)
        answer = call(self.policy, policy, "decide", state, curves, self.budget, check=check)
        if isinstance(answer, Shares):
            grants, self._rounds = first_round(answer, self._rounds, state, curves, self._policy_name)
        else:
            grants = answer.grants
        self.recorder.record_decision(time.perf_counter() - start_s)
        self._memory, self._decided_s, self.needs_decision = answer.memory, now_s, False
        return grants

    def _invalid(self, problem: str) -> PluginError:
        return impossible(self.policy, "decide", problem)

    def _apply(self, now_s: float, grants: Sequence[Grant]) -> None:
        """End runs whose devices change, then begin new runs, the largest first."""
        starting = []
        drains_rounds = self._drains_rounds
        jobs = self.view.jobs
        for index in self._affected_jobs(grants):
            job, grant = jobs[index], grants[index]
            devices = grant.devices
            if job.devices:
                if devices == job.devices and grant.pool == job.pool:
                    if drains_rounds:
                        self._renew(job, now_s)
                    continue
                self._close(job, now_s, job.progress(now_s))
            if devices:
                starting.append((job, devices, grant.pool))
        self._start_all(starting, grants, now_s)
        if drains_rounds:
            self.round_ends_s = max((job.ends_s for job in self._running.values()), default=now_s)

    def _affected_jobs(self, grants: Sequence[Grant]) -> list[int]:
        """Indexes of the jobs that hold devices or are granted some."""
        with_grant = compress(count(), map(_devices, grants))
        return sorted({*with_grant, *self.view.places(self._running.values())})

    def _start_all(self, starting: list[tuple[ActiveJob, int, int]], grants: Sequence[Grant], now_s: float) -> None:
        """Begin the runs of jobs on devices of their own, the largest first."""
        if starting:
            self._check_quotas(grants)
            starting.sort(key=lambda start: -(start[1] + start[0].spec.server_devices))
            for job, devices, pool in starting:
                self._start(job, devices, pool, now_s)

    def _apply_shared(self, now_s: float, grants: Sequence[Grant]) -> None:
        """Apply grants where jobs may share devices; as few jobs as possible move."""
        jobs, states = self.view.jobs, self.view.states
        try:
            hosts = hosts_of(grants, states, self.view.sharing)
        except ImpossibleAnswerError as problem:
            raise self._invalid(str(problem)) from None
        affected = self._affected_jobs(grants)
        for index in affected:
            job, grant = jobs[index], grants[index]
            if job.devices and (grant.devices, grant.pool) != (job.devices, job.pool):
                self._close(job, now_s, job.progress(now_s))
        self._part(affected, hosts, now_s)
        beside = [pair for guest, host in hosts.items() if (pair := self._joining(jobs[guest], jobs[host], now_s))]
        guests = {job.number for job, _ in beside}
        starting = [
            (jobs[index], grants[index].devices, grants[index].pool)
            for index in affected
            if grants[index].devices and not jobs[index].devices and jobs[index].number not in guests
        ]
        self._start_all(starting, grants, now_s)
        if beside:
            self._check_quotas(grants)
        for job, other in beside:
            self._start(job, 1, other.pool, now_s, other)

    def _part(self, affected: Sequence[int], hosts: Mapping[int, int], now_s: float) -> None:
        """Separate pairs: the job that will run beside another job leaves, otherwise the later one."""
        jobs = self.view.jobs
        partners = {index: jobs[other] for index, other in both_ways(hosts).items()}
        for index in affected:
            job = jobs[index]
            if job.partner is not None and job.partner is not partners.get(index):
                (place,) = self.view.places([job.partner])
                leaver = index if index in hosts or (index > place and place not in hosts) else place
                self._close(jobs[leaver], now_s, jobs[leaver].progress(now_s))

    def _joining(self, guest: ActiveJob, host: ActiveJob, now_s: float) -> tuple[ActiveJob, ActiveJob] | None:
        """The job to start and the job whose device it shares; the running one stays. None = they share already."""
        if guest.devices and guest.partner is host:
            return None
        if guest.devices and host.devices:
            self._close(guest, now_s, guest.progress(now_s))
        return (host, guest) if guest.devices else (guest, host)

    def _start(self, job: ActiveJob, devices: int, pool: int, now_s: float, beside: ActiveJob | None = None) -> None:
        if (pool, devices) not in job.curve.rates:
            raise self._invalid(f"it granted {job.spec.job_id!r} {devices} devices in pool {pool}, not on its curve")
        nodes = self.nodes[pool]
        total = devices + job.spec.server_devices
        if beside is None and total > nodes.free:
            raise self._invalid(f"it granted more devices of pool {pool} than it has free")
        rate = job.spec.curve.rates[pool, devices]
        job.hold(pool, devices, nodes.take(total) if beside is None else beside.placement, rate, now_s)
        self._running[job.number] = job
        self.view.note_start(job)
        if job.first_start_s == math.inf:
            job.first_start_s = now_s
            pause_s = self.settings.first_start_cost_s
        else:
            job.count_restart()
            pause_s = job.state.restart_cost_s
        if beside is not None:
            sharing = self.settings.sharing
            assert sharing is not None
            table = sharing.shares[pool]
            self._pair(beside, job, float(table[beside.spec.kind, job.spec.kind]), now_s)
            job.pair(beside, float(table[job.spec.kind, beside.spec.kind]))
        self._begin(job, now_s, pause_s)

    def _pair(self, job: ActiveJob, partner: ActiveJob | None, share: float, now_s: float) -> None:
        """Change a job's partner: it stays where it is, at another speed, and finishes a restart that has begun."""
        pause_s = max(job.begun_s - now_s, 0.0)
        self._end_run(job, now_s, job.progress(now_s))
        job.pair(partner, share)
        self._begin(job, now_s, pause_s)

    def _begin(self, job: ActiveJob, now_s: float, pause_s: float) -> None:
        job.begin(now_s, pause_s, self.settings.round_s if self._drains_rounds else None)
        if job.left <= job.allowance:
            heappush(self._ends, (job.ends_s, job.number, job.run, job))

    def _renew(self, job: ActiveJob, now_s: float) -> None:
        """Let the job run where it is for the whole steps of another round."""
        self._end_run(job, now_s, job.progress(now_s))
        self._begin(job, now_s, 0.0)

    def _close(self, job: ActiveJob, now_s: float, samples: float) -> None:
        """End a job's run and return its devices."""
        self._end_run(job, now_s, samples)
        self.recorder.record_tenure(job, now_s)
        if job.partner is None:
            self.nodes[job.pool].give_back(job.placement)
        else:
            self._pair(job.partner, None, 1.0, now_s)
        job.release()
        del self._running[job.number]

    def _end_run(self, job: ActiveJob, now_s: float, samples: float) -> None:
        begun_s, from_s = job.begun_s, job.run_from_s
        busy_s = job.end_run(min(now_s, job.ends_s), samples)
        self.recorder.record_run(job, busy_s, min(begun_s - from_s, busy_s))

    def _check_quotas(self, grants: Sequence[Grant]) -> None:
        if not self.settings.quotas:
            return
        left = dict(self.settings.quotas)
        for job, grant in zip(self.view.jobs, grants):
            queue = job.spec.queue
            if grant.devices and queue in left:
                left[queue] -= grant.devices + job.spec.server_devices
                if left[queue] < 0:
                    raise self._invalid(f"it granted queue {queue!r} more devices than its quota")
