"""Schedule and Simulate over a real socket where jobs share devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from patience import PATIENCE_S
from serving import Stubs, failure_of, one_worker_phases

from nodewise.runtime.embedded_server import EmbeddedServer
from nodewise_protos.v1 import schedule_pb2 as pb
from nodewise_protos.v1 import schedule_service_pb2
from nodewise_protos.v1.profile_pb2 import ProfileSource
from nodewise_protos.v1beta1 import simulation_pb2
from nodewise_protos.v1beta1.simulation_service_pb2 import SimulateRequest

KNOWN = ProfileSource(content=one_worker_phases())
CLUSTER = pb.Cluster(pools=[pb.NodePool(name="p", device_name="V100", available_devices=[1, 1])])
PAIR = pb.SharedPair(first_job_id="a", second_job_id="c", first_share=0.8, second_share=0.6)


@pytest.fixture(scope="module")
def stubs() -> Iterator[Stubs]:
    with EmbeddedServer() as server, Stubs(server.target) as found:
        yield found


def job(job_id: str, node: int = -1, shares_with: str = "", **stated: Any) -> pb.ScheduleJob:
    """A job of one worker; on a node, it runs."""
    if node >= 0:
        held = pb.NodeDevices(node_index=node, devices_count=1)
        stated["current_allocation"] = pb.CurrentAllocation(
            pool="p", placement=[held], age_seconds=9.0, shares_with_job_id=shares_with
        )
    stated = {"submit_time": Timestamp(seconds=ord(job_id[0])), "remaining_samples": 1e4, **stated}
    return pb.ScheduleJob(job_id=job_id, profile=KNOWN, max_devices=1, **stated)


def schedule(stubs: Stubs, *jobs: pb.ScheduleJob, **stated: Any) -> schedule_service_pb2.ScheduleResponse:
    request = schedule_service_pb2.ScheduleRequest(
        **{"now": Timestamp(seconds=999), "cluster": CLUSTER, "jobs": jobs, "policy": "packing", **stated}
    )
    return stubs.schedule.Schedule(request, timeout=PATIENCE_S)


def test_a_job_that_finds_no_device_shares_one(stubs: Stubs) -> None:
    alone, *_ = schedule(stubs, job("a")).allocations
    found = schedule(stubs, job("c"), job("a"), job("b"), shared_pairs=[PAIR])
    last, first, middle = found.allocations
    assert (first.shares_with_job_id, last.shares_with_job_id, middle.shares_with_job_id) == ("c", "a", "")
    assert first.placement == last.placement != middle.placement
    assert (first.solo_speed_ratio, last.solo_speed_ratio) == (0.8, 0.6)
    assert not middle.HasField("solo_speed_ratio")
    assert first.samples_per_second == pytest.approx(0.8 * alone.samples_per_second)
    assert last.finish_seconds == pytest.approx(alone.finish_seconds / 0.6)
    assert "shares it with 'a' and runs at 0.6" in last.why
    assert [each.used_nodes for each in found.pool_demands] == [2]


def test_policies_that_do_not_pack_leave_every_job_its_own(stubs: Stubs) -> None:
    found = schedule(stubs, job("a"), job("b"), job("c"), shared_pairs=[PAIR], policy="fifo")
    assert [each.shares_with_job_id for each in found.allocations] == ["", "", ""]
    assert found.allocations[2].action == pb.SCHEDULE_ACTION_WAIT


def test_a_pair_that_runs_is_kept(stubs: Stubs) -> None:
    for said in (("c", "a"), ("c", ""), ("", "a")):
        jobs = job("a", 0, said[0]), job("b", 1), job("c", 0, said[1])
        found = schedule(stubs, *jobs, shared_pairs=[PAIR])
        assert [each.action for each in found.allocations] == [pb.SCHEDULE_ACTION_KEEP] * 3
        assert [each.reason for each in found.allocations] == ["UNCHANGED"] * 3
        assert found.allocations[2].shares_with_job_id == "a"


def test_a_pair_parts_where_a_device_is_free(stubs: Stubs) -> None:
    found = schedule(stubs, job("a", 0, "c"), job("c", 0, "a"), shared_pairs=[PAIR])
    stays, leaves = found.allocations
    assert (stays.action, stays.reason) == (pb.SCHEDULE_ACTION_KEEP, "SHARING_CHANGED")
    assert (leaves.action, leaves.reason) == (pb.SCHEDULE_ACTION_CHANGE, "SHARING_CHANGED")
    assert stays.placement[0].node_index == 0
    assert leaves.placement[0].node_index == 1
    assert "no longer shares with 'c'" in stays.why


def test_another_policy_takes_a_pair_apart(stubs: Stubs) -> None:
    found = schedule(stubs, job("a", 0, "c"), job("b", 1), job("c", 0, "a"), policy="fifo")
    actions = [each.action for each in found.allocations]
    assert actions == [pb.SCHEDULE_ACTION_KEEP, pb.SCHEDULE_ACTION_KEEP, pb.SCHEDULE_ACTION_WAIT]


def test_who_shares_with_a_job_that_must_stay_stays_with_it(stubs: Stubs) -> None:
    jobs = job("a", 0, "c", preemptible=False), job("b"), job("c", 0, "a")
    found = schedule(stubs, *jobs, shared_pairs=[PAIR], policy="fifo")
    fixed, started, beside = found.allocations
    assert fixed.reason == "NOT_PREEMPTIBLE"
    assert beside.action == pb.SCHEDULE_ACTION_KEEP
    assert (beside.shares_with_job_id, beside.solo_speed_ratio) == ("a", 0.6)
    assert started.placement[0].node_index == 1


@pytest.mark.parametrize(
    ("jobs", "pairs", "field"),
    [
        ([job("a"), job("c")], [pb.SharedPair(first_job_id="a", second_job_id="x")], "shared_pairs[0].second_job_id"),
        ([job("a"), job("c")], [pb.SharedPair(first_job_id="a", second_job_id="a")], "shared_pairs[0].second_job_id"),
        ([job("a"), job("c")], [pb.SharedPair(first_job_id="a", second_job_id="c")], "shared_pairs[0].first_share"),
        (
            [job("a"), job("c")],
            [pb.SharedPair(first_job_id="a", second_job_id="c", pool="q", first_share=1, second_share=1)],
            "shared_pairs[0].pool",
        ),
        ([job("a"), job("c", 0, "x")], [], "jobs[1].current_allocation.shares_with_job_id"),
        ([job("a", 1), job("c", 0, "a")], [], "jobs[1].current_allocation.shares_with_job_id"),
        ([job("a", 0), job("c", 0)], [], "jobs[1].current_allocation.placement[0].devices_count"),
    ],
)
def test_what_is_wrong_is_named(stubs: Stubs, jobs: list[Any], pairs: list[Any], field: str) -> None:
    assert field in failure_of(schedule, stubs, *jobs, shared_pairs=pairs).fields


def test_other_shares_than_before_contradict(stubs: Stubs) -> None:
    other = pb.SharedPair(first_job_id="a", second_job_id="c", first_share=0.5, second_share=0.6)
    assert failure_of(schedule, stubs, job("a"), job("c"), shared_pairs=[PAIR, other]).reason == "CONTRADICTORY_FACTS"


def simulation(**stated: Any) -> SimulateRequest:
    curves = [
        simulation_pb2.SimulationCurve(
            rows=simulation_pb2.SimulationCurveRows(devices_counts=[1], samples_per_second=[1.0])
        )
    ] * 2
    pairs = {"first_curve_indexes": [0], "second_curve_indexes": [1], "first_shares": [0.75], "second_shares": [0.5]}
    return SimulateRequest(
        cluster=pb.Cluster(pools=[pb.NodePool(name="p", device_name="V100", available_devices=[1])]),
        jobs=simulation_pb2.SimulationJobs(
            count=2, arrival_seconds=[0.0, 0.0], work_samples=[30.0, 60.0], curve_indexes=[0, 1]
        ),
        curves=curves,
        policy="packing",
        include_jobs=True,
        settings=simulation_pb2.SimulationSettings(**stated.pop("settings", {})),
        shared_pairs=simulation_pb2.SimulationSharedPairs(**{**pairs, **stated}),
    )


def simulated(stubs: Stubs, request: SimulateRequest) -> list[float]:
    replies = list(stubs.simulation.Simulate(request, timeout=PATIENCE_S))
    (rows,) = [reply.jobs for reply in replies if reply.HasField("jobs")]
    return list(rows.completion_seconds)


def test_simulated_jobs_share_a_device(stubs: Stubs) -> None:
    """30 samples at 0.75 end at 40 s; of 60 at 0.5 then 40 are left, alone."""
    assert simulated(stubs, simulation()) == pytest.approx([40.0, 80.0])
    wrong = simulation(predicted_first_shares=[0.4], predicted_second_shares=[0.4])
    assert simulated(stubs, wrong) == pytest.approx([30.0, 90.0])


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"first_curve_indexes": []}, "shared_pairs.first_curve_indexes"),
        ({"second_curve_indexes": [2]}, "shared_pairs.second_curve_indexes[0]"),
        ({"pool_indexes": [1]}, "shared_pairs.pool_indexes[0]"),
        ({"first_shares": [0.0]}, "shared_pairs.first_shares[0]"),
        ({"second_shares": []}, "shared_pairs.second_shares"),
        ({"predicted_first_shares": [0.5]}, "shared_pairs.predicted_second_shares"),
        ({"settings": {"clock": 3}}, "settings.clock"),
        ({"settings": {"checkpoints": {"interval_seconds": 1.0}}}, "settings.checkpoints"),
    ],
)
def test_what_is_wrong_with_pairs_of_curves_is_named(stubs: Stubs, stated: dict[str, Any], field: str) -> None:
    failure = failure_of(stubs.simulation.Simulate, simulation(**stated), timeout=PATIENCE_S)
    assert any(field.removeprefix("settings.") in each for each in failure.fields), failure.fields
