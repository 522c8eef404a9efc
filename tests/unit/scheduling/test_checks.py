"""Every check of a schedule question, by the path and the words that it answers with."""

from __future__ import annotations

import math
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from schedules import POLICIES, pool, profile

from nodewise.domain.columns import as_ints
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import NodePool
from nodewise.scheduling.checks import check_question
from nodewise.scheduling.request import (
    CurrentDevices,
    JobQuestion,
    PairQuestion,
    QueueQuota,
    ScheduleLimits,
    ScheduleQuestion,
)

FIFO = POLICIES["fifo"].record.parameters


def asked(job_id: str = "a", **changes: Any) -> JobQuestion:
    return JobQuestion(**{"job_id": job_id, "profile": profile(job_id), "remaining_samples": 10.0, **changes})


def question(*jobs: JobQuestion, **changes: Any) -> ScheduleQuestion:
    return ScheduleQuestion(**{"now_s": 0.0, "pools": (pool("p", 4, 4), pool("q", 2)), "jobs": jobs, **changes})


def refused(asked_: ScheduleQuestion, limits: ScheduleLimits | None = None) -> tuple[Reason, str, str]:
    with pytest.raises(NodewiseError) as caught:
        check_question(asked_, FIFO, limits)
    first = caught.value.violations[0]
    return caught.value.reason, first.field, first.description


def held(*placement: tuple[int, int], name: str = "p", age_s: float = 0.0) -> CurrentDevices:
    return CurrentDevices(pool=name, placement=placement, age_s=age_s)


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"job_id": ""}, "job_id", "must have 1 to 256 characters"),
        ({"remaining_samples": 0.0}, "remaining_samples", "must be above 0"),
        ({"remaining_samples": math.nan}, "remaining_samples", "found nan"),
        ({"remaining_samples": math.inf}, "remaining_samples", "found inf"),
        ({"min_devices": -1}, "min_devices", "must be 0 or more"),
        ({"max_devices": -1}, "max_devices", "must be 0 or more"),
        ({"server_devices": -1}, "server_devices", "must be 0 or more"),
        ({"requested_devices": -1}, "requested_devices", "must be 0 or more"),
        ({"attained_service_device_s": -1.0}, "attained_service_device_seconds", "must be 0 or more"),
        ({"restart_cost_s": math.nan}, "restart_cost_seconds", "must be 0 or more"),
        ({"weight": -1.0}, "weight", "must be 0 or more"),
        ({"weight": 1e-12}, "weight", "at least 1e-09"),
        ({"minimum_run_s": -1.0}, "minimum_run_seconds", "must be 0 or more"),
        ({"restarts": -1}, "restarts_count", "must be 0 or more"),
        ({"gradient_noise_scale_samples": -1.0}, "efficiency.gradient_noise_scale_samples", "must be 0 or more"),
        ({"initial_batch_samples": 0.0}, "efficiency.initial_batch_samples", "must be above 0"),
        ({"submit_time_s": math.nan}, "submit_time", "must be a time"),
        ({"deadline_s": math.inf}, "deadline", "must be a time"),
        ({"allowed_devices": (2, 0)}, "allowed_devices[1]", "must be 1 or more, found 0"),
        ({"allowed_pools": ("q", "r")}, "allowed_pools[1]", "must name a pool of the cluster ('p', 'q'), found 'r'"),
        ({"current": held(name="r")}, "current_allocation.pool", "found 'r'"),
        ({"current": held()}, "current_allocation.placement", "omit current_allocation"),
        ({"current": held((0, 1), age_s=-1.0)}, "current_allocation.age_seconds", "must be 0 or more"),
        ({"current": held((2, 1))}, "current_allocation.placement[0].node_index", "must be 0 to 1, found 2"),
        ({"current": held((0, 1), (0, 1))}, "current_allocation.placement[1].node_index", "found node 0 twice"),
        ({"current": held((0, 1), (1, 0))}, "current_allocation.placement[1].devices_count", "must be 1 or more"),
    ],
)
def test_a_job_with_a_wrong_field(changes: dict[str, Any], path: str, words: str) -> None:
    reason, field, text = refused(question(asked("z"), asked(**changes)))
    assert (reason, field) == (Reason.INVALID_FIELD, f"jobs[1].{path}")
    assert words in text


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"min_devices": 3, "max_devices": 2}, "min_devices", "must be at most max_devices (2), found 3"),
        ({"allowed_devices": (1, 2), "min_devices": 3}, "allowed_devices", "must contain a count from min_devices, 3"),
        (
            {"allowed_devices": (1, 9), "min_devices": 3, "max_devices": 8},
            "allowed_devices",
            "must contain a count from min_devices, 3, to max_devices, 8",
        ),
        ({"allowed_devices": (1, 2), "requested_devices": 4}, "requested_devices", "must be 1 to 2, found 4"),
        ({"max_devices": 3, "requested_devices": 4}, "requested_devices", "must be 1 to 3, found 4"),
        (
            {"server_devices": 1, "current": held((0, 1))},
            "current_allocation.placement",
            "more devices than server_devices, 1, found 1",
        ),
        ({"current": held((0, 5))}, "current_allocation.placement[0].devices_count", "found 5 devices in use"),
    ],
)
def test_a_job_that_contradicts_itself(changes: dict[str, Any], path: str, words: str) -> None:
    reason, field, text = refused(question(asked(**changes)))
    assert (reason, field) == (Reason.CONTRADICTORY_FACTS, f"jobs[0].{path}")
    assert words in text


