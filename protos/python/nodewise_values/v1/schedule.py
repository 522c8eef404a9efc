"""Clusters, jobs that want a share of them, and allocations. Absence, as on the whole wire: see configuration.proto."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import ConfigurationSettings
from nodewise_values.v1.objective import StatisticalEfficiency
from nodewise_values.v1.problem import Problem
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import Value, Word

__all__ = [
    "Cluster",
    "CurrentAllocation",
    "JobAllocation",
    "NodeDevices",
    "NodePool",
    "PoolDemand",
    "QueueQuota",
    "ScheduleAction",
    "ScheduleJob",
    "SharedPair",
]


class ScheduleAction(Word):
    """What to do with a job."""

    START = "start"
    """It does not run: start it."""
    KEEP = "keep"
    """Leave it as it is."""
    CHANGE = "change"
    """It runs: run it on other devices."""
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
    link_bytes_per_second: float | None = None
    """Link of a node, bytes per second and direction. Absent = as in the jobs' evidence."""
    price_per_node_hour: float | None = None
    """Price of one node for one hour. Absent = not known."""
    node_names: tuple[str, ...] = ()
    """Names of the nodes, one per entry of available_devices, unique in the pool; answers then carry them.

    Empty = nodes have indexes alone.
    """
    devices_per_node: int | None = None
    """Nodes are given out whole, each with so many devices.

    Nodes are given out whole, each with so many devices: numbers of devices that a job holds, those of servers
    included, are then multiples of it. Absent = devices are given out one by one.
    """
    max_nodes: int | None = None
    """Nodes that the pool may grow to, for PoolDemand.desired_nodes. Absent = it does not grow."""


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
    min_devices: int | None = None
    """Fewest worker devices. Absent = 1."""
    max_devices: int | None = None
    """Most worker devices. Absent = as many as the cluster has."""
    allowed_pools: tuple[str, ...] = ()
    """Pools it may run in; it never spans two. Empty = all."""
    server_devices: int = 0
    """Devices it takes besides its workers, e.g. for a parameter server."""
    requested_devices: int | None = None
    """Worker devices that it asked for; used by policies that do not choose. Absent = min_devices."""
    submit_time: datetime | None = None
    """When it was submitted."""
    attained_service_device_seconds: float = 0.0
    """Service received so far, device-seconds."""
    current_allocation: CurrentAllocation | None = None
    """What it runs on now. Absent = it does not run."""
    restart_cost_seconds: float = 0.0
    """Seconds lost when it is moved."""
    weight: float | None = None
    """Its claim relative to others. Absent = 1."""
    queue: str = ""
    """Queue whose quota it counts against. Empty = none."""
    deadline: datetime | None = None
    """When it must be done. Absent = no deadline."""
    settings: ConfigurationSettings | None = None
    """How it runs; nodes, workers and devices are filled in by the scheduler. Absent = as in its evidence."""
    minimum_run_seconds: float = 0.0
    """Seconds that an allocation must last before it may be changed."""
    restarts_count: int = 0
    """How often it was restarted so far."""
    efficiency: StatisticalEfficiency | None = None
    """What another batch is worth, for policies that weigh statistical efficiency.

    What another batch is worth, for policies that weigh statistical efficiency; remaining_samples is counted at the
    initial batch. Absent = a sample is a sample.
    """
    preemptible: bool | None = None
    """Whether a running job may be stopped or moved. Absent = true. False: it keeps what it holds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CurrentAllocation(Value):
    """What a job runs on now."""

    pool: str = ""
    """Pool."""
    placement: tuple[NodeDevices, ...] = ()
    """Devices on each node, those of servers included."""
    age_seconds: float = 0.0
    """Since when, seconds."""
    shares_with_job_id: str = ""
    """The job that runs on the same devices, where the two share them: its placement is the same.

    Both say it, or one of them. Empty = none.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedPair(Value):
    """Two jobs that may share a device.

    Two jobs that may share a device: the share of its solo speed that each keeps, as SharingService predicts it, or as
    it was measured. They share only where both have one worker device, no servers, and a policy that packs puts them
    together.
    """

    first_job_id: str = ""
    """One job."""
    second_job_id: str = ""
    """The other."""
    pool: str = ""
    """Pool where it holds. Empty = in every pool."""
    first_share: float = 0.0
    """Share that the first keeps, 1 = all of its solo speed."""
    second_share: float = 0.0
    """Share that the second keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeDevices(Value):
    """Devices on one node."""

    node_index: int | None = None
    """Node, as an index into the pool's available_devices. In requests its name may stand in its place."""
    devices_count: int = 0
    """Devices on it."""
    node_name: str = ""
    """Its name. Empty = the pool names no nodes."""


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
    finish_seconds: float | None = None
    """Predicted seconds until it is done if the allocation stays. Absent = it does not run."""
    marginal_samples_per_second: float | None = None
    """Throughput that the next larger allowed allocation in the pool would add, per device.

    Absent = there is none, or it is not known.
    """
    reason: str = ""
    """Stable reason, e.g. "NO_FREE_DEVICES"."""
    why: str = ""
    """For people, with the numbers."""
    basis_index: int | None = None
    """Entry of ScheduleResponse.bases. Absent = it was not predicted."""
    problem: Problem | None = None
    """Why it could not be predicted. Absent = it was."""
    shares_with_job_id: str = ""
    """The job that it shares its devices with; its placement is the same. Empty = none."""
    solo_speed_ratio: float | None = None
    """Share of its solo speed that it keeps there; samples_per_second and finish_seconds are with it.

    Absent = it shares with nobody.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PoolDemand(Value):
    """How many nodes a pool should have."""

    pool: str = ""
    """The pool."""
    used_nodes: int = 0
    """Nodes in use by the allocations."""
    desired_nodes: int = 0
    """Fewest nodes at which no job of this answer would wait for devices of the pool, at most its max_nodes.

    A job that may run in several pools counts in the first that may grow.
    """
