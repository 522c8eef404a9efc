"""A job between arrival and completion: its progress, what it holds, and the clock of its current run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from nodewise.domain.schedule import CurrentAllocation, JobState
from nodewise.scheduling.nodes import NodeDevices
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import Checkpoints

__all__ = ["ActiveJob"]

_set = object.__setattr__
"""Sets a field of a frozen value: what a policy sees of a job is one object for as long as the job lives (policies are
pure and keep nothing between calls), and three of its fields move with time."""

WHOLE_STEP_SLACK = 1e-9
"""Steps that a product of floating-point numbers may be short of a whole one."""


@dataclass(slots=True, eq=False)
class ActiveJob:
    """One job in the system.

    A *run* is a stretch on the same devices. It begins with ``restart`` seconds without progress, then computes at
    ``rate`` samples/s of running time, with pauses for checkpoints. Work is counted from the run's beginning, so that
    looking at it in between changes nothing.

    Attributes
    ----------
    state : JobState
        What the policy sees; refreshed by ``tell``.
    left : float
        True samples left at the beginning of the current run, or now if it does not run.
    declared_beyond : float
        Samples that the policy believes in and that never come (early stops).
    allowance : float
        Most samples in this run (a round's whole steps); infinite without rounds of whole steps.
    entry : int
        Counts up in the order of the jobs that the policy sees.
    partner : ActiveJob or None
        Who runs on the same devices.
    ends_s : float
        When the run ends by itself: the job is done or its allowance is; infinite while it holds nothing.
    """

    number: int
    spec: SimulatedJob
    curve: JobCurve
    true_samples: float
    state: JobState
    checkpoints: Checkpoints | None = None
    entry: int = -1
    left: float = field(init=False)
    declared_beyond: float = field(init=False)
    area_at_arrival: float = 0.0
    attained_device_s: float = 0.0
    first_start_s: float = math.inf
    restarts: int = 0
    run: int = 0
    devices: int = 0
    pool: int = -1
    placement: NodeDevices = ()
    rate: float = 0.0
    solo_rate: float = 0.0
    partner: ActiveJob | None = None
    run_from_s: float = 0.0
    begun_s: float = 0.0
    held_since_s: float = 0.0
    allowance: float = math.inf
    ends_s: float = math.inf

    def __post_init__(self) -> None:
        self.left = self.true_samples
        self.declared_beyond = self.spec.samples - self.true_samples

    def begin(self, now_s: float, restart_s: float, round_s: float | None) -> None:
        """Begin a run on the devices held; ``round_s`` limits it to the whole steps of a round (None = no limit).

        A round shorter than the pause or than one step still yields one step: otherwise such a job would never move.
        """
        self.run += 1
        self.run_from_s = now_s
        self.begun_s = now_s + restart_s
        self.allowance = math.inf
        if round_s is not None:
            step = self.spec.samples_per_step
            work = self.rate * self._computing_s(max(round_s - restart_s, 0.0))
            if step > 0:
                work = max(math.floor(work / step + WHOLE_STEP_SLACK), 1) * step
            self.allowance = work if work > 0 else self.rate * round_s
        self.ends_s = self.begun_s + self._running_s(min(self.left, self.allowance) / self.rate)

    def _computing_s(self, running_s: float) -> float:
        """Seconds of progress in so many seconds of a run, without its checkpoints."""
        saved = self.checkpoints
        if saved is None:
            return running_s
        cycle_s = saved.interval_s + saved.cost_s
        whole = math.floor(running_s / cycle_s)
        return whole * saved.interval_s + min(running_s - whole * cycle_s, saved.interval_s)

    def _running_s(self, computing_s: float) -> float:
        """Seconds of a run that so many seconds of progress take; nothing is saved when the end is reached."""
        saved = self.checkpoints
        if saved is None:
            return computing_s
        return computing_s + saved.cost_s * max(math.ceil(computing_s / saved.interval_s) - 1, 0)

    def progress(self, now_s: float) -> float:
        """Samples done in the current run until now."""
        if self.devices == 0 or now_s <= self.begun_s:
            return 0.0
        most = min(self.left, self.allowance)
        if now_s >= self.ends_s:
            return most
        return min(self.rate * self._computing_s(now_s - self.begun_s), most)

    def checkpointed_samples(self, now_s: float) -> float:
        """Samples of the current run that a failure now would not undo: those of its last whole checkpoint."""
        if self.checkpoints is None or now_s <= self.begun_s:
            return 0.0
        cycle_s = self.checkpoints.interval_s + self.checkpoints.cost_s
        whole = math.floor((now_s - self.begun_s) / cycle_s)
        return min(self.rate * whole * self.checkpoints.interval_s, self.progress(now_s))

    def tell(self, now_s: float) -> None:
        """Bring what the policy sees of a running job up to now."""
        state = self.state
        if self.checkpoints is None and self.begun_s < now_s < self.ends_s:
            done = self.rate * (now_s - self.begun_s)
        else:
            done = self.progress(now_s)
        _set(state, "remaining_samples", self.left + self.declared_beyond - done)
        attained = self.attained_device_s + (now_s - self.run_from_s) * self.occupied_devices
        _set(state, "attained_service_device_s", attained)
        _set(state.current, "age_s", now_s - self.held_since_s)

    @property
    def occupied_devices(self) -> float:
        """Devices that count as this job's, those of servers included: of two that share one, half of it each."""
        whole = self.devices + self.spec.server_devices
        return whole if self.partner is None else 0.5 * whole

    def pair(self, partner: ActiveJob | None, share: float) -> None:
        """Run beside another job from now on, at a share of the solo rate; the run is begun anew apart."""
        self.partner, self.rate = partner, self.solo_rate * share
        _set(self.state.current, "shares_with", "" if partner is None else partner.spec.job_id)

    def hold(self, pool: int, devices: int, placement: NodeDevices, rate: float, now_s: float) -> None:
        """Take devices; the run is begun apart."""
        self.pool, self.devices, self.placement = pool, devices, placement
        self.rate = self.solo_rate = rate
        self.held_since_s = now_s
        _set(self.state, "current", CurrentAllocation(pool=pool, placement=placement, age_s=0.0))

    def count_restart(self) -> None:
        """Count a run that is not the first."""
        self.restarts += 1
        _set(self.state, "restarts", self.restarts)

    def end_run(self, now_s: float, done: float) -> float:
        """Close the run with so many samples done; seconds that it lasted."""
        lasted_s = now_s - self.run_from_s
        self.left = max(self.left - done, 0.0)
        self.attained_device_s += lasted_s * self.occupied_devices
        self.run_from_s = now_s
        return lasted_s

    def release(self) -> None:
        """Hold nothing; the run was ended before."""
        self.devices, self.pool, self.placement, self.rate, self.partner = 0, -1, (), 0.0, None
        self.ends_s = math.inf
        self.run += 1
        state = self.state
        _set(state, "current", None)
        _set(state, "remaining_samples", self.left + self.declared_beyond)
        _set(state, "attained_service_device_s", self.attained_device_s)