def test_jobs_hold_no_more_than_a_node_has() -> None:
    both = question(asked("a", current=held((1, 3))), asked("b", current=held((1, 2))))
    reason, field, text = refused(both)
    assert (reason, field) == (
        Reason.CONTRADICTORY_FACTS,
        "jobs[1].current_allocation.placement[0].devices_count",
    )
    assert text == "must leave the jobs on node 1 of 'p' within its available_devices, 4, found 5 devices in use"


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({"now_s": math.nan}, "now", "must be a time"),
        ({"pools": ()}, "cluster.pools", "must have an available device"),
        ({"pools": (pool("p", 0),)}, "cluster.pools", "must have an available device"),
        ({"pools": (pool("", 1),)}, "cluster.pools[0].name", "must have 1 to 256 characters"),
        ({"pools": (pool("p", 1), pool("p", 1))}, "cluster.pools[1].name", "cluster.pools[0] has this name too"),
        ({"pools": (pool("p", 1, -1),)}, "cluster.pools[0].available_devices[1]", "must be 0 or more, found -1"),
        (
            {"pools": (replace(pool("p", 1), link_bytes_per_s=-1.0),)},
            "cluster.pools[0].link_bytes_per_second",
            "must be 0 or more",
        ),
        (
            {"pools": (replace(pool("p", 1), price_per_node_hour=math.nan),)},
            "cluster.pools[0].price_per_node_hour",
            "must be 0 or more",
        ),
        ({"pools": (pool("p", 1, 1, node_names=("x",)),)}, "cluster.pools[0].node_names", "name each of 2 nodes"),
        ({"pools": (pool("p", 1, node_names=("",)),)}, "cluster.pools[0].node_names[0]", "must have 1 to 256"),
        (
            {"pools": (pool("p", 1, 1, node_names=("x", "x")),)},
            "cluster.pools[0].node_names[1]",
            "must be unique, 'x' is also node 0",
        ),
        (
            {"pools": (pool("p", 4, 0, 3, devices_per_node=4),)},
            "cluster.pools[0].available_devices[2]",
            "must be 0 or devices_per_node, 4, since nodes are granted whole; found 3",
        ),
        ({"pools": (pool("p", max_nodes=2),)}, "cluster.pools[0].devices_per_node", "the devices of a node"),
        ({"pools": (pool("p", max_nodes=0),)}, "cluster.pools", "or a pool with max_nodes"),
        ({"parameters": {"speed": 1.0}}, "policy_parameters['speed']", "a parameter of this policy ('backfill'"),
        ({"parameters": {"backfill": 2.0}}, "policy_parameters['backfill']", "must be 0 to 1, found 2"),
        ({"parameters": {"backfill": math.nan}}, "policy_parameters['backfill']", "must be 0 to 1, found nan"),
        ({"quotas": (QueueQuota(queue="", max_devices=1),)}, "quotas[0].queue", "must have 1 to 256 characters"),
        ({"quotas": (QueueQuota(queue="x", max_devices=-1),)}, "quotas[0].max_devices", "must be 0 or more"),
        ({"quotas": (QueueQuota(queue="x", max_devices=1),) * 2}, "quotas[1].queue", "'x' has another quota"),
    ],
)
def test_a_wrong_cluster_parameter_or_quota(changes: dict[str, Any], path: str, words: str) -> None:
    reason, field, text = refused(question(asked(), **changes))
    assert (reason, field) == (Reason.INVALID_FIELD, path)
    assert words in text


