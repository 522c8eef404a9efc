"""Whole decisions on random clusters: feasible on every node, whatever is asked and in whatever order."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from schedules import POLICIES, Tables, pool, profile

from nodewise.domain.budget import Budget
from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.schedule import NodePool
from nodewise.scheduling.decide import decide
from nodewise.scheduling.decision import Action, Decision
from nodewise.scheduling.placement import PlacementRequest, choose_nodes
from nodewise.scheduling.request import CurrentDevices, JobQuestion, QueueQuota, ScheduleQuestion

TABLES = {
    "rising": {"A": [float(n) ** 0.7 for n in range(1, 40)], "B": [2.0 * n**0.5 for n in range(1, 40)]},
    "flat": {"A": [3.0] * 40, "B": [3.0] * 40},
    "falling": {"A": [5.0 - 0.1 * n for n in range(40)], "B": [1.0, 2.0, 1.5]},
    "holes": {"A": [0.0, 2.0, 0.0, 4.0, 0.0, 0.0, 0.0, 6.0], "B": []},
}
PREDICT = Tables(TABLES, errors={"bad": NodewiseError(Reason.EVIDENCE_MISSING, "nothing is known")})


@st.composite
def clusters(draw: st.DrawFn, number: int) -> NodePool:
    """Nodes of any sizes, or of one size that are given out whole."""
    whole = draw(st.sampled_from([0, 0, 2, 3]))
    sizes = st.sampled_from([0, whole]) if whole else st.integers(0, 8)
    available = draw(st.lists(sizes, min_size=1, max_size=5))
    most = draw(st.sampled_from([None, 0, 3, 20])) if any(available) else None
    return pool(f"pool{number}", *available, device="AB"[number], devices_per_node=whole, max_nodes=most)


@st.composite
def questions(draw: st.DrawFn) -> ScheduleQuestion:
    pools = [draw(clusters(number)) for number in range(draw(st.integers(1, 2)))]
    if not sum(each.total_devices for each in pools):
        pools.append(pool("more", 4, device="A"))
    free = [each.available_devices.tolist() for each in pools]
    jobs = []
    for index in range(draw(st.integers(0, 8))):
        held = None
        if draw(st.booleans()):
            where = draw(st.integers(0, len(pools) - 1))
            parts = []
            whole = pools[where].devices_per_node
            for node, left in enumerate(free[where]):
                count = draw(st.sampled_from([0, left]) if whole else st.integers(0, min(left, 3)))
                if count:
                    parts.append((node, count))
                    free[where][node] -= count
            if parts:
                held = CurrentDevices(
                    pool=pools[where].name, placement=tuple(parts), age_s=draw(st.sampled_from([0.0, 99.0]))
                )
        least = draw(st.integers(0, 3))
        allowed = draw(st.sampled_from([(), (), (1, 2, 4, 8), (8, 4)]))
        jobs.append(
            JobQuestion(
                job_id=f"job{index}",
                profile=profile(draw(st.sampled_from([*TABLES, "bad"]))),
                remaining_samples=draw(st.sampled_from([10.0, 500.0])),
                submit_time_s=draw(st.sampled_from([0.0, 5.0])),
                allowed_devices=allowed,
                min_devices=least,
                max_devices=draw(st.sampled_from([0, 8])),
                server_devices=draw(st.integers(0, 1)) if held is None else 0,
                current=held,
                queue=draw(st.sampled_from(["", "q"])),
                minimum_run_s=draw(st.sampled_from([0.0, 50.0])),
                preemptible=draw(st.sampled_from([True, True, False])),
                restart_cost_s=30.0,
            )
        )
    quotas = (QueueQuota(queue="q", max_devices=draw(st.integers(0, 10))),) if draw(st.booleans()) else ()
    return ScheduleQuestion(now_s=0.0, pools=tuple(pools), jobs=tuple(jobs), quotas=quotas)


def run(name: str, question: ScheduleQuestion) -> Decision:
    return decide(question, POLICIES[name], PREDICT, Budget())


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=16, derandomize=True, deadline=None)
@given(question=questions(), seed=st.integers(0, 2**16))
def test_decisions_are_feasible_and_independent_of_order(name: str, question: ScheduleQuestion, seed: int) -> None:
    found = run(name, question)
    assert run(name, question) == found
    _check_feasible(question, found)
    order = np.random.default_rng(seed).permutation(len(question.jobs)).tolist()
    shuffled = run(name, replace(question, jobs=tuple(question.jobs[index] for index in order)))
    assert [job.job_id for job in shuffled.jobs] == [question.jobs[index].job_id for index in order]
    assert sorted(shuffled.jobs, key=lambda job: job.job_id) == sorted(found.jobs, key=lambda job: job.job_id)


def _check_feasible(question: ScheduleQuestion, found: Decision) -> None:
    free = {each.name: each.available_devices.copy() for each in question.pools}
    whole = {each.name: each.devices_per_node for each in question.pools}
    queue_new = 0
    queue_held = 0
    for asked, job in zip(question.jobs, found.jobs):
        for node, count in job.placement:
            assert count >= 1
            assert whole[job.pool] in (0, count)
            free[job.pool][node] -= count
        if job.devices:
            assert sum(count for _, count in job.placement) == job.devices + asked.server_devices
            assert 1 <= job.nodes <= len(job.placement)
        settled = job.action == Action.NO_ANSWER or job.reason in ("MINIMUM_RUN", "NOT_PREEMPTIBLE")
        assert settled or asked.preemptible or asked.current is None
        if settled:
            held = asked.current.placement if asked.current else ()
            assert job.placement == held
        elif job.devices:
            assert job.devices >= asked.min_devices
            assert not asked.max_devices or job.devices <= asked.max_devices
            assert not asked.allowed_devices or job.devices in asked.allowed_devices
            assert job.finish_s is not None
            assert job.finish_s > 0
        same = asked.current is not None and (job.pool, job.placement) == (asked.current.pool, asked.current.placement)
        assert (job.action == Action.START) == (asked.current is None and job.devices > 0)
        assert (job.action == Action.KEEP) == (same and job.action != Action.NO_ANSWER)
        assert job.why
        if asked.queue == "q":
            queue_held += job.devices + asked.server_devices if settled and job.devices else 0
            queue_new += 0 if settled or not job.devices else job.devices + asked.server_devices
    assert all((left >= 0).all() for left in free.values())
    for each, demand in zip(question.pools, found.demands, strict=True):
        used = {node for job in found.jobs if job.pool == each.name for node, _ in job.placement}
        assert demand.used_nodes == len(used)
        assert min(len(used), each.most_nodes) <= demand.desired_nodes <= each.most_nodes
    if question.quotas:
        assert queue_new <= max(question.quotas[0].max_devices - queue_held, 0)


def failing(question: ScheduleQuestion, hours: float | None) -> ScheduleQuestion:
    return replace(question, pools=tuple(replace(pool, device_hours=hours) for pool in question.pools))


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=16, derandomize=True, deadline=None)
@given(question=questions(), hours=st.floats(1e-2, 1e6))
def test_goodput_is_at_most_throughput(name: str, question: ScheduleQuestion, hours: float) -> None:
    found = run(name, failing(question, hours))
    _check_feasible(question, found)
    for job in found.jobs:
        assert (job.goodput_samples_per_s is None) == (job.useful is None)
        if job.useful is not None:
            assert job.goodput_samples_per_s is not None
            assert 0.0 < job.useful <= 1.0
            assert job.goodput_samples_per_s == pytest.approx(job.useful * job.samples_per_s)
            assert job.goodput_samples_per_s <= job.samples_per_s


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=8, derandomize=True, deadline=None)
@given(question=questions())
def test_without_failures_no_job_has_goodput(name: str, question: ScheduleQuestion) -> None:
    assert all(job.goodput_samples_per_s is job.useful is None for job in run(name, question).jobs)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(
    whole=st.integers(0, 3),
    nodes=st.integers(1, 3),
    wanted=st.lists(st.tuples(st.integers(1, 9), st.integers(0, 2)), max_size=6),
)
def test_nobody_waits_on_the_desired_nodes_and_somebody_does_on_one_fewer(
    whole: int, nodes: int, wanted: list[tuple[int, int]]
) -> None:
    def asked(count: int) -> ScheduleQuestion:
        pools = (pool("p", *[whole or 2] * count, device="A", devices_per_node=whole, max_nodes=1000),)
        jobs = tuple(
            JobQuestion(
                job_id=f"job{index}",
                profile=profile("flat"),
                remaining_samples=10.0,
                allowed_devices=tuple(range(devices, devices + 3)),
                server_devices=servers,
            )
            for index, (devices, servers) in enumerate(wanted)
        )
        return ScheduleQuestion(now_s=0.0, pools=pools, jobs=jobs)

    [demand] = run("fifo", asked(nodes)).demands
    enough = run("fifo", asked(max(demand.desired_nodes, 1)))
    assert all(job.devices for job in enough.jobs)
    assert [(each.used_nodes, each.desired_nodes) for each in enough.demands] == [(demand.desired_nodes,) * 2]
    if demand.desired_nodes > 1:
        assert not all(job.devices for job in run("fifo", asked(demand.desired_nodes - 1)).jobs)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.lists(st.integers(0, 8), min_size=1, max_size=8), st.data())
def test_placement_always_succeeds_when_the_total_suffices(available: list[int], data: st.DataObject) -> None:
    left = sum(available)
    wanted = []
    while left and data.draw(st.booleans()):
        devices = data.draw(st.integers(1, left))
        wanted.append(PlacementRequest(pool=0, devices=devices))
        left -= devices
    used = np.zeros(len(available), dtype=int)
    for entry, placement in zip(wanted, choose_nodes([pool("p", *available)], wanted)):
        assert sum(count for _, count in placement) == entry.devices
        assert len({node for node, _ in placement}) == len(placement)
        for node, count in placement:
            used[node] += count
    assert (used <= available).all()
