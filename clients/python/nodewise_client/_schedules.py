"""Schedules: clusters, jobs that want a share of them, and allocations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from nodewise_client._configurations import Configurations, configurations_to_wire
from nodewise_client._enums import SCHEDULE_ACTIONS, ScheduleAction, to_word
from nodewise_client._evidence import ProfileContent, source_to_wire
from nodewise_client._predictions import Basis, Refusal, Rows, basis_from_wire, refusal_from_wire
from nodewise_client._time import to_timestamp
from nodewise_protos.v1 import schedule_pb2, schedule_service_pb2


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """Nodes of one kind."""

    name: str
    """Unique in the cluster."""
    device: str
    """Accelerator, e.g. "V100"."""
    available_devices: Iterable[int]
    """Per node: devices that may be given out, those held by the jobs asked about included."""
    link_bytes_per_s: float = 0.0
    """0 = as in the jobs' evidence."""
    price_per_node_hour: float = 0.0
    """0 = not known."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "available_devices", tuple(self.available_devices))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What there is to share."""

    pools: Iterable[NodePool]

    def __post_init__(self) -> None:
        object.__setattr__(self, "pools", tuple(self.pools))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDevices:
    """Devices on one node of a pool."""

    node: int
    """Index into the pool's `available_devices`."""
    devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentAllocation:
    """What a job runs on now."""

    pool: str
    placement: Iterable[NodeDevices]
    """Devices on each node, those of servers included."""
    age_s: float = 0.0
    """Since when, seconds."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", tuple(self.placement))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleJob:
    """A job that wants devices."""

    job_id: str
    """Unique in the request."""
    profile: str | ProfileContent
    """Name of a stored profile, or the profile itself."""
    remaining_samples: float
    """Samples left to train on; mini-batches where the batch is not known."""
    allowed_devices: Iterable[int] = ()
    """Numbers of worker devices; empty = every number from `min_devices` to `max_devices`."""
    min_devices: int = 0
    """0 = 1."""
    max_devices: int = 0
    """0 = as many as the cluster has."""
    allowed_pools: Iterable[str] = ()
    """Empty = all."""
    server_devices: int = 0
    """Devices besides its workers, e.g. for a parameter server."""
    requested_devices: int = 0
    """Used by policies that do not choose; 0 = `min_devices`."""
    submit_time: datetime | None = None
    attained_service_device_s: float = 0.0
    current_allocation: CurrentAllocation | None = None
    """None = it does not run."""
    restart_cost_s: float = 0.0
    weight: float = 0.0
    """0 = 1."""
    queue: str = ""
    deadline: datetime | None = None
    template: Configurations | None = None
    """How it runs, as one row without nodes, workers and devices; None = as in its evidence."""
    minimum_run_s: float = 0.0
    restarts: int = 0
    """How often it was restarted so far."""
    gradient_noise_scale_samples: float | None = None
    """For policies that weigh statistical efficiency; None = not known."""
    initial_batch_samples: float = 0.0
    """Global batch that `remaining_samples` is counted at; 0 = not known."""
    minimum_revision: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "allowed_devices", tuple(self.allowed_devices))
        object.__setattr__(self, "allowed_pools", tuple(self.allowed_pools))


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueQuota:
    """Devices that a queue may hold at once."""

    queue: str
    max_devices: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAllocation:
    """What a job gets."""

    job_id: str
    action: ScheduleAction
    pool: str | None
    """None = nothing."""
    devices: int
    """Worker devices."""
    nodes: int
    placement: tuple[NodeDevices, ...]
    """Where, devices of servers included."""
    samples_per_s: float | None
    """Predicted throughput there; mini-batches per second where the batch is not known."""
    finish_s: float | None
    """Predicted seconds until it is done if the allocation stays."""
    marginal_samples_per_s: float | None
    """What the next larger allowed allocation would add, per device."""
    reason: str
    """Stable reason, e.g. "NO_FREE_DEVICES"."""
    why: str
    basis: Basis | None
    refusal: Refusal | None
    """Why it could not be predicted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleResult(Rows[JobAllocation]):
    """The allocations, one per job in the order asked."""

    allocations: tuple[JobAllocation, ...]
    policy: str
    policy_version: str
    decision_s: float
    """Seconds that the decision took, predictions included."""
    complete: bool
    """False = the deadline cut it; this is the best feasible allocation so far."""
    policy_state: bytes
    """What the policy remembers: give it to the next call."""
    bases: tuple[Basis, ...]
    raw: schedule_service_pb2.ScheduleResponse = field(repr=False, compare=False)
    """The message as it came."""

    def _items(self) -> tuple[JobAllocation, ...]:
        return self.allocations