def beside(other_id: str, *placement: tuple[int, int], **changes: Any) -> JobQuestion:
    return asked(**changes, current=replace(held(*placement), shares_with=other_id))


@pytest.mark.parametrize(
    ("jobs", "words"),
    [
        ((beside("b", (0, 1)), asked("b")), "must name a job on the same devices, found 'b'"),
        ((beside("a", (0, 1)), asked("b")), "must name another job of the request, found 'a'"),
        (
            (beside("b", (0, 1)), beside("c", (0, 1), job_id="b"), asked("c")),
            "must name a job that names this one, found 'b'",
        ),
        (
            (beside("b", (0, 2)), beside("a", (0, 2), job_id="b")),
            "must share one device, without servers, found 2 devices",
        ),
    ],
)
def test_jobs_that_cannot_share_their_device(jobs: tuple[JobQuestion, ...], words: str) -> None:
    _, field, text = refused(question(*jobs))
    assert (field, text) == ("jobs[0].current_allocation.shares_with_job_id", words)


def test_too_many_jobs_that_may_share() -> None:
    pairs = tuple(
        PairQuestion(first_job_id="a", second_job_id=f"{number}", first_share=0.5, second_share=0.5)
        for number in range(4)
    )
    reason, field, text = refused(question(asked(), shared_pairs=pairs), ScheduleLimits(sharing_jobs=3))
    assert (reason, field) == (Reason.LIMIT_EXCEEDED, "shared_pairs")
    assert text == "must name at most 3 jobs per call, found 5: omit pairs that gain little"


def test_a_whole_node_is_held_as_a_whole() -> None:
    whole = (pool("p", 4, 4, devices_per_node=4), pool("q", 2))
    assert (
        check_question(question(asked(current=held((0, 4), (1, 4))), pools=whole), FIFO).state.jobs[0].current
        is not None
    )
    reason, field, text = refused(question(asked(current=held((0, 4), (1, 3))), pools=whole))
    assert (reason, field) == (Reason.INVALID_FIELD, "jobs[0].current_allocation.placement[1].devices_count")
    assert text == "must be devices_per_node, 4, since nodes are granted whole; found 3"


def test_a_policy_without_parameters_says_so() -> None:
    with pytest.raises(NodewiseError, match=r"must be a parameter of this policy \(none\)"):
        check_question(question(parameters={"x": 1.0}), ())


def test_job_ids_are_unique() -> None:
    reason, field, text = refused(question(asked("a"), asked("b"), asked("a")))
    assert (reason, field) == (Reason.INVALID_FIELD, "jobs[2].job_id")
    assert text == "must be unique, also the id of jobs[0]"


