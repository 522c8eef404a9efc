"""Clusters, the jobs that request devices, and allocations.

For what an absent or empty value means, see configuration.proto.
"""

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
    """The job does not run: start it."""
    KEEP = "keep"
    """Leave the job as it is."""
    CHANGE = "change"
    """The job runs: move it to other devices."""
    WAIT = "wait"
    """The job gets no devices now; if it runs, stop it."""
    NO_ANSWER = "no_answer"
    """The job could not be predicted; leave it as it is. The devices that it holds are not given to other jobs."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Cluster(Value):
    """The devices to allocate."""

    pools: tuple[NodePool, ...] = ()
    """Pools of identical nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodePool(Value):
    """Nodes of one kind."""

    name: str = ""
    """Name, unique in the cluster."""
    device_name: str = ""
    """Accelerator, e.g. "V100"."""
    available_devices: tuple[int, ...] = ()
    """For each node, the devices that this call may allocate, including those that the request's jobs hold now."""
    link_bytes_per_second: float | None = None
    """Link of a node, bytes per second in each direction. Absent = as in the jobs' evidence."""
    price_per_node_hour: float | None = None
    """Price of one node for one hour. Absent = not known."""
    node_names: tuple[str, ...] = ()
    """Names of the nodes, one per entry of available_devices, unique in the pool.

    Answers then include them. Empty = nodes have only indexes.
    """
    devices_per_node: int | None = None
    """Devices per node, if nodes are allocated whole.

    The number of devices that a job holds, those of servers included, is then a multiple of it. Absent = devices are
    allocated one by one.
    """
    max_nodes: int | None = None
    """Most nodes that the pool may grow to, for PoolDemand.desired_nodes. Absent = the pool does not grow."""
    device_hours_between_failures: float | None = None
    """Mean hours of one device between failures that stop the job on it or its node.

    The mean of a job is this divided by its devices. Policies then compare goodput: throughput times the share of time
    that is progress. Absent = failures are not considered.
    """
    restart_seconds: float | None = None
    """Seconds from a failure until the job runs again. Absent = 600."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScheduleJob(Value):
    """A job that requests devices."""

    job_id: str = ""
    """Name, unique in the request."""
    profile: ProfileSource | None = None
    """What is known of the job."""
    remaining_samples: float = 0.0
    """Samples left to train on, or mini-batches if the batch is not known."""
    allowed_devices: tuple[int, ...] = ()
    """Numbers of worker devices that the job may run on. Empty = every number from min_devices to max_devices."""
    min_devices: int | None = None
    """Fewest worker devices. Absent = 1."""
    max_devices: int | None = None
    """Most worker devices. Absent = as many as the cluster has."""
    allowed_pools: tuple[str, ...] = ()
    """Pools that the job may run in. A job never spans two pools. Empty = all pools."""
    server_devices: int = 0
    """Devices that the job needs in addition to its workers, e.g. for a parameter server."""
    requested_devices: int | None = None
    """Worker devices that the job requests, for policies that do not choose a number. Absent = min_devices."""
    submit_time: datetime | None = None
    """When the job was submitted."""
    attained_service_device_seconds: float = 0.0
    """Service received so far, device-seconds."""
    current_allocation: CurrentAllocation | None = None
    """The allocation that the job runs on now. Absent = the job does not run."""
    restart_cost_seconds: float = 0.0
    """Seconds lost when the job is moved."""
    weight: float | None = None
    """Priority of the job relative to others. Absent = 1."""
    queue: str = ""
    """Queue whose quota the job counts against. Empty = none."""
    deadline: datetime | None = None
    """When the job must be done. Absent = no deadline."""
    settings: ConfigurationSettings | None = None
    """How the job runs. The scheduler sets nodes, workers and devices. Absent = as in the job's evidence."""
    minimum_run_seconds: float = 0.0
    """Least seconds that an allocation must last before it may be changed."""
    restarts_count: int = 0
    """Number of times that the job was restarted."""
    efficiency: StatisticalEfficiency | None = None
    """How much a sample is worth at another batch, for policies that consider statistical efficiency.

    remaining_samples then counts samples at the initial batch. Absent = the same at every batch.
    """
    preemptible: bool | None = None
    """Whether the job may be stopped or moved while it runs.

    Absent = true. If false, the job keeps the devices that it holds.
    """
    checkpoint_seconds: float | None = None
    """Seconds of a checkpoint, for pools that state failures; jobs save at the best interval.

    Absent = each node writes the weights and the optimizer's state of its devices at 1 GB/s, or 60 if their size is not
    known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CurrentAllocation(Value):
    """The allocation that a job runs on now."""

    pool: str = ""
    """Name of the pool."""
    placement: tuple[NodeDevices, ...] = ()
    """Devices on each node, including those of servers."""
    age_seconds: float = 0.0
    """Seconds since the job was given this allocation."""
    shares_with_job_id: str = ""
    """Name of the job that shares these devices; both jobs then have the same placement.

    It is enough if one of the two states it. Empty = none.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedPair(Value):
    """Two jobs that may share a device.

    Two jobs that may share a device, and the share of its solo speed that each keeps, as predicted by SharingService or
    as measured. The jobs share only if each has one worker device and no servers, and if the policy packs jobs and puts
    these two together.
    """

    first_job_id: str = ""
    """Name of one job."""
    second_job_id: str = ""
    """Name of the other job."""
    pool: str = ""
    """Pool that these shares apply to. Empty = every pool."""
    first_share: float = 0.0
    """Share of its solo speed that the first job keeps, 1 = all of it."""
    second_share: float = 0.0
    """Share of its solo speed that the second job keeps."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NodeDevices(Value):
    """Devices on one node."""

    node_index: int | None = None
    """Node, as an index into the pool's available_devices. Requests may state node_name instead."""
    devices_count: int = 0
    """Number of devices on the node."""
    node_name: str = ""
    """Name of the node. Empty = the pool names no nodes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class QueueQuota(Value):
    """Most devices that a queue may hold at once."""

    queue: str = ""
    """Name of the queue."""
    max_devices: int = 0
    """Most devices."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobAllocation(Value):
    """Allocation of a job."""

    job_id: str = ""
    """Name of the job."""
    action: ScheduleAction | None = None
    """What to do with the job."""
    pool: str = ""
    """Name of the pool. Empty = the job has no devices."""
    devices_count: int = 0
    """Number of worker devices."""
    nodes_count: int = 0
    """Number of nodes that these devices are on."""
    placement: tuple[NodeDevices, ...] = ()
    """Devices on each node, including those of servers."""
    samples_per_second: float = 0.0
    """Predicted throughput with this allocation.

    Predicted throughput with this allocation, samples per second (mini-batches per second if the batch is not known).
    """
    finish_seconds: float | None = None
    """Predicted seconds until the job is done if it keeps this allocation, with the failures that its pool states.

    Absent = the job does not run.
    """
    marginal_samples_per_second: float | None = None
    """Throughput that the next larger allowed allocation in the pool would add.

    Throughput that the next larger allowed allocation in the pool would add, per device, with the failures that the
    pool states. Absent = there is none, or its throughput is not known.
    """
    reason: str = ""
    """Stable reason of the decision, e.g. "NO_FREE_DEVICES"."""
    why: str = ""
    """Why the policy decided so, for people, with the numbers."""
    basis_index: int | None = None
    """Index into ScheduleResponse.bases. Absent = the job was not predicted."""
    problem: Problem | None = None
    """Why the job could not be predicted. Absent = it was predicted."""
    shares_with_job_id: str = ""
    """Name of the job that shares these devices; both jobs have the same placement. Empty = none."""
    solo_speed_ratio: float | None = None
    """Share of its solo speed that the job keeps on these devices.

    samples_per_second and finish_seconds take it into account. Absent = the job does not share its devices.
    """
    useful_ratio: float | None = None
    """Share of the time that is progress: the rest is checkpoints, restarts and lost work.

    Absent = the pool states no failures, or the job does not run.
    """
    goodput_samples_per_second: float | None = None
    """samples_per_second times useful_ratio. Absent as useful_ratio."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PoolDemand(Value):
    """Number of nodes that a pool needs."""

    pool: str = ""
    """Name of the pool."""
    used_nodes: int = 0
    """Nodes that the allocations use."""
    desired_nodes: int = 0
    """Fewest nodes, up to max_nodes, at which no job of this answer would wait for devices of the pool.

    A job that may run in several pools counts for the first of them that may grow.
    """
