"""What becomes of each job, with the reason and the numbers."""

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
    """Why; stable names that callers may switch on."""

    SHARING_CHANGED = "SHARING_CHANGED"
    """KEEP, CHANGE: it runs beside another job than before, or beside none; CHANGE where it has to move for that."""
    UNCHANGED = "UNCHANGED"
    """KEEP: the policy gives it what it has."""
    MINIMUM_RUN = "MINIMUM_RUN"
    """KEEP: it has not yet run for its minimum_run_seconds."""
    NOT_PREEMPTIBLE = "NOT_PREEMPTIBLE"
    """KEEP: it may be neither stopped nor moved."""
    STARTED = "STARTED"
    """START: it does not run."""
    RESIZED = "RESIZED"
    """CHANGE: another number of devices in the same pool."""
    MOVED = "MOVED"
    """CHANGE: another pool."""
    NO_FREE_DEVICES = "NO_FREE_DEVICES"
    """WAIT: not even its smallest count is free."""
    DOES_NOT_FIT = "DOES_NOT_FIT"
    """WAIT: its smallest count is more than its pools have when they are empty, or fills no whole nodes."""
    QUOTA_REACHED = "QUOTA_REACHED"
    """WAIT: devices are free but its queue may not hold more."""
    POLICY_CHOSE_OTHERS = "POLICY_CHOSE_OTHERS"
    """WAIT: devices are free, and the policy's rule does not give them to it now."""
    DEADLINE_CUT = "DEADLINE_CUT"
    """WAIT: the time was over before the policy came to it."""
    CURVE_MISSING = "CURVE_MISSING"
    """NO_ANSWER: it could not be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDecision:
    """What to do with one job.

    Attributes
    ----------
    pool, devices, nodes, placement
        What it runs on from now: pool's name (empty = nothing), worker devices, nodes that run workers, and (node
        index, devices) with those of servers.
    samples_per_s : float
        Predicted there (mini-batches/s where the batch is not known); 0 = it does not run or is not known.
    finish_s : float or None
        Seconds until it is done if that stays; None = as above.
    marginal_samples_per_s : float or None
        What the next larger allowed count in the pool would add per device; None = there is none, or it is not known.
    shares_with : str
        The job that runs on the same devices; empty = none.
    solo_speed : float or None
        Share of its solo speed that it keeps there; the numbers above are with it. None = it shares with nobody, or
        what it keeps is not known.
    basis, refusal
        What the curve rests on; why there is none.
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
    basis: Basis | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDemand:
    """Nodes of a pool that are in use, and the fewest at which no job would wait for its devices."""

    pool: str
    used_nodes: int
    desired_nodes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The decision: one entry per job, and one demand per pool, in the request's order.

    ``complete`` False = the time was over first, and this is the best feasible decision so far. ``memory`` is what the
    policy wants to be given next time.
    """

    jobs: tuple[JobDecision, ...]
    policy: str
    policy_version: str
    complete: bool
    memory: bytes
    demands: tuple[PoolDemand, ...] = ()