@pytest.mark.parametrize(
    ("limits", "path", "words"),
    [
        (ScheduleLimits(jobs=1), "jobs", "must have at most 1 jobs per call, found 2"),
        (ScheduleLimits(pools=1), "cluster.pools", "must have at most 1 pools per call, found 2"),
        (ScheduleLimits(nodes=2), "cluster.pools", "must have at most 2 nodes per call, found 3"),
        (ScheduleLimits(devices=9), "cluster.pools", "must have at most 9 devices per call, found 10"),
        (ScheduleLimits(devices_per_node=3), "cluster.pools[0].available_devices[0]", "of one node, found 4"),
        (ScheduleLimits(candidate_rows=7), "jobs[0].max_devices", "allows 8 counts"),
    ],
)
def test_caps(limits: ScheduleLimits, path: str, words: str) -> None:
    reason, field, text = refused(question(asked("a"), asked("b")), limits)
    assert (reason, field) == (Reason.LIMIT_EXCEEDED, path)
    assert words in text


@pytest.mark.parametrize(
    "large",
    [
        replace(pool("p", 1), available_devices=as_ints([2**31 - 1])),
        replace(pool("p", 4), devices_per_node=4, available_devices=as_ints([4] * 10), max_nodes=11),
    ],
)
def test_a_few_bytes_that_name_many_devices_take_no_memory(large: NodePool) -> None:
    least = tuple(asked(f"{index}", min_devices=index + 1) for index in range(100))
    tracemalloc.start()
    try:
        with suppress(NodewiseError):
            check_question(question(*least, pools=(large,)), FIFO)
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


def test_everything_that_is_wrong_is_said_at_once_up_to_a_cap() -> None:
    with pytest.raises(NodewiseError) as caught:
        check_question(question(*(asked(f"{index}", remaining_samples=-1.0) for index in range(50))), FIFO)
    assert len(caught.value.violations) == 20
    assert "(and 19 more)" in caught.value.message


def test_jobs_come_by_submit_time_and_id_with_what_was_not_stated_filled_in() -> None:
    jobs = (asked("b", submit_time_s=1.0), asked("c"), asked("a", submit_time_s=1.0))
    found = check_question(question(*jobs), FIFO)
    assert [job.job_id for job in found.state.jobs] == ["c", "a", "b"]
    assert found.order == (1, 2, 0)
    job = found.state.jobs[0]
    assert job.allowed_devices == tuple(range(1, 9))
    assert (job.allowed_pools, job.requested_devices, job.weight) == ((0, 1), 1, 1.0)
    assert found.state.parameters == {"backfill": 0.0, "over_commit": 0.0, "seed": 0.0}


@pytest.mark.parametrize(
    ("changes", "allowed", "requested"),
    [
        ({"allowed_devices": (4, 1, 4, 2)}, (1, 2, 4), 1),
        ({"allowed_devices": (1, 2, 4, 8), "min_devices": 2, "max_devices": 4}, (2, 4), 2),
        ({"min_devices": 3}, tuple(range(3, 9)), 3),
        ({"max_devices": 1_000_000}, tuple(range(1, 9)), 1),
        ({"allowed_pools": ("q",)}, (1, 2), 1),
        ({"min_devices": 100}, (), 100),
        ({"requested_devices": 100}, tuple(range(1, 9)), 100),
    ],
)
def test_allowed_counts(changes: dict[str, Any], allowed: tuple[int, ...], requested: int) -> None:
    [job] = check_question(question(asked(**changes)), FIFO).state.jobs
    assert (job.allowed_devices, job.requested_devices) == (allowed, requested)


def test_quotas_and_current_allocations_are_taken_over() -> None:
    running = asked("a", current=held((0, 2), (1, 1), age_s=7.0))
    found = check_question(question(running, quotas=(QueueQuota(queue="x", max_devices=3),)), FIFO).state
    assert found.quotas == {"x": 3}
    current = found.jobs[0].current
    assert current is not None
    assert (current.pool, current.devices, current.age_s) == (0, 3, 7.0)
    assert as_ints([4, 4]).tolist() == found.pools[0].available_devices.tolist()
