"""Schedule, ListPolicies and Simulate over a real socket, by the stubs alone."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.timestamp_pb2 import Timestamp
from patience import PATIENCE_S, before_its_deadline
from serving import Stubs, failure_of, one_worker_phases

from nodewise.domain.failures import useful_ratio
from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise.runtime.settings import Settings
from nodewise_protos.v1 import profile_service_pb2, schedule_pb2, schedule_service_pb2
from nodewise_protos.v1.configuration_pb2 import ConfigurationSettings
from nodewise_protos.v1.plugin_pb2 import PLUGIN_KIND_POLICY
from nodewise_protos.v1.profile_pb2 import ProfileSource
from nodewise_protos.v1.schedule_pb2 import Cluster, CurrentAllocation, NodeDevices, NodePool, ScheduleJob
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1.simulation_service_pb2 import SimulateRequest

KNOWN = ProfileSource(content=one_worker_phases())
CLUSTER = Cluster(
    pools=[
        NodePool(
            name="p",
            device_name="V100",
            available_devices=[4, 4, 4],
            node_names=["x", "y", "z"],
            devices_per_node=4,
            max_nodes=9,
        )
    ]
)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer() as server, Stubs(server.target) as found:
        yield found


def job(job_id: str, requested: int, **stated: Any) -> ScheduleJob:
    values: dict[str, Any] = {"profile": KNOWN, "remaining_samples": 1e4, **stated}
    return ScheduleJob(job_id=job_id, requested_devices=requested, **values)


def schedule(stubs: Stubs, *jobs: ScheduleJob, policy: str = "fifo") -> schedule_service_pb2.ScheduleResponse:
    request = schedule_service_pb2.ScheduleRequest(now=Timestamp(seconds=1), cluster=CLUSTER, jobs=jobs, policy=policy)
    return stubs.schedule.Schedule(request, timeout=PATIENCE_S)


def test_a_cluster_of_whole_nodes_is_shared_and_asks_for_more(stubs: Stubs) -> None:
    fixed = CurrentAllocation(pool="p", placement=[NodeDevices(node_name="y", devices_count=4)])
    unknown = ProfileSource(profile_id="nobody/knows/it")
    found = schedule(
        stubs,
        job("running", 8, current_allocation=fixed, preemptible=False),
        job("new", 3, settings=ConfigurationSettings(sync_mode="SYNC_MODE_ASYNC", parameter_servers=1)),
        job("late", 8, submit_time=Timestamp(seconds=1)),
        job("lost", 1, profile=unknown),
    )
    running, new, late, lost = found.allocations
    assert running.action == schedule_pb2.SCHEDULE_ACTION_KEEP
    assert running.reason == "NOT_PREEMPTIBLE"
    assert list(running.placement) == [NodeDevices(node_index=1, devices_count=4, node_name="y")]
    assert (new.action, new.devices_count, new.nodes_count) == (schedule_pb2.SCHEDULE_ACTION_START, 4, 1)
    assert new.placement[0].node_name in {"x", "z"}
    assert new.finish_seconds == pytest.approx(1e4 / new.samples_per_second)
    assert late.action == schedule_pb2.SCHEDULE_ACTION_WAIT
    assert not late.HasField("finish_seconds")
    assert (lost.action, lost.problem.reason) == (schedule_pb2.SCHEDULE_ACTION_NO_ANSWER, "PROFILE_NOT_FOUND")
    assert not lost.HasField("basis_index")
    assert found.bases[new.basis_index].estimator
    [demand] = found.pool_demands
    assert (demand.pool, demand.used_nodes, demand.desired_nodes) == ("p", 2, 4)
    assert found.complete


def failing(*jobs: ScheduleJob, **stated: float) -> schedule_service_pb2.ScheduleRequest:
    pools = [NodePool(name="p", device_name="V100", available_devices=[4, 4, 4], **stated)]
    return schedule_service_pb2.ScheduleRequest(
        now=Timestamp(seconds=1), cluster=Cluster(pools=pools), jobs=jobs, policy="fifo"
    )


def test_pools_that_state_failures_give_goodput(stubs: Stubs) -> None:
    settings = ConfigurationSettings(sync_mode="SYNC_MODE_SYNC", parameter_servers=1)
    asked = (
        job("stops", 4, checkpoint_seconds=30, server_devices=1, settings=settings),
        job("continues", 4),
    )
    found = stubs.schedule.Schedule(
        failing(*asked, device_hours_between_failures=100, restart_seconds=300), timeout=PATIENCE_S
    )
    stops, continues = found.allocations
    assert stops.useful_ratio == pytest.approx(float(useful_ratio(100 * 3600 / 5, 30, 300)))
    assert continues.useful_ratio == pytest.approx(1 / (1 + 300 * 4 / (100 * 3600)))
    without = stubs.schedule.Schedule(failing(*asked), timeout=PATIENCE_S).allocations
    for allocation, same in zip(found.allocations, without):
        assert allocation.samples_per_second == same.samples_per_second
        goodput = allocation.samples_per_second * allocation.useful_ratio
        assert allocation.goodput_samples_per_second == pytest.approx(goodput)
        assert allocation.finish_seconds == pytest.approx(1e4 / goodput)
        assert not same.HasField("useful_ratio")
        assert not same.HasField("goodput_samples_per_second")


def test_failures_are_the_same_over_http() -> None:
    request = failing(job("a", 4), device_hours_between_failures=100)
    with EmbeddedServer(Settings(store="memory:", http="127.0.0.1:0")) as server, Stubs(server.target) as stubs:
        connection = http.client.HTTPConnection(server.http_target, timeout=PATIENCE_S)
        body, header = json_format.MessageToJson(request), {"Content-Type": "application/json"}
        connection.request("POST", "/v1/schedules:schedule", body, header)
        found = json.loads(connection.getresponse().read())
        connection.close()
        expected = json_format.MessageToDict(stubs.schedule.Schedule(request, timeout=PATIENCE_S))
    assert found["allocations"] == expected["allocations"]
    assert 0.99 < found["allocations"][0]["usefulRatio"] < 1.0


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"device_hours_between_failures": 0.0}, "cluster.pools[0].device_hours_between_failures"),
        ({"device_hours_between_failures": 1.0, "restart_seconds": -1.0}, "cluster.pools[0].restart_seconds"),
    ],
)
def test_failures_out_of_bounds_are_refused(stubs: Stubs, stated: dict[str, float], field: str) -> None:
    failure = failure_of(stubs.schedule.Schedule, failing(job("a", 4), **stated), timeout=PATIENCE_S)
    assert failure.reason == "INVALID_FIELD"
    assert failure.fields.keys() == {field}


def test_a_revision_that_does_not_come_costs_its_job_alone(stubs: Stubs) -> None:
    early = ProfileSource(profile_id="schedules/early", minimum_revision=9)
    stubs.profile.AppendProfile(
        profile_service_pb2.AppendProfileRequest(
            profile_id=early.profile_id, request_id="first", content=one_worker_phases()
        )
    )
    request = schedule_service_pb2.ScheduleRequest(
        now=Timestamp(seconds=1), cluster=CLUSTER, jobs=[job("early", 1, profile=early), job("a", 1)], policy="fifo"
    )
    found = before_its_deadline(lambda timeout_s: stubs.schedule.Schedule(request, timeout=timeout_s), 1.0)
    assert found.allocations[0].problem.reason == "REVISION_NOT_REACHED"
    assert found.allocations[0].problem.retry_delay_seconds > 0
    assert found.allocations[1].action == schedule_pb2.SCHEDULE_ACTION_START


def test_what_is_wrong_is_named_where_it_stands(stubs: Stubs) -> None:
    failure = failure_of(schedule, stubs, job("a", 1, min_devices=0, settings=ConfigurationSettings(zero_stage=7)))
    assert failure.reason == "INVALID_FIELD"
    assert failure.fields.keys() == {"jobs[0].min_devices", "jobs[0].settings.zero_stage"}


def test_policies_are_listed_by_name_page_by_page(stubs: Stubs) -> None:
    request = schedule_service_pb2.ListPoliciesRequest(page_size=2)
    names = []
    while True:
        page = stubs.schedule.ListPolicies(request, timeout=PATIENCE_S)
        names += [each.name for each in page.policies]
        assert {each.kind for each in page.policies} == {PLUGIN_KIND_POLICY}
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert names == sorted(set(names))
    assert "efficiency-capped" in names


def simulate(stubs: Stubs, **profile_curve: Any) -> simulation_pb2.SimulationResult:
    request = SimulateRequest(
        cluster=CLUSTER,
        jobs=simulation_pb2.SimulationJobs(
            count=1, arrival_seconds=[0.0], work_samples=[1e4], curve_indexes=[0], requested_devices=[3]
        ),
        curves=[
            simulation_pb2.SimulationCurve(
                profile=simulation_pb2.SimulationProfileCurve(profile=KNOWN, **profile_curve)
            )
        ],
        policy="fifo",
    )
    return list(stubs.simulation.Simulate(request, timeout=PATIENCE_S))[-1].result


def test_a_simulation_predicts_and_places_as_a_schedule_does(stubs: Stubs) -> None:
    [alone] = schedule(stubs, job("a", 3)).allocations
    [run] = simulate(stubs).runs
    assert run.average_jct_seconds == pytest.approx(alone.finish_seconds)


def test_a_curve_that_is_wrong_is_named_where_it_stands(stubs: Stubs) -> None:
    with pytest.raises(grpc.RpcError, match=r"curves\[0\]\.profile\.allowed_devices\[0\]"):
        simulate(stubs, allowed_devices=[0])
    with pytest.raises(grpc.RpcError, match=r"curves\[0\]\.profile\.settings\.device_name"):
        simulate(stubs, settings=ConfigurationSettings(device_name="V100"))
