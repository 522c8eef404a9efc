"""The decision about each job, with its reason and its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from nodewise.domain.errors import Refusal
from nodewise.estimation.question import Basis
from nodewise.scheduling.nodes import NodeDevices

__all__ = ["Action", "Decision", "DecisionReason", "JobDecision", "PoolDemand"]


class Action(IntEnum):
    """What to do with a job; values are the contract's."""

    START = 1
    KEEP = 2
    CHANGE = 3
    WAIT = 4
    NO_ANSWER = 5


class DecisionReason(StrEnum):
    """Reasons of decisions; callers may rely on these names."""

    SHARING_CHANGED = "SHARING_CHANGED"
    """KEEP, CHANGE: it shares its device with another job than before, or with none; CHANGE where it has to move."""
    UNCHANGED = "UNCHANGED"
    """KEEP: the policy grants it the devices that it has."""
    MINIMUM_RUN = "MINIMUM_RUN"
    """KEEP: it has not yet run for its minimum_run_seconds."""
    NOT_PREEMPTIBLE = "NOT_PREEMPTIBLE"
    """KEEP: it may be neither stopped nor moved."""
    STARTED = "STARTED"
    """START: it did not run."""
    RESIZED = "RESIZED"
    """CHANGE: another number of devices in the same pool."""
    MOVED = "MOVED"
    """CHANGE: another pool."""
    NO_FREE_DEVICES = "NO_FREE_DEVICES"
    """WAIT: not even its smallest count is free."""
    DOES_NOT_FIT = "DOES_NOT_FIT"
    """WAIT: its smallest count is more than its pools have when they are empty, or fills no whole nodes."""
    QUOTA_REACHED = "QUOTA_REACHED"
    """WAIT: devices are free, but its queue may not hold more."""
    POLICY_CHOSE_OTHERS = "POLICY_CHOSE_OTHERS"
    """WAIT: devices are free, but the policy does not grant them to it now."""
    DEADLINE_CUT = "DEADLINE_CUT"
    """WAIT: the time was over before the policy decided about it."""
    CURVE_MISSING = "CURVE_MISSING"
    """NO_ANSWER: it could not be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """What to do with one job.

    Attributes
    ----------
    pool, devices, nodes, placement
        What it runs on from now: the pool's name (empty = nothing), worker devices, nodes that run workers, and (node
        index, devices) pairs, which include server devices.
    samples_per_s : float
        Predicted throughput (mini-batches/s where the batch is not known); 0 = it does not run, or not known.
    goodput_samples_per_s, useful : float or None
        Throughput with the failures of its pool, and its share of ``samples_per_s``; None = the pool states no
        failures, or it does not run.
    finish_s : float or None
        Seconds until it is done at that throughput, with failures; None = it does not run, or not known.
    marginal_samples_per_s : float or None
        Throughput per device, with failures, that the next larger allowed count in the pool would add; None = there is
        none, or not known.
    shares_with : str
        The job that runs on the same devices; empty = none.
    solo_speed : float or None
        Its speed beside that job as a share of its speed alone; the numbers above include it. None = it shares with
        no job, or not known.
    basis, refusal
        The evidence behind the curve; why there is none.
    """

    job_id: str
    action: Action
    reason: DecisionReason
    why: str
    pool: str = ""
    devices: int = 0
    nodes: int = 0
    placement: NodeDevices = ()
    samples_per_s: float = 0.0
    finish_s: float | None = None
    marginal_samples_per_s: float | None = None
    shares_with: str = ""
    solo_speed: float | None = None
    goodput_samples_per_s: float | None = None
    useful: float | None = None
    basis: Basis | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDemand:
    """Nodes of a pool in use, and the fewest nodes with which no job would wait for devices of the pool."""

    pool: str
    used_nodes: int
    desired_nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision: one entry per job, and one demand per pool, in the request's order.

    ``complete`` False = the time was over first, and this is the best feasible decision so far. ``memory`` is the state
    that the policy must get in the next call.
    """

    jobs: tuple[JobDecision, ...]
    policy: str
    policy_version: str
    complete: bool
    memory: bytes
    demands: tuple[PoolDemand, ...] = ()