def cluster_to_wire(cluster: Cluster | Iterable[NodePool]) -> schedule_pb2.Cluster:
    """A cluster, or its pools, as its message."""
    pools = cluster.pools if isinstance(cluster, Cluster) else cluster
    return schedule_pb2.Cluster(
        pools=[
            schedule_pb2.NodePool(
                name=pool.name,
                device_name=pool.device,
                available_devices=pool.available_devices,
                link_bytes_per_second=pool.link_bytes_per_s,
                price_per_node_hour=pool.price_per_node_hour,
            )
            for pool in pools
        ]
    )


def job_to_wire(job: ScheduleJob) -> schedule_pb2.ScheduleJob:
    """A job as its message."""
    return schedule_pb2.ScheduleJob(
        job_id=job.job_id,
        profile=source_to_wire(job.profile, job.minimum_revision),
        remaining_samples=job.remaining_samples,
        allowed_devices=job.allowed_devices,
        min_devices=job.min_devices,
        max_devices=job.max_devices,
        allowed_pools=job.allowed_pools,
        server_devices=job.server_devices,
        requested_devices=job.requested_devices,
        submit_time=None if job.submit_time is None else to_timestamp(job.submit_time),
        attained_service_device_seconds=job.attained_service_device_s,
        current_allocation=None if job.current_allocation is None else _current_to_wire(job.current_allocation),
        restart_cost_seconds=job.restart_cost_s,
        weight=job.weight,
        queue=job.queue,
        deadline=None if job.deadline is None else to_timestamp(job.deadline),
        template=None if job.template is None else configurations_to_wire(job.template),
        minimum_run_seconds=job.minimum_run_s,
        restarts_count=job.restarts,
        gradient_noise_scale_samples=job.gradient_noise_scale_samples,
        initial_batch_samples=job.initial_batch_samples,
    )


def schedule_result(message: schedule_service_pb2.ScheduleResponse) -> ScheduleResult:
    """The allocations that a message holds."""
    bases = tuple(basis_from_wire(basis) for basis in message.bases)
    return ScheduleResult(
        allocations=tuple(_allocation(found, bases) for found in message.allocations),
        policy=message.policy,
        policy_version=message.policy_version,
        decision_s=message.decision_seconds,
        complete=message.complete,
        policy_state=message.policy_state,
        bases=bases,
        raw=message,
    )


def _current_to_wire(current: CurrentAllocation) -> schedule_pb2.CurrentAllocation:
    return schedule_pb2.CurrentAllocation(
        pool=current.pool,
        placement=[
            schedule_pb2.NodeDevices(node_index=node.node, devices_count=node.devices) for node in current.placement
        ],
        age_seconds=current.age_s,
    )


def _allocation(message: schedule_pb2.JobAllocation, bases: tuple[Basis, ...]) -> JobAllocation:
    known = 0 <= message.basis_index < len(bases)
    return JobAllocation(
        job_id=message.job_id,
        # An action that this client does not know is no reason to touch the job.
        action=to_word(SCHEDULE_ACTIONS, message.action) or ScheduleAction.NO_ANSWER,
        pool=message.pool or None,
        devices=message.devices_count,
        nodes=message.nodes_count,
        placement=tuple(NodeDevices(node=node.node_index, devices=node.devices_count) for node in message.placement),
        samples_per_s=message.samples_per_second or None,
        finish_s=message.finish_seconds or None,
        marginal_samples_per_s=message.marginal_samples_per_second or None,
        reason=message.reason,
        why=message.why,
        basis=bases[message.basis_index] if known else None,
        refusal=refusal_from_wire(message.refusal) if message.HasField("refusal") else None,
    )
