"""Predictions of jobs of which only throughputs are known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from queueing_profiles import assessed, observations, predicted, profile, reasons, refused, rows

from nodewise.plugin import Assessment, Profile, Query, Reason, RowStatus, SyncMode
from nodewise_laws import exact_mva, expected_maximum_gamma
from nodewise_queueing.estimator import QueueingEstimator
from nodewise_queueing.evidence import Runs
from nodewise_queueing.rows import Setting

ASYNC_RATES = exact_mva([0.1], 0.9, 64).throughput_per_s
WORKERS = list(range(1, 17))


def measured(*workers: int) -> dict[int, float]:
    return {count: float(ASYNC_RATES[count - 1]) for count in workers}


@pytest.mark.parametrize("seen", [(1, 8), (2, 8), (1, 4, 12), (16, 2)])
def test_a_curve_with_contention_is_found(seen: tuple[int, ...]) -> None:
    answer = predicted(profile(measured=observations(measured(*seen))), rows(WORKERS))
    deviation = np.abs(np.log(np.arange(1, 17) / answer.step_s / ASYNC_RATES[:16]))
    # The order in which a server serves is not known: what shares fairly is one of the curves that explain the runs.
    assert np.all(deviation[: max(seen)] < 0.08)
    # Beyond the largest run the fit leans to less contention, and says how unsure that makes it.
    assert np.all(deviation < 2.0 * answer.log_spread)
    assert set(answer.breakdown_s) == {"compute", "exchange"}
    # At 8 workers the queue is still smaller than twice the noise of two runs; at 12 it is not.
    assert reasons(answer) == ({"UNSATURATED"} if max(seen) < 12 else set())


def test_noise_at_four_workers_is_not_saturation() -> None:
    # A K80 curve of CM-DARE: 2.8 % below linear at 4 workers, linear to 8 in truth.
    answer = predicted(profile(measured=observations({1: 0.6787, 4: 2.6388})), rows([8]))
    assert 8 / answer.step_s[0] == pytest.approx(5.0047, rel=0.05)
    assert reasons(answer) == {"UNSATURATED"}


def test_faster_than_linear_is_no_contention() -> None:
    answer = predicted(profile(measured=observations({1: 1.0, 4: 4.4})), rows([1, 4, 8]))
    rate = np.array([1, 4, 8]) / answer.step_s
    assert np.all(np.diff(rate / [1, 4, 8]) <= 0)
    assert rate[2] > 7.5


def test_one_and_two_workers_are_answered_with_wide_doubt_and_a_notice() -> None:
    poor = predicted(profile(measured=observations({1: 1.0, 2: 1.9})), rows([8]))
    good = predicted(profile(measured=observations(measured(1, 8))), rows([8]))
    assert [notice.reason for notice in poor.notices] == ["ILL_CONDITIONED"]
    assert poor.log_spread[0] > 2.5 * good.log_spread[0]


def test_a_synchronous_curve_is_found() -> None:
    truth = 0.02 * np.arange(1, 33) + expected_maximum_gamma(1.0, 0.1, np.arange(1, 33))
    seen = observations({count: float(1 / truth[count - 1]) for count in (1, 4, 16)}, SyncMode.SYNC)
    answer = predicted(profile(measured=seen), rows(list(range(1, 33)), SyncMode.SYNC))
    np.testing.assert_allclose(answer.step_s, truth, rtol=0.08)
    assert np.all(np.diff(answer.step_s) >= 0)


def test_extrapolation_counts_from_the_largest_run() -> None:
    answer = predicted(profile(measured=observations(measured(1, 4))), rows([2, 4, 8]))
    np.testing.assert_array_equal(answer.extrapolation, [1.0, 1.0, 2.0])
    assert answer.log_spread[2] > answer.log_spread[1]


def test_what_machines_differ_by_averages_out_over_asynchronous_workers() -> None:
    linear = profile(measured=observations({count: float(count) for count in (1, 4, 16, 64)}))
    spread = predicted(linear, rows([1, 4, 16])).log_spread
    assert np.all(np.diff(spread) < 0)
    # 0.068 among machines of one kind and 0.042 between campaigns, of which only the first averages out.
    assert spread[0] == pytest.approx(np.hypot(0.042, 0.068), rel=0.1)
    assert 0.042 < spread[2] < 0.06
    # A round is its slowest worker's.
    rounds = profile(measured=observations({1: 1.0, 4: 0.99, 16: 0.98}, SyncMode.SYNC))
    assert np.all(predicted(rounds, rows([1, 4, 16], SyncMode.SYNC)).log_spread < spread[0])


def test_one_number_of_workers_answers_for_itself_alone() -> None:
    job = profile(measured=observations({8: 4.0}))
    answer = predicted(job, rows([8]))
    assert 8 / answer.step_s[0] == pytest.approx(4.0, rel=1e-9)
    assert answer.extrapolation[0] == 1.0
    (reason, message), *_ = refused(predicted(job, rows([4]))).values()
    assert reason == Reason.EVIDENCE_MISSING
    assert "8 workers only" in message


def test_one_number_of_workers_is_told_row_by_row() -> None:
    job, asked = profile(measured=observations({8: 4.0})), rows([8, 4, 8])
    answer = predicted(job, asked)
    assert answer.status.tolist() == [RowStatus.ANSWERED, RowStatus.REFUSED, RowStatus.ANSWERED]
    assert list(refused(answer)) == [1]
    assert assessed(job, asked).refusal is None


def test_what_is_said_of_a_curve_is_remembered_unless_it_is_of_one_number_of_workers() -> None:
    estimator = QueueingEstimator()

    def said(job: Profile, *workers: int, **columns: int) -> Assessment:
        found = estimator.assess(job, Query(configurations=rows(workers, **columns)))
        assert found == assessed(job, rows(workers, **columns))
        return found

    curve = replace(profile(measured=observations(measured(1, 8))), digest="said of a curve")
    assert said(curve, 1, 2) is said(curve, 40)
    assert said(curve, 3, parameter_servers=2) is not said(curve, 3)
    assert said(replace(curve, digest="said of another"), 1) is not said(curve, 1)
    assert said(replace(curve, digest=""), 1) is not said(replace(curve, digest=""), 1)
    alone = replace(profile(measured=observations({8: 4.0})), digest="said of one number")
    assert said(alone, 8).refusal is None
    assert said(alone, 4).refusal is not None


def test_runs_with_other_servers_count_with_doubt() -> None:
    one = observations(measured(1, 8))
    two = observations({4: float(ASYNC_RATES[3])}, parameter_servers=2)
    answer = predicted(profile(measured=type(one).concatenated([one, two])), rows([8]))
    assert 8 / answer.step_s[0] == pytest.approx(ASYNC_RATES[7], rel=0.05)


def test_a_large_table_agrees_with_a_small_one() -> None:
    for mode, rates in ((SyncMode.ASYNC, {1: 1.0, 8: 5.0}), (SyncMode.SYNC, {1: 1.0, 8: 0.8})):
        job = profile(measured=observations(rates, mode))
        small, large = predicted(job, rows([3, 300], mode)), predicted(job, rows([3, 300, 100_000], mode))
        np.testing.assert_array_equal(small.step_s, large.step_s[:2])
        np.testing.assert_array_equal(small.log_spread, large.log_spread[:2])
        assert large.step_s[2] > large.step_s[1]


def test_runs_alike_weigh_as_one() -> None:
    draw = np.random.default_rng(0)
    workers = np.sort(draw.integers(1, 9, 500))
    log_rate, log_noise = draw.normal(0.0, 1.0, 500), draw.uniform(0.05, 0.2, 500)
    settings = tuple(Setting(1, 0.0, 32, 1) for _ in workers)
    runs = Runs(workers=workers, log_rate=log_rate, log_noise=log_noise, settings=settings)
    pooled = runs.pool()
    assert pooled.workers.tolist() == list(range(1, 9))

    def misfit(of: Runs, beyond: float) -> float:
        return float((((np.log(of.workers) + beyond - of.log_rate) / of.log_noise) ** 2).sum())

    apart = [misfit(runs, beyond) - misfit(pooled, beyond) for beyond in (-1.0, 0.0, 2.0)]
    assert apart == pytest.approx([apart[0]] * 3)  # by a constant: the same fits best, by as much


def test_runs_that_are_not_alike_are_left_as_they_are() -> None:
    workers, log_rate = np.array([1, 1, 2]), np.array([0.1, 0.3, 0.7])
    settings = (Setting(1, 0.0, 16, 1), Setting(1, 0.0, 32, 1), Setting(1, 0.0, 32, 1))
    pooled = Runs(workers=workers, log_rate=log_rate, log_noise=np.full(3, 0.1), settings=settings).pool()
    assert (pooled.log_rate.tolist(), pooled.settings) == (log_rate.tolist(), settings)
