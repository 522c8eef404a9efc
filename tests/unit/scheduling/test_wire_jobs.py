"""Clusters, jobs and decisions of Schedule as messages."""

from __future__ import annotations

from typing import Any

import pytest
from schedules import pool, profile

from nodewise.domain.configurations import SyncMode
from nodewise.domain.errors import NodewiseError, Reason, Refusal
from nodewise.mapper.reading import Reader
from nodewise.rpc.schedules import read_job, read_pools, write_decision
from nodewise.scheduling.decision import Action, Decision, DecisionReason, JobDecision
from nodewise.scheduling.request import JobQuestion, ScheduleQuestion
from nodewise_protos.v1 import schedule_pb2
from nodewise_protos.v1.configuration_pb2 import ConfigurationSettings
from nodewise_protos.v1.objective_pb2 import StatisticalEfficiency
from nodewise_protos.v1.schedule_pb2 import CurrentAllocation, NodeDevices, NodePool, ScheduleJob

NAMED = NodePool(name="p", device_name="V100", available_devices=[4, 4], node_names=["x", "y"])


def job(**stated: Any) -> JobQuestion:
    reader = Reader()
    pools = {each.name: each for each in read_pools([NAMED], reader)}
    found = read_job(ScheduleJob(job_id="a", **stated), profile("t"), "jobs[0]", pools, reader)
    reader.finish()
    return found


def refused(**stated: Any) -> tuple[Reason, str, str]:
    with pytest.raises(NodewiseError) as caught:
        job(**stated)
    [violation] = caught.value.violations
    return caught.value.reason, violation.field, violation.description


def test_statistical_efficiency_is_read_where_it_is_stated() -> None:
    stated = StatisticalEfficiency(gradient_noise_scale_samples=0.0, initial_batch_samples=128.0)
    found = job(restarts_count=3, efficiency=stated)
    assert (found.restarts, found.gradient_noise_scale_samples, found.initial_batch_samples) == (3, 0.0, 128.0)


def test_what_is_not_stated_is_not_known() -> None:
    found = job()
    assert (found.restarts, found.gradient_noise_scale_samples, found.initial_batch_samples) == (0, None, None)
    assert (found.min_devices, found.max_devices, found.requested_devices, found.weight) == (0, 0, 0, 0.0)
    assert (found.settings, found.current, found.deadline_s) == (None, None, None)


@pytest.mark.parametrize("name", ["min_devices", "max_devices", "requested_devices", "weight"])
def test_a_stated_0_is_no_absence(name: str) -> None:
    reason, field, _ = refused(**{name: 0})
    assert (reason, field) == (Reason.INVALID_FIELD, f"jobs[0].{name}")


def test_an_efficiency_needs_its_initial_batch() -> None:
    _, field, text = refused(efficiency=StatisticalEfficiency(gradient_noise_scale_samples=1.0))
    assert field == "jobs[0].efficiency.initial_batch_samples"
    assert "above 0" in text


def test_settings_say_how_a_job_runs_but_not_on_what() -> None:
    found = job(settings=ConfigurationSettings(sync_mode="SYNC_MODE_ASYNC", parameter_servers=2)).settings
    assert found is not None
    assert (found.sync_mode.tolist(), found.parameter_servers.tolist()) == ([SyncMode.ASYNC], [2])
    for name in ("device_name", "offer_name"):
        stated: dict[str, Any] = {name: "V100"}
        _, field, text = refused(settings=ConfigurationSettings(**stated))
        assert field == f"jobs[0].settings.{name}"
        assert text.startswith("must be empty")


def held(**node: Any) -> dict[str, Any]:
    return {"current_allocation": CurrentAllocation(pool="p", placement=[NodeDevices(devices_count=1, **node)])}


@pytest.mark.parametrize("node", [{"node_index": 1}, {"node_name": "y"}, {"node_index": 1, "node_name": "y"}])
def test_a_node_goes_by_its_index_or_its_name(node: dict[str, Any]) -> None:
    current = job(**held(**node)).current
    assert current is not None
    assert current.placement == ((1, 1),)


@pytest.mark.parametrize(
    ("node", "reason", "name", "words"),
    [
        ({}, Reason.INVALID_FIELD, "node_index", "must be given unless node_name is given"),
        ({"node_name": "z"}, Reason.INVALID_FIELD, "node_name", "must name a node of pool 'p', found 'z'"),
        (
            {"node_index": 0, "node_name": "y"},
            Reason.CONTRADICTORY_FACTS,
            "node_index",
            "must be 1, that of 'y', found 0",
        ),
    ],
)
def test_a_node_that_is_none(node: dict[str, Any], reason: Reason, name: str, words: str) -> None:
    found = refused(**held(**node))
    assert found == (reason, f"jobs[0].current_allocation.placement[0].{name}", words)


def test_pools_state_what_they_know() -> None:
    reader = Reader()
    [plain, priced] = read_pools([NodePool(name="p"), NodePool(name="q", price_per_node_hour=0.0)], reader)
    assert (plain.link_bytes_per_s, plain.price_per_node_hour, plain.node_names) == (0.0, None, ())
    assert priced.price_per_node_hour == 0.0
    read_pools([NodePool(link_bytes_per_second=0.0)], reader)
    with pytest.raises(NodewiseError, match=r"cluster\.pools\[0\]\.link_bytes_per_second"):
        reader.finish()


def asked(job_id: str, known: bool = True) -> JobQuestion:
    error = NodewiseError(Reason.PROFILE_NOT_FOUND, "there is none", {"profile_id": "t"})
    return JobQuestion(job_id=job_id, profile=profile("t") if known else error, remaining_samples=1.0)


def test_a_decision_names_nodes_and_leaves_out_what_is_not_known() -> None:
    [named] = read_pools([NAMED], Reader())
    jobs = (
        JobDecision(
            job_id="a",
            action=Action.START,
            reason=DecisionReason.STARTED,
            why="because",
            pool="p",
            devices=2,
            nodes=1,
            placement=((1, 2),),
            samples_per_s=1.0,
            finish_s=2.0,
            marginal_samples_per_s=0.0,
        ),
        JobDecision(
            job_id="b",
            action=Action.NO_ANSWER,
            reason=DecisionReason.CURVE_MISSING,
            why="",
            refusal=Refusal(Reason.PROFILE_NOT_FOUND, "there is none", ()),
        ),
    )
    question = ScheduleQuestion(now_s=0.0, pools=(named, pool("q", 1)), jobs=(asked("a"), asked("b", known=False)))
    decision = Decision(jobs=jobs, policy="fifo", policy_version="1", complete=True, memory=b"")
    first, second = write_decision(decision, question, 0.1).allocations
    assert first.action == schedule_pb2.SCHEDULE_ACTION_START
    assert list(first.placement) == [NodeDevices(node_index=1, devices_count=2, node_name="y")]
    assert (first.finish_seconds, first.HasField("marginal_samples_per_second")) == (2.0, True)
    assert not first.HasField("basis_index")
    assert not first.HasField("problem")
    assert not second.HasField("finish_seconds")
    assert not second.HasField("marginal_samples_per_second")
    assert (second.problem.reason, dict(second.problem.metadata)) == ("PROFILE_NOT_FOUND", {"profileId": "t"})


def test_actions_are_those_of_the_contract() -> None:
    names = {value.name: value.number for value in schedule_pb2.ScheduleAction.DESCRIPTOR.values}
    assert names == {"SCHEDULE_ACTION_UNSPECIFIED": 0} | {f"SCHEDULE_ACTION_{each.name}": each for each in Action}
