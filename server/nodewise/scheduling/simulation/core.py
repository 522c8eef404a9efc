"""The simulation: jobs from arrival to completion under a policy, by events or by rounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from nodewise.domain.schedule import NodePool
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.nodes import PoolNodes
from nodewise.scheduling.simulation.arrivals import Arrivals
from nodewise.scheduling.simulation.chances import Failures
from nodewise.scheduling.simulation.deciding import Decider
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.recording import Recorder
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings
from nodewise.scheduling.simulation.view import View

__all__ = ["Progress", "simulate"]

CHECK_EVERY: Final = 256
"""Events between two checks of the budget and two reports of progress: some 15 ms; decisions count by their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of a simulation: simulated seconds, and jobs that arrived, finished and are in the system."""

    now_s: float
    arrived: int
    finished: int
    active: int
    decisions: int


def simulate(
    jobs: Iterable[SimulatedJob],
    pools: Sequence[NodePool],
    policy: LoadedPlugin[PolicyRecord],
    settings: SimulationSettings | None = None,
    *,
    budget: Budget | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> SimulationResult:
    """Simulate a policy.

    Deterministic: the same jobs, pools, policy and settings give the same result, with or without a timeline, except
    for wall times and for a budget that ends early. Memory grows with the jobs in the system and, per finished job, by
    its id and seven numbers (for percentiles and per-job columns).

    Parameters
    ----------
    jobs : iterable of SimulatedJob
        In the order of arrival; read as the simulation proceeds.
    pools : sequence of NodePool
        The cluster; a curve's pools are indexes into it.
    budget : Budget
        Checked every ``CHECK_EVERY`` events, and passed to the policy. When it is over, the result has the jobs that
        finished so far, with ``complete`` False.
    progress : callable
        Called every ``CHECK_EVERY`` events.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for invalid settings, parameters or jobs, or jobs out of order; POLICY_FAILED;
        POLICY_INVALID_RESULT.
    """
    settings, budget = settings or SimulationSettings(), budget or Budget()
    return _Simulation(jobs, pools, policy, settings, budget, progress).run()


@dataclass(eq=False)
class _Simulation:
    """One run."""

    jobs: Iterable[SimulatedJob]
    pools: Sequence[NodePool]
    policy: LoadedPlugin[PolicyRecord]
    settings: SimulationSettings
    budget: Budget
    progress: Callable[[Progress], None] | None

    def __post_init__(self) -> None:
        pools, settings = self.pools, self.settings
        parameters = settings.check(self.policy.record.parameters)
        self._nodes = [PoolNodes(pool.available_devices.tolist()) for pool in pools]
        self._arrivals = Arrivals(self.jobs, pools, settings)
        self._now_s = start_s = self._arrivals.first_s
        self._round = math.ceil(start_s / settings.round_s) - 1
        sizes = [len(pool.available_devices) for pool in pools]
        self._failures = Failures(settings.failures, sizes, settings.seed, start_s)
        self._recorder = Recorder(start_s, self._nodes, keep_timeline=settings.keep_timeline)
        self._view = View(pools, settings, parameters)
        self._decider = Decider(self.policy, self._view, self._nodes, settings, self._recorder, self.budget)
        self._work = 0

    def run(self) -> SimulationResult:
        start_s = time.perf_counter()
        complete = True
        while (end_s := self._boundary()) is not None:
            if not self._advance(end_s):
                complete = False
                break
            self._now_s = end_s
            self._work += self._decider.decide(end_s)
        wall_s = time.perf_counter() - start_s
        return self._recorder.result(jobs=self._arrivals.count, wall_s=wall_s, complete=complete)

    def _boundary(self) -> float | None:
        """When the policy may decide next; None = nothing more can happen."""
        clock, running = self.settings.clock, self._decider.running
        happens_s = min(self._arrivals.next_s, self._next_node_event_s())
        if clock is Clock.EVENTS:
            happens_s = min(happens_s, self._decider.next_end_s(), self._decider.may_decide_s(self._now_s))
        elif clock is Clock.DRAINED_ROUNDS:
            if running:
                return self._decider.round_ends_s
            if self._decider.needs_decision:
                return self._now_s
        elif running or self._decider.needs_decision:
            self._round += 1
            return self._round * self.settings.round_s
        if happens_s == math.inf:
            return None
        if clock is not Clock.FIXED_ROUNDS:
            return happens_s
        self._round = max(self._round + 1, math.ceil(happens_s / self.settings.round_s))
        return self._round * self.settings.round_s

    def _next_node_event_s(self) -> float:
        """When a node fails or is repaired; infinite where that changes nothing: no job runs or waits for a repair."""
        if self._decider.running:
            return self._failures.next_s
        waits = self._recorder.active > 0 and any(each.down for each in self._nodes)
        return self._failures.next_s if waits else math.inf

    def _advance(self, until_s: float) -> bool:
        """Process all events until then, in order; False when the budget is over."""
        while True:
            end_s, arrival_s, node_s = self._decider.next_end_s(), self._arrivals.next_s, self._failures.next_s
            at_s = min(end_s, arrival_s, node_s)
            if self._work >= CHECK_EVERY and not self._look(min(at_s, until_s)):
                return False
            if at_s > until_s:
                return True
            self._work += 1
            if end_s == at_s:
                self._decider.finish_next()
            elif node_s == at_s:
                self._decider.node_event(at_s, *self._failures.next())
            else:
                self._arrive(at_s)

    def _arrive(self, at_s: float) -> None:
        job = self._arrivals.take()
        if job is None:
            return
        self._recorder.record_arrival(job, at_s)
        self._decider.arrive(job)

    def _look(self, now_s: float) -> bool:
        """Report progress; returns whether there is time left."""
        self._work = 0
        if self.progress is not None:
            recorder, arrivals = self._recorder, self._arrivals.count
            counts = {"finished": recorder.finished, "active": recorder.active, "decisions": recorder.decisions}
            self.progress(Progress(now_s=now_s, arrived=arrivals, **counts))
        return self.budget.remaining_s() > 0
