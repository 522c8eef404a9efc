"""A schedule's request: from its message to the client's words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from nodewise_client import (
    Cluster,
    CurrentAllocation,
    Fidelity,
    Freshness,
    NodeDevices,
    NodePool,
    PredictionColumn,
    PredictOptions,
    ProfileContent,
    QueueQuota,
    ScheduleJob,
    configurations_from_wire,
    content_from_wire,
)
from nodewise_protos.v1 import prediction_pb2, prediction_service_pb2, profile_pb2, schedule_pb2, schedule_service_pb2

__all__ = ["options_of", "schedule_arguments", "source_of"]


def schedule_arguments(request: schedule_service_pb2.ScheduleRequest) -> dict[str, Any]:
    """What `Client.schedule` takes."""
    return {
        "cluster": Cluster(pools=[_pool(pool) for pool in request.cluster.pools]),
        "jobs": [_job(job) for job in request.jobs],
        "now": _moment(request.now),
        "policy": request.policy,
        "policy_parameters": dict(request.policy_parameters),
        "policy_state": request.policy_state,
        "quotas": [QueueQuota(queue=quota.queue, max_devices=quota.max_devices) for quota in request.quotas],
        "options": options_of(request.options),
    }


def _pool(pool: schedule_pb2.NodePool) -> NodePool:
    return NodePool(
        name=pool.name,
        device=pool.device_name,
        available_devices=pool.available_devices,
        link_bytes_per_s=pool.link_bytes_per_second,
        price_per_node_hour=pool.price_per_node_hour,
    )


def _job(job: schedule_pb2.ScheduleJob) -> ScheduleJob:
    return ScheduleJob(
        job_id=job.job_id,
        profile=source_of(job.profile),
        minimum_revision=job.profile.minimum_revision,
        remaining_samples=job.remaining_samples,
        allowed_devices=job.allowed_devices,
        min_devices=job.min_devices,
        max_devices=job.max_devices,
        allowed_pools=job.allowed_pools,
        server_devices=job.server_devices,
        requested_devices=job.requested_devices,
        submit_time=_moment(job.submit_time) if job.HasField("submit_time") else None,
        attained_service_device_s=job.attained_service_device_seconds,
        current_allocation=_current(job.current_allocation) if job.HasField("current_allocation") else None,
        restart_cost_s=job.restart_cost_seconds,
        weight=job.weight,
        queue=job.queue,
        deadline=_moment(job.deadline) if job.HasField("deadline") else None,
        template=configurations_from_wire(job.template) if job.HasField("template") else None,
        minimum_run_s=job.minimum_run_seconds,
        restarts=job.restarts_count,
        gradient_noise_scale_samples=(
            job.gradient_noise_scale_samples if job.HasField("gradient_noise_scale_samples") else None
        ),
        initial_batch_samples=job.initial_batch_samples,
    )


def source_of(source: profile_pb2.ProfileSource) -> str | ProfileContent:
    """A profile, by name or inline."""
    return content_from_wire(source.inline) if source.HasField("inline") else source.profile_id


def _current(current: schedule_pb2.CurrentAllocation) -> CurrentAllocation:
    return CurrentAllocation(
        pool=current.pool,
        placement=[NodeDevices(node=part.node_index, devices=part.devices_count) for part in current.placement],
        age_s=current.age_seconds,
    )


def options_of(options: prediction_service_pb2.PredictOptions) -> PredictOptions:
    """How to answer."""
    columns = [_word(prediction_pb2.PredictionColumn.Name(number)) for number in options.columns]
    freshness = _word(prediction_service_pb2.Freshness.Name(options.freshness))
    fidelity = _word(prediction_service_pb2.Fidelity.Name(options.fidelity))
    return PredictOptions(
        estimator=options.estimator or "auto",
        coverage=options.interval_coverage or None,
        freshness=None if freshness == "unspecified" else Freshness(freshness),
        allow_fallback=options.allow_fallback,
        columns=[PredictionColumn(column) for column in columns],
        fidelity=None if fidelity == "unspecified" else Fidelity(fidelity),
        seed=options.seed,
    )


def _word(name: str) -> str:
    """The word of an enumeration's name: FRESHNESS_ALLOW_STALE is allow_stale."""
    for prefix in ("PREDICTION_COLUMN_", "FRESHNESS_", "FIDELITY_"):
        name = name.removeprefix(prefix)
    return name.lower()


def _moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)
