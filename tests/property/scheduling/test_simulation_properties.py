"""Conservation laws of the simulation, and queueing theory where it has an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from simulations import POLICIES, as_simulated, pools

from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.repeating import estimate_mean
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import (
    Checkpoints,
    Clock,
    EarlyStops,
    NodeFailures,
    PredictionError,
    SimulationSettings,
)
from nodewise_job_traces import Curve
from nodewise_job_traces.generators import Draw, exponential, generate_jobs, log_normal, poisson

NAMES = sorted(POLICIES)
RATES = st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, 3.0]), min_size=1, max_size=4)
Case = tuple[list[SimulatedJob], list[list[int]], SimulationSettings, str]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    sizes = [draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)) for _ in range(draw(st.integers(1, 2)))]
    jobs, now_s = [], 0.0
    for index in range(draw(st.integers(0, 8))):
        rates = {(pool, count): rate for pool in range(len(sizes)) for count, rate in enumerate(draw(RATES), start=1)}
        now_s += draw(st.sampled_from([0.0, 7.0, 30.0, 200.0]))
        jobs.append(
            SimulatedJob(
                job_id=f"j{index}",
                arrival_s=now_s,
                samples=draw(st.sampled_from([1.0, 50.0, 333.0])),
                curve=JobCurve.of(rates),
                requested_devices=draw(st.integers(1, 3)),
                rigid=draw(st.booleans()),
                samples_per_step=draw(st.sampled_from([0.0, 1.0])),
                weight=draw(st.sampled_from([1.0, 2.0])),
                queue=draw(st.sampled_from(["", "q"])),
                server_devices=draw(st.sampled_from([0, 0, 1])),
            )
        )
    chosen = SimulationSettings(
        clock=draw(st.sampled_from(list(Clock))),
        round_s=draw(st.sampled_from([20.0, 60.0])),
        on_changes_only=draw(st.booleans()),
        restart_cost_s=draw(st.sampled_from([0.0, 5.0])),
        checkpoints=draw(st.sampled_from([None, Checkpoints(interval_s=10.0, cost_s=1.0)])),
        failures=draw(st.sampled_from([None, NodeFailures(mean_time_between_failures_s=2e3, mean_repair_s=50.0)])),
        early_stops=draw(st.sampled_from([None, EarlyStops(probability=0.5)])),
        prediction_error=draw(st.sampled_from([None, PredictionError(job_sigma=0.5, row_sigma=0.2)])),
        quotas={"q": 3} if draw(st.booleans()) else {},
        load=draw(st.sampled_from([0.5, 1.0])),
        seed=draw(st.integers(0, 3)),
        keep_timeline=True,
    )
    return jobs, sizes, chosen, draw(st.sampled_from(NAMES))


def simulate_case(case: Case, **changes: object) -> SimulationResult:
    jobs, sizes, chosen, name = case
    return simulate(jobs, pools(*sizes), POLICIES[name], replace(chosen, **changes))  # type: ignore[arg-type]


def most_held(result: SimulationResult, keep: Sequence[bool]) -> int:
    """Most devices held at once by some rows of the timeline; what ends at a moment is free at it."""
    assert result.timeline is not None
    changes: dict[float, int] = defaultdict(int)
    line = result.timeline
    for kept, begin, end, devices in zip(keep, line.begin_s.tolist(), line.end_s.tolist(), line.devices.tolist()):
        if kept:
            changes[begin] += devices
            changes[end] -= devices
    held = most = 0
    for moment in sorted(changes):
        held += changes[moment]
        most = max(most, held)
    return most


@settings(max_examples=60, deadline=None)
@given(cases())
def test_conservation(case: Case) -> None:
    jobs, sizes, chosen, _ = case
    result = simulate_case(case)
    columns, line = result.per_job, result.timeline
    assert line is not None
    # Devices are never oversubscribed, quotas never exceeded, and no job is at two places.
    for pool, nodes in enumerate(sizes):
        assert most_held(result, (line.pool == pool).tolist()) <= sum(nodes)
    queue = {job.job_id: job.queue for job in jobs}
    for name, quota in chosen.quotas.items():
        assert most_held(result, [queue[each] == name for each in line.job_id]) <= quota
    # Work done is work asked, but for what a job's own stop leaves out.
    asked = {job.job_id: job.samples for job in jobs}
    for name, samples in zip(columns.job_id, columns.samples.tolist()):
        assert samples <= asked[name]
        assert chosen.early_stops is not None or samples == asked[name]
    # Nobody is faster than alone on its best row, and nobody starts before it is there.
    assert (columns.slowdown >= 1 - 1e-9).all()
    assert (columns.waiting_s >= 0).all()
    assert 0 <= result.busy_device_s <= result.available_device_s * (1 + 1e-9) or result.finished < result.jobs
    # Little's law: the integral of the number in the system is the sum of what each spends there.
    if result.finished == result.jobs:
        assert result.job_seconds == pytest.approx(columns.response_s.sum(), abs=1e-6)


@settings(max_examples=24, deadline=None)
@given(cases())
def test_the_same_again_with_or_without_a_timeline(case: Case) -> None:
    first, second = simulate_case(case), simulate_case(case, keep_timeline=False)
    assert second.timeline is None
    assert first.summary() == second.summary()
    assert first.per_job.job_id == second.per_job.job_id
    assert np.array_equal(first.per_job.completion_s, second.per_job.completion_s)


@settings(max_examples=24, deadline=None)
@given(cases())
def test_work_is_rate_times_time(case: Case) -> None:
    jobs, _, _, _ = case
    result = simulate_case(
        case,
        clock=Clock.EVENTS,
        restart_cost_s=0.0,
        checkpoints=None,
        failures=None,
    )
    assert result.timeline is not None
    done: dict[str, float] = defaultdict(float)
    of = {job.job_id: job for job in jobs}
    line = result.timeline
    spans = (line.end_s - line.begin_s).tolist()
    for name, pool, devices, span_s in zip(line.job_id, line.pool.tolist(), line.devices.tolist(), spans):
        done[name] += of[name].curve.rates[pool, devices - of[name].server_devices] * span_s
    for name, samples in zip(result.per_job.job_id, result.per_job.samples.tolist()):
        assert done[name] == pytest.approx(samples, rel=1e-9, abs=1e-9)


# --- one server: theory


def one_server(sizes_s: Draw, gap_s: float, jobs: int, seed: int) -> SimulationResult:
    stream = generate_jobs(poisson(gap_s), sizes_s, [Curve.of({(0, 1): 1.0})], jobs=jobs, seed=seed)
    return simulate(as_simulated(stream), pools(1), POLICIES["fifo"], SimulationSettings(on_changes_only=True))


@pytest.mark.long
@pytest.mark.parametrize(
    ("share", "sizes_s", "second_moment"),
    [
        (0.6, exponential(1.0), 2.0),
        (0.5, log_normal(1.0, 0.8), float(np.exp(0.64))),
    ],
)
def test_one_server_is_the_queue_of_theory(share: float, sizes_s: Draw, second_moment: float) -> None:
    """M/M/1 and M/G/1: mean wait = rate E[S^2] / (2 (1 - utilisation)) (Pollaczek, Khinchine), services of 1 s."""
    found = [one_server(sizes_s, 1.0 / share, 1_500, seed).summary() for seed in range(6)]
    names = ("average_waiting_s", "utilisation")
    waiting, utilisation = (estimate_mean([each[name] or 0.0 for each in found], confidence=0.99) for name in names)
    assert waiting.lower is not None
    assert waiting.upper is not None
    assert waiting.lower <= share * second_moment / (2 * (1 - share)) <= waiting.upper
    assert waiting.upper - waiting.lower < 0.8
    assert utilisation.mean == pytest.approx(share, abs=0.03)
