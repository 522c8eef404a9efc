"""How many nodes pools should have, after whole decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from schedules import POLICIES, TABLE, Tables, pool, profile

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import NodePool
from nodewise.plugin import Budget
from nodewise.scheduling.decide import decide
from nodewise.scheduling.request import CurrentDevices, JobQuestion, QueueQuota, ScheduleQuestion

PREDICT = Tables({"t": {"V100": TABLE}}, errors={"bad": NodewiseError(Reason.EVIDENCE_MISSING, "no timings")})


def asked(job_id: str, requested: int = 1, **changes: Any) -> JobQuestion:
    values = {"job_id": job_id, "profile": profile("t"), "remaining_samples": 10.0, "requested_devices": requested}
    return JobQuestion(**{**values, **changes})


def demands(pools: Sequence[NodePool], *jobs: JobQuestion, **changes: Any) -> list[tuple[int, int]]:
    question = ScheduleQuestion(now_s=0.0, pools=tuple(pools), jobs=jobs, **changes)
    found = decide(question, POLICIES["fifo"], PREDICT, Budget()).demands
    assert [demand.pool for demand in found] == [each.name for each in pools]
    return [(demand.used_nodes, demand.desired_nodes) for demand in found]


def test_nodes_that_nobody_needs_are_not_desired() -> None:
    assert demands([pool("p", 4, 4, 4)], asked("a", 3), asked("b", 5)) == [(2, 2)]
    assert demands([pool("p", 4, 4, 4)]) == [(0, 0)]


def test_a_pool_grows_to_what_waits_up_to_its_most() -> None:
    jobs = [asked("a", 4), asked("b", 4), asked("c", 6, server_devices=1)]
    for most, desired in ((None, 1), (1, 1), (2, 2), (9, 4), (0, 0)):
        assert demands([pool("p", 4, max_nodes=most)], *jobs) == [(1, desired)]


def test_what_is_free_is_taken_before_idle_and_further_nodes() -> None:
    running = asked("a", 2, current=CurrentDevices(pool="p", placement=((0, 2),)), preemptible=False)
    large = pool("p", 4, 1, 3, max_nodes=9)
    # Two are free beside the job, three on the larger idle node, one on the other; further ones have four.
    for wanted, nodes in ((2, 1), (5, 2), (6, 3), (7, 4), (11, 5)):
        waits = asked("b", wanted, allowed_devices=(wanted,))
        assert demands([large], running, waits)[0][1] == nodes


def test_whole_nodes_are_desired_whole() -> None:
    whole = [pool("p", 4, devices_per_node=4, max_nodes=9)]
    assert demands(whole, asked("a", 1), asked("b", 5)) == [(1, 3)]
    assert demands(whole, asked("a", 1), asked("b", 1, allowed_devices=(2, 6))) == [(1, 1)]
    assert demands(whole, asked("a", 1), asked("b", 5, max_devices=6)) == [(1, 2)]
    assert demands(whole, asked("a", 1), asked("b", 1, max_devices=3)) == [(1, 1)]


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_a_pool_grows_out_of_nothing(policy: str) -> None:
    empty = (pool("p", devices_per_node=8, max_nodes=9),)
    question = ScheduleQuestion(now_s=0.0, pools=empty, jobs=(asked("a", 12), asked("b", 1, allowed_devices=(8,))))
    found = decide(question, POLICIES[policy], PREDICT, Budget())
    assert [job.reason for job in found.jobs] == ["DOES_NOT_FIT"] * 2
    assert [(demand.used_nodes, demand.desired_nodes) for demand in found.demands] == [(0, 3)]


def test_a_job_counts_in_the_first_of_its_pools_that_may_grow() -> None:
    pools = [pool("p", 1), pool("q", 1, max_nodes=5), pool("r", 1, max_nodes=5)]
    assert demands(pools, asked("a", 3)) == [(0, 0), (0, 3), (0, 0)]
    assert demands(pools, asked("a", 3, allowed_pools=("r",))) == [(0, 0), (0, 0), (0, 3)]
    other = [pool("p", 3, device="unknown", max_nodes=5), pool("q", 1, max_nodes=5)]
    assert demands(other, asked("a", 1), asked("b", 2)) == [(0, 0), (1, 3)]


@pytest.mark.parametrize("quota", [0, 2, 4])
def test_a_job_that_its_quota_stops_waits_for_no_node(quota: int) -> None:
    quotas = (QueueQuota(queue="x", max_devices=quota),)
    jobs = [asked(name, 2, queue="x") for name in "abc"]
    assert demands([pool("p", 1, max_nodes=9)], *jobs, quotas=quotas) == [(0, quota)]


def test_what_could_not_be_predicted_counts_where_it_runs_alone() -> None:
    held = CurrentDevices(pool="p", placement=((1, 1),))
    lost = [asked("a", profile=profile("bad"), current=held), asked("b", profile=profile("bad"))]
    assert demands([pool("p", 1, 1, max_nodes=9)], *lost) == [(1, 1)]
