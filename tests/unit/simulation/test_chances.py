"""Failures, checkpoints, early stops and wrong predictions."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from simulations import Watching, completions, job, run, straight

from nodewise.domain.errors import NodewiseError
from nodewise.scheduling.simulation.active import ActiveJob
from nodewise.scheduling.simulation.jobs import JobCurve
from nodewise.scheduling.simulation.settings import (
    Checkpoints,
    Clock,
    EarlyStops,
    NodeFailures,
    PredictionError,
    SimulationSettings,
)


def test_checkpoints_pause_a_run() -> None:
    result = run([job("a", 0.0, 100.0)], checkpoints=Checkpoints(interval_s=30.0, cost_s=5.0))
    assert completions(result) == {"a": 115.0}


def test_nothing_is_saved_when_the_work_is_done() -> None:
    result = run([job("a", 0.0, 90.0)], checkpoints=Checkpoints(interval_s=30.0, cost_s=5.0))
    assert completions(result) == {"a": 100.0}


def test_progress_and_what_is_saved_of_it() -> None:
    active = ActiveJob(0, job("a", 0.0, 100.0), straight(1), 100.0, _state())
    active.checkpoints = Checkpoints(interval_s=30.0, cost_s=5.0)
    active.hold(0, 1, ((0, 1),), 1.0, 0.0)
    active.begin(0.0, 10.0, None)
    assert [active.progress(at_s) for at_s in (5.0, 20.0, 40.0, 43.0, 60.0)] == [0.0, 10.0, 30.0, 30.0, 45.0]
    assert [active.checkpointed_samples(at_s) for at_s in (5.0, 44.0, 45.0, 70.0, 80.0)] == [0.0, 0.0, 30.0, 30.0, 60.0]


def _state() -> object:
    from nodewise.domain.schedule import JobState

    return JobState(job_id="a", remaining_samples=100.0, submit_time_s=0.0, allowed_devices=(1,), allowed_pools=(0,))


def failing(**settings: object) -> dict[str, object]:
    return {"failures": NodeFailures(mean_time_between_failures_s=200.0, mean_repair_s=50.0), "seed": 3, **settings}


def test_failures_lose_work_and_capacity() -> None:
    jobs = [job(f"j{number}", 0.0, 300.0) for number in range(4)]
    healthy, broken = run(jobs, ([1, 1],)), run(jobs, ([1, 1],), **failing())
    saved = run(jobs, ([1, 1],), **failing(checkpoints=Checkpoints(interval_s=20.0)))
    assert healthy.lost_device_s == 0.0
    assert broken.finished == saved.finished == 4
    assert broken.lost_device_s > saved.lost_device_s > 0.0
    assert broken.makespan_s > saved.makespan_s > healthy.makespan_s
    assert broken.available_device_s < 2 * broken.makespan_s
    assert broken.busy_device_s == pytest.approx(4 * 300.0 + broken.lost_device_s)


def test_the_same_nodes_fail_whatever_the_policy_does() -> None:
    def downtime(policy: str) -> float:
        jobs = [job(f"j{number}", 100.0 * number, 200.0, straight(2)) for number in range(40)]
        result = run(jobs, ([1, 1],), policy, **failing(checkpoints=Checkpoints(interval_s=20.0)))
        assert result.finished == 40
        return 1.0 - result.available_device_s / (2 * result.makespan_s)

    # 50 / 250 of the time in the mean.
    assert downtime("fifo") == pytest.approx(0.2, abs=0.07)
    assert downtime("equal-share") == pytest.approx(downtime("fifo"), abs=0.05)


def test_failures_within_rounds_take_effect_at_once() -> None:
    result = run([job("a", 0.0, 1000.0)], **failing(clock=Clock.FIXED_ROUNDS, round_s=60.0, keep_timeline=True))
    assert result.finished == 1
    assert result.timeline is not None
    ends = result.timeline.end_s[:-1]
    assert len(ends) > 0
    assert (ends % 60.0 != 0).all()


def test_early_stops_are_hidden_from_the_policy() -> None:
    policy = Watching()
    jobs = [job(f"j{number:03d}", 0.0, 100.0) for number in range(200)]
    result = run(jobs, (1,), policy, early_stops=EarlyStops(probability=0.3))
    stopped = result.per_job.samples < 100.0
    assert set(policy.left.values()) == {100.0}
    assert stopped.mean() == pytest.approx(0.3, abs=0.08)
    assert result.per_job.samples[stopped].mean() == pytest.approx(50.0, abs=10.0)


def test_a_distribution_of_progress() -> None:
    jobs = [job(f"j{number:03d}", 0.0, 100.0) for number in range(50)]
    result = run(jobs, early_stops=EarlyStops(probability=1.0, progress=(0.25, 0.25)))
    assert set(result.per_job.samples.tolist()) == {25.0}


def test_a_job_may_say_where_it_stops() -> None:
    assert completions(run([job("a", 0.0, 100.0, stop_samples=40.0)])) == {"a": 40.0}


def test_policies_see_predicted_curves_and_jobs_run_at_true_ones() -> None:
    policy = Watching()
    predicted = JobCurve.of({(0, 1): 5.0, (0, 3): 9.0})
    result = run([job("a", 0.0, 100.0, straight(2), predicted=predicted)], (4,), policy)
    # What was never measured cannot be granted: the truth is not known there.
    assert policy.rates == {"a": [5.0]}
    assert completions(result) == {"a": 100.0}


def test_prediction_errors_are_log_normal_around_the_truth() -> None:
    policy = Watching()
    jobs = [job(f"j{number:03d}", 0.0, 1.0, straight(2)) for number in range(300)]
    run(jobs, (2,), policy, prediction_error=PredictionError(job_sigma=0.3, row_sigma=0.1))
    logs = np.log(np.array(list(policy.rates.values())) / [1.0, 2.0])
    assert logs.mean() == pytest.approx(0.0, abs=0.06)
    assert (logs[:, 0] - logs[:, 1]).std() == pytest.approx(0.1 * np.sqrt(2), rel=0.15)
    assert logs[:, 0].std() == pytest.approx(np.sqrt(0.1), rel=0.15)


def test_rigid_jobs_are_shown_their_request_only() -> None:
    policy = Watching()
    run([job("a", 0.0, 1.0, straight(4), requested_devices=1, rigid=True)], (4,), policy)
    assert policy.rates == {"a": [1.0]}


def test_seeds_change_chances_and_nothing_else() -> None:
    jobs = [job(f"j{number:02d}", float(number), 50.0) for number in range(30)]

    def times(seed: int) -> list[float]:
        return run(jobs, (2,), early_stops=EarlyStops(probability=0.5), seed=seed).per_job.completion_s.tolist()

    assert times(1) == times(1)
    assert times(1) != times(2)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"early_stops": EarlyStops(probability=1.5)}, "early_stops.probability"),
        ({"early_stops": EarlyStops(probability=0.5, progress=(0.5, 0.1))}, "early_stops.progress"),
        ({"failures": NodeFailures(mean_time_between_failures_s=0.0, mean_repair_s=1.0)}, None),
        ({"checkpoints": Checkpoints(interval_s=0.0)}, "checkpoints.interval_s"),
        ({"prediction_error": PredictionError(job_sigma=-1.0)}, "prediction_error.job_sigma"),
    ],
)
def test_laws_that_cannot_be(settings: dict[str, object], field: str | None) -> None:
    with pytest.raises(NodewiseError) as caught:
        SimulationSettings(**settings).check(())  # type: ignore[arg-type]
    assert caught.value.violations[0].field == (field or "failures.mean_time_between_failures_s")


def test_what_goes_in_and_what_comes_out_can_be_sent_to_another_process() -> None:
    jobs = [job(f"j{number}", float(number), 50.0) for number in range(3)]
    result = run(jobs, keep_timeline=True)
    sent, back = pickle.loads(pickle.dumps(jobs)), pickle.loads(pickle.dumps(result))
    assert run(sent).summary() == back.summary() == result.summary()
    assert back.timeline is not None
    assert back.timeline.end_s.tolist() == [50.0, 100.0, 150.0]


def test_rules_that_know_no_sizes_do_not_mind_wrong_ones() -> None:
    curve = straight(4)
    declared = [job(f"j{number}", 20.0 * number, 400.0, curve, stop_samples=100.0 + 40 * number) for number in range(8)]
    true = [replace(each, samples=each.stop_samples or 0.0, stop_samples=None) for each in declared]
    for policy in ("fifo", "equal-share", "las"):
        stopped, known = (run(jobs, (4,), policy, clock=Clock.FIXED_ROUNDS) for jobs in (declared, true))
        assert completions(stopped) == completions(known)
