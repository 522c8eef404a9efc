"""Failures beside their closed forms: one job that fails, restarts and saves; and what a policy knows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from simulations import POLICIES, Watching, job, pools, record, run, straight

from nodewise.domain.failures import expected_run_s, useful_ratio
from nodewise.domain.schedule import NodePool
from nodewise.plugin import Policy
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import Checkpoints, NodeFailures, SimulationSettings

JOBS = 400
WORK_S, INTERVAL_S, SAVE_S, RESTART_S = 400.0, 50.0, 5.0, 20.0


def durations(sizes: Sequence[int], devices: int, mean_s: float, repair_s: float, *, saves: bool) -> np.ndarray:
    """Seconds from start to end of equal jobs that arrive one after the other."""
    jobs = [
        job(f"j{number:04d}", 4000.0 * number, WORK_S * devices, straight(devices), requested_devices=devices)
        for number in range(JOBS)
    ]
    result = run(
        jobs,
        (sizes,),
        failures=NodeFailures(mean_time_between_failures_s=mean_s, mean_repair_s=repair_s),
        checkpoints=Checkpoints(interval_s=INTERVAL_S, cost_s=SAVE_S) if saves else None,
        restart_cost_s=RESTART_S,
        seed=1,
    )
    assert result.finished == JOBS
    return np.asarray(result.per_job.completion_s - result.per_job.start_s)


def assert_mean(values: np.ndarray, expected: float) -> None:
    assert values.mean() == pytest.approx(expected, abs=4.0 * values.std() / np.sqrt(len(values)))


@pytest.mark.parametrize(("devices", "saves"), [(1, True), (4, True), (1, False), (4, False)])
def test_a_job_that_moves_to_spare_nodes_takes_what_daly_says(devices: int, *, saves: bool) -> None:
    # A job fails with any of its nodes; repairs are so short that there are always nodes to move to.
    mean_s = 1600.0
    found = durations([1] * 12, devices, mean_s, 1.0, saves=saves)
    between_s = mean_s / devices
    if saves:
        last_s = expected_run_s(INTERVAL_S, INTERVAL_S, 0.0, RESTART_S, between_s)  # no save at the end
        earlier_s = expected_run_s(WORK_S - INTERVAL_S, INTERVAL_S, SAVE_S, RESTART_S, between_s)
        expected_s = float(last_s + earlier_s)
    else:
        expected_s = float(expected_run_s(WORK_S, WORK_S, 0.0, RESTART_S, between_s))
    assert_mean(found, expected_s)


def test_a_job_without_spare_nodes_also_waits_for_repairs() -> None:
    mean_s, repair_s = 800.0, 300.0
    running_s = float(expected_run_s(WORK_S, WORK_S, 0.0, RESTART_S, mean_s))
    # A failure in each mean time of running, each with a repair in which nothing fails (W. Feller, vol. II, ch. XI).
    assert_mean(durations([1], 1, mean_s, repair_s, saves=False), running_s * (1.0 + repair_s / mean_s))


def failing(hours: float | None) -> list[NodePool]:
    return [replace(each, device_hours=hours, restart_s=RESTART_S) for each in pools([1] * 4)]


def simulated(policy: str | Policy, hours: float | None, **settings: object) -> SimulationResult:
    loaded = POLICIES[policy] if isinstance(policy, str) else record(policy)
    jobs = [job("a", 0.0, 100.0, straight(4))]
    return simulate(jobs, failing(hours), loaded, SimulationSettings(**settings))  # type: ignore[arg-type]


def test_a_policy_sees_goodput_of_pools_that_state_failures() -> None:
    counts = np.arange(1.0, 5.0)
    watching = Watching()
    simulated(watching, 0.5, checkpoints=Checkpoints(interval_s=INTERVAL_S, cost_s=SAVE_S))
    shares = useful_ratio(1800.0 / counts, SAVE_S, RESTART_S, INTERVAL_S)
    assert watching.rates["a"] == pytest.approx((counts * shares).tolist())
    simulated(watching, 0.5)  # without checkpoints, the whole run is lost
    shares = useful_ratio(1800.0 / counts, 0.0, RESTART_S, 100.0 / counts)
    assert watching.rates["a"] == pytest.approx((counts * shares).tolist())
    simulated(watching, None)
    assert watching.rates["a"] == counts.tolist()


def test_stated_failures_change_what_a_policy_decides_not_what_happens() -> None:
    stated, unstated = (simulated("fifo", hours) for hours in (0.01, None))
    assert stated.per_job.completion_s.tolist() == unstated.per_job.completion_s.tolist() == [100.0]
    counts = np.arange(1.0, 5.0)
    goodput = counts * useful_ratio(36.0 / counts, 0.0, RESTART_S, 100.0 / counts)
    fastest = counts[goodput.argmax()]
    assert fastest < 4
    assert simulated("srpt", 0.01).per_job.completion_s.tolist() == [100.0 / fastest]
    assert simulated("srpt", None).per_job.completion_s.tolist() == [25.0]
