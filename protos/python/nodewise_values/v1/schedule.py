"""Clusters, jobs that want a share of them, and allocations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import Configurations
from nodewise_values.v1.prediction import RowRefusal
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import Value, Word

__all__ = [
    "Cluster",
    "CurrentAllocation",
    "JobAllocation",
    "NodeDevices",
    "NodePool",
    "QueueQuota",
    "ScheduleAction",
    "ScheduleJob",
]


class ScheduleAction(Word):
    """What to do with a job."""

    KEEP = "keep"
    """Leave it as it is."""
    CHANGE = "change"
    """Start it, or run it on other devices."""
    WAIT = "wait"
    """It gets nothing now (a running job is stopped)."""
    NO_ANSWER = "no_answer"
    """It could not be predicted; leave it as it is. What it holds is not given to others."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cluster(Value):
    """What there is to share."""

    pools: tuple[NodePool, ...] = ()
    """Pools of alike nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodePool(Value):
    """Nodes of one kind."""

    name: str = ""
    """Name, unique in the cluster."""
    device_name: str = ""
    """Accelerator, e.g. "V100"."""
    available_devices: tuple[int, ...] = ()
    """Per node: devices that this call may give out. Those held by the request's jobs are included."""
    link_bytes_per_second: float = 0.0
    """Link of a node, bytes per second and direction. 0 = as in the jobs' evidence."""
    price_per_node_hour: float = 0.0
    """Price of one node for one hour. 0 = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleJob(Value):
    """A job that wants devices."""

    job_id: str = ""
    """Name, unique in the request."""
    profile: ProfileSource | None = None
    """What is known of it."""
    remaining_samples: float = 0.0
    """Samples left to train on. Where the batch is not known, mini-batches."""
    allowed_devices: tuple[int, ...] = ()
    """Numbers of worker devices it may run on. Empty = every number from min_devices to max_devices."""
    min_devices: int = 0
    """Fewest worker devices. 0 = 1."""
    max_devices: int = 0
    """Most worker devices. 0 = as many as the cluster has."""
    allowed_pools: tuple[str, ...] = ()
    """Pools it may run in; it never spans two. Empty = all."""
    server_devices: int = 0
    """Devices it takes besides its workers, e.g. for a parameter server. Default 0."""
    requested_devices: int = 0
    """Worker devices that it asked for; used by policies that do not choose. 0 = min_devices."""
    submit_time: datetime | None = None
    """When it was submitted."""
    attained_service_device_seconds: float = 0.0
    """Service received so far, device-seconds."""
    current_allocation: CurrentAllocation | None = None
    """What it runs on now. Absent = it does not run."""
    restart_cost_seconds: float = 0.0
    """Seconds lost when it is moved."""
    weight: float = 0.0
    """Its claim relative to others. 0 = 1."""
    queue: str = ""
    """Queue whose quota it counts against. Empty = none."""
    deadline: datetime | None = None
    """When it must be done. Absent = no deadline."""
    template: Configurations | None = None
    """How it runs, as Configurations with one row (sync mode, servers, batch).

    How it runs, as Configurations with one row (sync mode, servers, batch); nodes, workers and devices are filled in by
    the scheduler. Absent = as in its evidence.
    """
    minimum_run_seconds: float = 0.0
    """Seconds that an allocation must last before it may be changed. 0 = none."""
    restarts_count: int = 0
    """How often it was restarted so far."""
    gradient_noise_scale_samples: float | None = None
    """Gradient noise scale of its training now, for policies that weigh statistical efficiency. Absent = not known."""
    initial_batch_samples: float = 0.0
    """Global batch that remaining_samples is counted at: larger batches need more samples for the same progress.

    0 = not known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CurrentAllocation(Value):
    """What a job runs on now."""

    pool: str = ""
    """Pool."""
    placement: tuple[NodeDevices, ...] = ()
    """Devices on each node, those of servers included."""
    age_seconds: float = 0.0
    """Since when, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeDevices(Value):
    """Devices on one node."""

    node_index: int = 0
    """Node, as an index into the pool's available_devices."""
    devices_count: int = 0
    """Devices on it."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QueueQuota(Value):
    """Devices that a queue may hold at once."""

    queue: str = ""
    """Queue."""
    max_devices: int = 0
    """Most devices."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobAllocation(Value):
    """What a job gets."""

    job_id: str = ""
    """The job."""
    action: ScheduleAction | None = None
    """What to do."""
    pool: str = ""
    """Pool. Empty = nothing."""
    devices_count: int = 0
    """Worker devices."""
    nodes_count: int = 0
    """Nodes that they are on."""
    placement: tuple[NodeDevices, ...] = ()
    """Where, those of servers included."""
    samples_per_second: float = 0.0
    """Predicted throughput there, samples per second (mini-batches per second where the batch is not known)."""
    finish_seconds: float = 0.0
    """Predicted seconds until it is done if the allocation stays. 0 = it does not run."""
    marginal_samples_per_second: float = 0.0
    """Throughput that the next larger allowed allocation in the pool would add, per device. 0 = none or not known."""
    reason: str = ""
    """Stable reason, e.g. "NO_FREE_DEVICES"."""
    why: str = ""
    """For people, with the numbers."""
    basis_index: int = 0
    """Entry of ScheduleResponse.bases. -1 = none."""
    refusal: RowRefusal | None = None
    """Why it could not be predicted: message of the error. Empty = it was."""
