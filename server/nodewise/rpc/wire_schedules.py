"""Schedules on the wire: cluster and jobs in, allocations out."""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.domain.schedule import NodePool
from nodewise.ports.limits import Limits
from nodewise.rpc.reading import Reader
from nodewise.rpc.wire_configurations import read_template
from nodewise.rpc.wire_predictions import write_basis, write_refusal
from nodewise.scheduling.decision import Decision, JobDecision
from nodewise.scheduling.request import HeldDevices, JobQuestion, QueueQuota
from nodewise_protos.v1 import prediction_pb2, schedule_pb2
from nodewise_protos.v1 import schedule_service_pb2 as pb

__all__ = ["read_job", "read_pools", "read_quotas", "read_time", "write_decision"]


def read_time(message: Timestamp) -> float:
    """Seconds since 1970."""
    return message.seconds + message.nanos / 1e9


def read_pools(messages: Sequence[schedule_pb2.NodePool]) -> tuple[NodePool, ...]:
    """Pools as given; ``scheduling.checks`` judges them."""
    return tuple(
        NodePool(
            name=pool.name,
            device=pool.device_name,
            available_devices=as_ints(pool.available_devices),
            link_bytes_per_s=pool.link_bytes_per_second,
            price_per_node_hour=pool.price_per_node_hour,
        )
        for pool in messages
    )


def read_quotas(messages: Sequence[schedule_pb2.QueueQuota]) -> tuple[QueueQuota, ...]:
    """Quotas as given."""
    return tuple(QueueQuota(queue=quota.queue, max_devices=quota.max_devices) for quota in messages)


def read_job(
    message: schedule_pb2.ScheduleJob, profile: Profile | NodewiseError, path: str, limits: Limits
) -> JobQuestion:
    """A job as given; ``scheduling.checks`` judges it.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a template that is no single row.
    """
    return JobQuestion(
        job_id=message.job_id,
        profile=profile,
        remaining_samples=message.remaining_samples,
        submit_time_s=read_time(message.submit_time),
        allowed_devices=tuple(message.allowed_devices),
        min_devices=message.min_devices,
        max_devices=message.max_devices,
        allowed_pools=tuple(message.allowed_pools),
        server_devices=message.server_devices,
        requested_devices=message.requested_devices,
        attained_service_device_s=message.attained_service_device_seconds,
        current=_held(message.current_allocation) if message.HasField("current_allocation") else None,
        restart_cost_s=message.restart_cost_seconds,
        weight=message.weight,
        queue=message.queue,
        deadline_s=read_time(message.deadline) if message.HasField("deadline") else None,
        template=_template(message, f"{path}.template", limits) if message.HasField("template") else None,
        minimum_run_s=message.minimum_run_seconds,
        restarts=message.restarts_count,
        gradient_noise_scale_samples=(
            message.gradient_noise_scale_samples if message.HasField("gradient_noise_scale_samples") else None
        ),
        initial_batch_samples=message.initial_batch_samples or None,
    )


def _held(message: schedule_pb2.CurrentAllocation) -> HeldDevices:
    return HeldDevices(
        pool=message.pool,
        placement=tuple((node.node_index, node.devices_count) for node in message.placement),
        age_s=message.age_seconds,
    )


def _template(message: schedule_pb2.ScheduleJob, path: str, limits: Limits) -> Configurations:
    reader = Reader()
    template = read_template(message.template, path, reader, limits)
    reader.finish()
    return template


def write_decision(decision: Decision, seconds: float) -> pb.ScheduleResponse:
    """The allocations, in the request's order."""
    indexes: dict[int, int] = {}
    bases: list[prediction_pb2.Basis] = []

    def basis_index(job: JobDecision) -> int:
        if job.basis is None:
            return -1
        index = indexes.get(id(job.basis))
        if index is None:
            index = indexes[id(job.basis)] = len(bases)
            bases.append(write_basis(job.basis))
        return index

    allocations = [
        schedule_pb2.JobAllocation(
            job_id=job.job_id,
            action=int(job.action),  # type: ignore[arg-type]  # the same numbers, tested
            pool=job.pool,
            devices_count=job.devices,
            nodes_count=job.nodes,
            placement=[schedule_pb2.NodeDevices(node_index=node, devices_count=count) for node, count in job.placement],
            samples_per_second=job.samples_per_s,
            finish_seconds=job.finish_s,
            marginal_samples_per_second=job.marginal_samples_per_s,
            reason=str(job.reason),
            why=job.why,
            basis_index=basis_index(job),
            refusal=None if job.refusal is None else write_refusal(job.refusal),
        )
        for job in decision.jobs
    ]
    return pb.ScheduleResponse(
        allocations=allocations,
        policy=decision.policy,
        policy_version=decision.policy_version,
        decision_seconds=seconds,
        complete=decision.complete,
        policy_state=decision.memory,
        bases=bases,
    )
