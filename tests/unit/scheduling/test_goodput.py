"""Failures of a pool: the share of time that is progress, what a decision says of it, and what policies make of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from schedules import POLICIES, Tables, pool, profile

from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.failures import assumed_save_s, best_interval_s, expected_run_s, useful_ratio
from nodewise.domain.schedule import NodePool
from nodewise.domain.workload import Workload
from nodewise.plugin import Budget
from nodewise.scheduling.decide import decide
from nodewise.scheduling.decision import Decision
from nodewise.scheduling.request import CurrentDevices, JobQuestion, ScheduleQuestion

STRAIGHT = [float(count) for count in range(1, 65)]
PREDICT = Tables({"t": {"V100": STRAIGHT}})
HOUR_S = 3600.0


def asked(job_id: str = "a", **changes: Any) -> JobQuestion:
    values = {"job_id": job_id, "profile": profile("t"), "remaining_samples": 1e5, "checkpoint_s": 30.0}
    return JobQuestion(**{**values, **changes})


def run(*jobs: JobQuestion, pools: tuple[NodePool, ...], name: str = "efficiency-capped") -> Decision:
    question = ScheduleQuestion(now_s=0.0, pools=pools, jobs=jobs)
    return decide(question, POLICIES[name], PREDICT, Budget())


@pytest.mark.parametrize("save_s", [1e-3, 5.0, 300.0])
@pytest.mark.parametrize("mean_s", [500.0, 3e4, 1e7])
def test_the_share_is_dalys_expected_time_at_its_best_interval(save_s: float, mean_s: float) -> None:
    interval_s = best_interval_s(save_s, mean_s)
    expected_s = expected_run_s(1e6, interval_s, save_s, 60.0, mean_s)
    assert useful_ratio(mean_s, save_s, 60.0) == pytest.approx(1e6 / expected_s, rel=1e-9)
    assert useful_ratio(mean_s, save_s, 60.0, interval_s) == pytest.approx(1e6 / expected_s, rel=1e-9)
    others = useful_ratio(mean_s, save_s, 60.0, interval_s * np.array([0.5, 0.9, 1.1, 2.0]))
    assert (others < useful_ratio(mean_s, save_s, 60.0)).all()


def test_without_checkpoints_to_pay_only_restarts_cost() -> None:
    assert useful_ratio(1000.0, 0.0, 50.0) == pytest.approx(np.exp(-0.05), rel=1e-12)


def test_a_job_that_fails_all_the_time_keeps_a_rate() -> None:
    assert 0.0 < useful_ratio(1e-6, 60.0, 600.0) < 1e-6
    assert 0.0 < useful_ratio(1.0, 60.0, 0.0, 1e6) < 1e-6


def test_a_decision_states_goodput() -> None:
    failing = replace(pool("p", 4, 4), device_hours=400.0, restart_s=120.0)
    (job,) = run(asked(requested_devices=8), pools=(failing,), name="fifo").jobs
    share = float(useful_ratio(400.0 * HOUR_S / 8, 30.0, 120.0))
    assert job.useful == pytest.approx(share)
    assert (job.samples_per_s, job.goodput_samples_per_s) == (8.0, pytest.approx(8.0 * share))
    assert job.finish_s == pytest.approx(1e5 / (8.0 * share))
    assert job.marginal_samples_per_s is None
    assert f"8 samples/s predicted, {8.0 * share:.4g} with failures, 100,000 samples left" in job.why


def test_a_running_job_and_its_servers_count_too() -> None:
    failing = replace(pool("p", 4, 4), device_hours=400.0)
    current = CurrentDevices(pool="p", placement=((0, 4), (1, 1)))
    (job,) = run(asked(current=current, server_devices=1, preemptible=False), pools=(failing,)).jobs
    assert job.samples_per_s == 4.0
    assert job.useful == pytest.approx(float(useful_ratio(400.0 * HOUR_S / 5, 30.0, 600.0)))


def test_pools_without_failures_keep_their_rates() -> None:
    safe, failing = pool("safe", 4), replace(pool("failing", 4), device_hours=10.0)
    found = run(asked("a", requested_devices=4), asked("b", requested_devices=4), pools=(failing, safe), name="fifo")
    by_pool = {job.pool: job for job in found.jobs}
    assert (by_pool["safe"].goodput_samples_per_s, by_pool["safe"].useful) == (None, None)
    assert by_pool["safe"].finish_s == 1e5 / 4
    assert by_pool["failing"].useful is not None
    assert " with failures" not in by_pool["safe"].why


def test_asynchronous_jobs_only_miss_the_node_that_failed() -> None:
    failing = replace(pool("p", 4, 4), device_hours=400.0, restart_s=3600.0)
    settings = Configurations.of(1, sync_mode=SyncMode.ASYNC)
    (job,) = run(asked(requested_devices=8, settings=settings), pools=(failing,), name="fifo").jobs
    assert job.useful == pytest.approx(1.0 / (1.0 + 1.0 * 4 / 400))


def test_frequent_failures_make_large_jobs_worth_less() -> None:
    def devices(hours: float | None) -> int:
        failing = replace(pool("p", *[8] * 8), device_hours=hours)
        (job,) = run(asked(checkpoint_s=600.0), pools=(failing,), name="srpt").jobs
        return job.devices

    assert devices(None) == devices(1e6) == 64
    assert devices(2.0) < devices(10.0) < 64


def test_checkpoints_that_nobody_states_follow_from_the_size_of_the_model() -> None:
    per_node = np.array([4.0, 8.0])
    memory = {"memory_weights_bytes": np.array([1e9, 1e9]), "memory_optimizer_bytes": np.array([5e9, 2e9])}
    assert assumed_save_s(None, memory, per_node)[0].tolist() == [24.0, 24.0]
    assert assumed_save_s(2e9, {}, per_node)[0].tolist() == [6.0, 6.0]
    assert assumed_save_s(None, {}, per_node)[0].tolist() == [60.0, 60.0]
    sized = replace(profile("t"), workload=Workload(parameter_bytes=2_000_000_000))
    failing = replace(pool("p", 8), device_hours=400.0)
    for stated, save_s in ((asked(profile=sized, checkpoint_s=None), 6.0), (asked(checkpoint_s=None), 60.0)):
        (job,) = run(replace(stated, requested_devices=8), pools=(failing,), name="fifo").jobs
        assert job.useful == pytest.approx(float(useful_ratio(400.0 * HOUR_S / 8, save_s, 600.0)))
