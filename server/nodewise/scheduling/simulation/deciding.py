"""Asking the policy and doing what it says: runs begin and end, devices change hands."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import compress, count
from operator import attrgetter
from typing import Final

from nodewise.domain.schedule import Grant, Shares
from nodewise.hosting.calls import PluginError, call, impossible
from nodewise.hosting.registry import Loaded
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.policy_answers import sound_answer
from nodewise.scheduling.rounding import Rounds, first_round, held_round, offered
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.recording import Recorder
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings
from nodewise.scheduling.simulation.view import View

__all__ = ["Decider"]

_devices = attrgetter("devices")

EVENT_S: Final = 50e-6
"""What an event costs, roughly: a decision counts as as many as it takes time for, so that a budget is seen in time."""


class Decider:
    """Who holds what.

    Attributes
    ----------
    undecided : bool
        Something changed since the policy was asked last.
    round_ends_s : float
        When the last running job is through with its part of the round (drained rounds only).
    """

    def __init__(
        self,
        policy: Loaded[PolicyRecord],
        view: View,
        nodes: Sequence[PoolNodes],
        settings: SimulationSettings,
        recorder: Recorder,
        budget: Budget,
    ) -> None:
        self._policy = policy
        self._view = view
        self._nodes = nodes
        self._settings = settings
        self._recorder = recorder
        self._budget = budget
        self._drained = settings.clock is Clock.DRAINED_ROUNDS
        self._ends: list[tuple[float, int, int, ActiveJob]] = []
        self._memory = b""
        self._name = f"{policy.record.name} {policy.record.version}"
        self._rounds: Rounds | None = None
        self._decided_s: float | None = None
        self._running: dict[int, ActiveJob] = {}
        self.undecided = False
        self.round_ends_s = 0.0

    @property
    def running(self) -> int:
        """Jobs that hold devices."""
        return len(self._running)

    # --- what happens between decisions

    def arrive(self, job: ActiveJob) -> None:
        """A job comes into the system."""
        self._view.arrive(job)
        self.undecided = True

    def next_end_s(self) -> float:
        """When the next running job completes."""
        ends = self._ends
        while ends and ends[0][3].run != ends[0][2]:
            heappop(ends)
        return ends[0][0] if ends else math.inf

    def finish_next(self) -> None:
        """The job that ``next_end_s`` tells of completes."""
        at_s, _, _, job = heappop(self._ends)
        self._close(job, at_s, job.left)
        job.done = True
        self._view.depart(job)
        self._recorder.completed(job, at_s)
        self.undecided = True

    def node_event(self, at_s: float, pool: int, node: int, fails: bool) -> None:  # noqa: FBT001 - as drawn
        """A node fails, and what runs on it falls back to its last checkpoint; or it comes back."""
        nodes = self._nodes[pool]
        if fails:
            for job in list(self._running.values()):
                if job.pool == pool and any(each == node for each, _ in job.placement):
                    saved = job.saved(at_s)
                    self._recorder.lost(job, job.progress(at_s) - saved)
                    self._close(job, at_s, saved)
            self._recorder.capacity_changed(at_s)
            nodes.fail(node)
        else:
            self._recorder.capacity_changed(at_s)
            nodes.repair(node)
        self._view.nodes_changed(self._nodes)
        self.undecided = True

    # --- decisions

    def may_decide_s(self, now_s: float) -> float:
        """When a change that waits for the minimum interval may be decided; infinite when nothing waits."""
        if not self.undecided:
            return math.inf
        decided_s = -math.inf if self._decided_s is None else self._decided_s
        return max(now_s, decided_s + self._settings.minimum_decision_interval_s)

    def decide(self, now_s: float) -> int:
        """Ask the policy if it is time to, and begin the next round; what that was worth in events."""
        grants: Sequence[Grant]
        before_s = self._recorder.decision_s
        if self._rounds is not None or self._due(now_s):
            grants = self._asked(now_s)
        elif self._drained:
            grants = [Grant(job.devices, job.pool) for job in self._view.jobs]
        else:
            return 1
        self._apply(now_s, grants)
        return 1 + len(grants) // 16 + int((self._recorder.decision_s - before_s) / EVENT_S)

    def _due(self, now_s: float) -> bool:
        """Whether a policy that allocates devices is to be asked; shares of time say themselves how long they hold."""
        settings = self._settings
        if settings.on_changes_only and not self.undecided:
            return False
        if self._decided_s is None or not self._running:
            return True
        return now_s - self._decided_s >= settings.minimum_decision_interval_s

    def _asked(self, now_s: float) -> Sequence[Grant]:
        """A grant for each job in the view: the policy's, or the next round of its shares."""
        state, curves = self._view.state(now_s, self._memory)
        started = time.perf_counter()
        if self._rounds is not None:
            offer = offered(state, curves)
            held = held_round(self._rounds, offer, state, self._name)
            if held is not None:
                grants, self._rounds = held
                self._recorder.decision_s += time.perf_counter() - started
                self.undecided = False
                return grants
        policy, check = self._policy.record.policy, partial(sound_answer, state=state)
        decided = call(self._policy, policy, "decide", state, curves, self._budget, check=check)
        if isinstance(decided, Shares):
            grants, self._rounds = first_round(decided, self._rounds, state, curves, self._name)
        else:
            grants = decided.grants
        self._recorder.decided(time.perf_counter() - started)
        self._memory, self._decided_s, self.undecided = decided.memory, now_s, False
        return grants

    def _invalid(self, problem: str) -> PluginError:
        return impossible(self._policy, "decide", problem)

    def _apply(self, now_s: float, grants: Sequence[Grant]) -> None:
        """Close the runs that end, then begin those that start, largest first."""
        starting = []
        drained = self._drained
        jobs = self._view.jobs
        granted = compress(count(), map(_devices, grants))
        for index in sorted({*granted, *self._view.places(self._running.values())}):
            job, grant = jobs[index], grants[index]
            devices = grant.devices
            if job.devices:
                if devices == job.devices and grant.pool == job.pool:
                    if drained:
                        self._renew(job, now_s)
                    continue
                self._close(job, now_s, job.progress(now_s))
            if devices:
                starting.append((job, devices, grant.pool))
        if starting:
            self._check_quotas(grants)
            starting.sort(key=lambda start: -(start[1] + start[0].spec.server_devices))
            for job, devices, pool in starting:
                self._start(job, devices, pool, now_s)
        if drained:
            self.round_ends_s = max((job.ends_s for job in self._running.values()), default=now_s)

    def _start(self, job: ActiveJob, devices: int, pool: int, now_s: float) -> None:
        if (pool, devices) not in job.curve.rates:
            raise self._invalid(f"it granted {job.spec.job_id!r} {devices} devices in pool {pool}, not on its curve")
        nodes = self._nodes[pool]
        total = devices + job.spec.server_devices
        if total > nodes.free:
            raise self._invalid(f"it granted more devices of pool {pool} than it has free")
        rate = job.spec.curve.rates[pool, devices]
        job.hold(pool, devices, nodes.take(total), rate, now_s)
        self._running[job.number] = job
        self._view.started(job)
        if job.first_start_s == math.inf:
            job.first_start_s = now_s
            pause_s = self._settings.first_start_cost_s
        else:
            job.restarted()
            pause_s = job.state.restart_cost_s
        self._begin(job, now_s, pause_s)

    def _begin(self, job: ActiveJob, now_s: float, pause_s: float) -> None:
        job.begin(now_s, pause_s, self._settings.round_s if self._drained else None)
        if job.left <= job.allowance:
            heappush(self._ends, (job.ends_s, job.number, job.run, job))

    def _renew(self, job: ActiveJob, now_s: float) -> None:
        """The job goes on where it is, with the whole steps of another round."""
        self._end_run(job, now_s, job.progress(now_s))
        self._begin(job, now_s, 0.0)

    def _close(self, job: ActiveJob, now_s: float, done: float) -> None:
        """End a job's run and take its devices."""
        self._end_run(job, now_s, done)
        self._recorder.held(job, now_s)
        self._nodes[job.pool].give_back(job.placement)
        job.release()
        del self._running[job.number]

    def _end_run(self, job: ActiveJob, now_s: float, done: float) -> None:
        begun_s, from_s = job.begun_s, job.run_from_s
        busy_s = job.end_run(min(now_s, job.ends_s), done)
        self._recorder.run_ended(job, busy_s, min(begun_s - from_s, busy_s))

    def _check_quotas(self, grants: Sequence[Grant]) -> None:
        if not self._settings.quotas:
            return
        left = dict(self._settings.quotas)
        for job, grant in zip(self._view.jobs, grants):
            queue = job.spec.queue
            if grant.devices and queue in left:
                left[queue] -= grant.devices + job.spec.server_devices
                if left[queue] < 0:
                    raise self._invalid(f"it granted queue {queue!r} more devices than its quota")
