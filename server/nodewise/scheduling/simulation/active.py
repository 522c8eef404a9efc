"""A job between arrival and completion: its progress, its devices, and the clock of its current run."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from nodewise.domain.schedule import CurrentAllocation, JobState
from nodewise.scheduling.nodes import NodeDevices
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import Checkpoints

__all__ = ["ActiveJob"]

_set = object.__setattr__
"""Sets a field of a frozen value: a policy sees one object of a job from arrival to completion (policies are pure and
keep nothing between calls), and three of its fields change with time."""

WHOLE_STEP_SLACK = 1e-9
"""Rounding error, in steps, that counts as a whole step."""


@dataclass(slots=True, eq=False)
class ActiveJob:
    """One job in the system.

    A *run* is a stretch on the same devices. It begins with ``restart`` seconds without progress, then computes at
    ``rate`` samples/s of running time, with pauses for checkpoints. Progress is computed from the run's beginning, so
    it does not depend on how often it is computed.

    Attributes
    ----------
    state : JobState
        The job as the policy sees it; updated by ``tell``.
    left : float
        True samples left at the beginning of the current run, or now if it does not run.
    declared_beyond : float
        Declared samples that the job never processes, since it stops early.
    allowance : float
        Most samples in this run (a round's whole steps); infinite without rounds of whole steps.
    entry : int
        Number of the job, ascending in the order of the jobs that the policy sees.
    partner : ActiveJob or None
        The job that runs on the same devices.
    ends_s : float
        When the run ends by itself: the job or its allowance is complete; infinite while it has no devices.
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

        A round shorter than the pause or than one step still yields one step; otherwise the job would never progress.
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
        """Seconds of progress in so many seconds of a run, which include pauses for checkpoints."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return running_s
        cycle_s = checkpoints.interval_s + checkpoints.cost_s
        whole = math.floor(running_s / cycle_s)
        return whole * checkpoints.interval_s + min(running_s - whole * cycle_s, checkpoints.interval_s)

    def _running_s(self, computing_s: float) -> float:
        """Seconds of a run that so many seconds of progress take; there is no checkpoint at the end."""
        checkpoints = self.checkpoints
        if checkpoints is None:
            return computing_s
        return computing_s + checkpoints.cost_s * max(math.ceil(computing_s / checkpoints.interval_s) - 1, 0)

    def progress(self, now_s: float) -> float:
        """Samples done in the current run until now."""
        if self.devices == 0 or now_s <= self.begun_s:
            return 0.0
        most = min(self.left, self.allowance)
        if now_s >= self.ends_s:
            return most
        return min(self.rate * self._computing_s(now_s - self.begun_s), most)

    def checkpointed_samples(self, now_s: float) -> float:
        """Samples of the current run up to its last checkpoint, which a failure now would not undo."""
        if self.checkpoints is None or now_s <= self.begun_s:
            return 0.0
        cycle_s = self.checkpoints.interval_s + self.checkpoints.cost_s
        whole = math.floor((now_s - self.begun_s) / cycle_s)
        return min(self.rate * whole * self.checkpoints.interval_s, self.progress(now_s))

    def tell(self, now_s: float) -> None:
        """Update what the policy sees of a running job."""
        state = self.state
        if self.checkpoints is None and self.begun_s < now_s < self.ends_s:
            samples = self.rate * (now_s - self.begun_s)
        else:
            samples = self.progress(now_s)
        _set(state, "remaining_samples", self.left + self.declared_beyond - samples)
        service_device_s = self.attained_device_s + (now_s - self.run_from_s) * self.occupied_devices
        _set(state, "attained_service_device_s", service_device_s)
        _set(state.current, "age_s", now_s - self.held_since_s)

    @property
    def occupied_devices(self) -> float:
        """Devices that count as this job's, servers included; half of a device that two jobs share."""
        whole = self.devices + self.spec.server_devices
        return whole if self.partner is None else 0.5 * whole

    def pair(self, partner: ActiveJob | None, share: float) -> None:
        """Run beside another job from now on, at a share of the solo rate; the caller begins a new run."""
        self.partner, self.rate = partner, self.solo_rate * share
        _set(self.state.current, "shares_with", "" if partner is None else partner.spec.job_id)

    def hold(self, pool: int, devices: int, placement: NodeDevices, rate: float, now_s: float) -> None:
        """Take devices; the caller begins the run."""
        self.pool, self.devices, self.placement = pool, devices, placement
        self.rate = self.solo_rate = rate
        self.held_since_s = now_s
        _set(self.state, "current", CurrentAllocation(pool=pool, placement=placement, age_s=0.0))

    def count_restart(self) -> None:
        """Count a run that is not the first."""
        self.restarts += 1
        _set(self.state, "restarts", self.restarts)

    def end_run(self, now_s: float, samples: float) -> float:
        """End the run after so many samples; returns the seconds that it took."""
        lasted_s = now_s - self.run_from_s
        self.left = max(self.left - samples, 0.0)
        self.attained_device_s += lasted_s * self.occupied_devices
        self.run_from_s = now_s
        return lasted_s

    def release(self) -> None:
        """Release all devices; the caller has ended the run."""
        self.devices, self.pool, self.placement, self.rate, self.partner = 0, -1, (), 0.0, None
        self.ends_s = math.inf
        self.run += 1
        state = self.state
        _set(state, "current", None)
        _set(state, "remaining_samples", self.left + self.declared_beyond)
        _set(state, "attained_service_device_s", self.attained_device_s)
