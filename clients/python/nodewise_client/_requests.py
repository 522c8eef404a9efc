"""Requests of the other services: arguments in, messages out."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from nodewise_client._backtests import MeasurementTable, table_to_wire
from nodewise_client._evidence import ProfileContent, content_to_wire
from nodewise_client._questions import PredictOptions, options_to_wire
from nodewise_client._schedules import Cluster, NodePool, QueueQuota, ScheduleJob, cluster_to_wire, job_to_wire
from nodewise_client._time import to_timestamp
from nodewise_protos.v1 import evaluation_service_pb2, profile_service_pb2, schedule_pb2, schedule_service_pb2


def new_id() -> str:
    """An id that nobody else has chosen."""
    return str(uuid.uuid4())


def append_request(
    profile_id: str, content: ProfileContent, request_id: str | None
) -> profile_service_pb2.AppendProfileRequest:
    """An append. Its request id is chosen once, so that every retry carries the same."""
    return profile_service_pb2.AppendProfileRequest(
        profile_id=profile_id, request_id=request_id or new_id(), content=content_to_wire(content)
    )


def retract_request(
    profile_id: str, numbers: Iterable[int], reason: str, request_id: str | None
) -> profile_service_pb2.RetractObservationsRequest:
    """A retraction. Its request id is chosen once, so that every retry carries the same."""
    return profile_service_pb2.RetractObservationsRequest(
        profile_id=profile_id, request_id=request_id or new_id(), numbers=numbers, reason=reason
    )


def schedule_request(
    *,
    cluster: Cluster | Iterable[NodePool],
    jobs: Iterable[ScheduleJob],
    now: datetime | None,
    policy: str,
    policy_parameters: Mapping[str, float] | None,
    policy_state: bytes,
    quotas: Iterable[QueueQuota],
    options: PredictOptions | None,
) -> schedule_service_pb2.ScheduleRequest:
    """A cluster, its jobs, and the rule to share it by."""
    request = schedule_service_pb2.ScheduleRequest(
        cluster=cluster_to_wire(cluster),
        jobs=[job_to_wire(job) for job in jobs],
        policy=policy,
        policy_parameters=policy_parameters or {},
        policy_state=policy_state,
        quotas=[schedule_pb2.QueueQuota(queue=quota.queue, max_devices=quota.max_devices) for quota in quotas],
        options=options_to_wire(options),
    )
    request.now.CopyFrom(to_timestamp(now or datetime.now(UTC)))
    return request


def backtest_request(
    table: MeasurementTable, estimators: Iterable[str], calibration: MeasurementTable | None
) -> evaluation_service_pb2.BacktestRequest:
    """What to score on what."""
    return evaluation_service_pb2.BacktestRequest(
        table=table_to_wire(table),
        estimators=estimators,
        calibration=None if calibration is None else table_to_wire(calibration),
    )
