"""What Schedule sends, and what comes back from it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from canned_answers import BASIS
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise_client import (
    Cluster,
    ConfigurationSettings,
    CurrentAllocation,
    InvalidArgumentError,
    NodeDevices,
    NodePool,
    ProfileContent,
    QueueQuota,
    ScheduleAction,
    ScheduleJob,
    ScheduleRequest,
    StatisticalEfficiency,
    profile_source,
)
from nodewise_protos.v1 import schedule_pb2, schedule_service_pb2


def test_schedule_sends_and_reads(client, server):
    now = datetime(2026, 5, 1, tzinfo=UTC)
    server.answer(
        "Schedule",
        schedule_service_pb2.ScheduleResponse(
            allocations=[
                {
                    "job_id": "a",
                    "action": schedule_pb2.SCHEDULE_ACTION_CHANGE,
                    "pool": "p",
                    "devices_count": 2,
                    "nodes_count": 1,
                    "placement": [{"node_index": 0, "devices_count": 2}],
                    "samples_per_second": 10.0,
                    "basis_index": 0,
                },
                {
                    "job_id": "b",
                    "action": schedule_pb2.SCHEDULE_ACTION_NO_ANSWER,
                    "problem": {"reason": "EVIDENCE_MISSING"},
                },
            ],
            policy="fifo",
            complete=True,
            policy_state=b"memory",
            bases=[BASIS],
        ),
    )
    result = client.schedule(
        ScheduleRequest(
            cluster=Cluster(pools=[NodePool(name="p", device_name="V100", available_devices=[4, 4])]),
            jobs=[
                ScheduleJob(
                    job_id="a",
                    profile=profile_source("resnet"),
                    remaining_samples=1e6,
                    allowed_devices=[1, 2, 4],
                    submit_time=now,
                    deadline=now,
                    current_allocation=CurrentAllocation(
                        pool="p", placement=[NodeDevices(node_index=0, devices_count=1)], age_seconds=5.0
                    ),
                    settings=ConfigurationSettings(sync_mode="async"),
                    restarts_count=2,
                    efficiency=StatisticalEfficiency(initial_batch_samples=64.0),
                    preemptible=False,
                ),
                ScheduleJob(job_id="b", profile=profile_source(ProfileContent()), remaining_samples=1.0),
            ],
            now=now,
            policy="fifo",
            policy_parameters={"quantum_seconds": 60.0},
            policy_state=b"before",
            quotas=[QueueQuota(queue="q", max_devices=2)],
        )
    )
    sent = server.requests["Schedule"][0]
    assert sent.now == Timestamp(seconds=int(now.timestamp()))
    assert sent.jobs[0].current_allocation.placement[0].devices_count == 1
    assert list(sent.jobs[0].allowed_devices) == [1, 2, 4]
    assert (sent.jobs[0].restarts_count, sent.jobs[0].efficiency.initial_batch_samples) == (2, 64.0)
    assert [(job.HasField("efficiency"), job.HasField("preemptible")) for job in sent.jobs] == [
        (True, True),
        (False, False),
    ]
    assert sent.jobs[1].profile.HasField("content")
    assert (dict(sent.policy_parameters), sent.policy_state, sent.quotas[0].queue) == (
        {"quantum_seconds": 60.0},
        b"before",
        "q",
    )
    first, second = result.allocations
    assert (first.action, first.pool, first.placement) == (
        ScheduleAction.CHANGE,
        "p",
        (NodeDevices(node_index=0, devices_count=2),),
    )
    assert (first.samples_per_second, first.finish_seconds) == (10.0, None)
    assert result.bases[first.basis_index].estimator == "queueing"
    assert (second.action, second.pool, second.basis_index, second.problem.reason) == (
        "no_answer",
        "",
        None,
        "EVIDENCE_MISSING",
    )
    assert (result.policy_state, result.complete) == (b"memory", True)


def test_a_moment_without_a_zone_is_refused(client):
    moment = datetime(2026, 1, 1)  # noqa: DTZ001  # that is the point
    with pytest.raises(InvalidArgumentError, match="zone") as caught:
        client.schedule(ScheduleRequest(now=moment))
    assert (caught.value.reason, caught.value.violations[0].field) == ("INVALID_FIELD", "now")
