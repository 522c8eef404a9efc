"""Lifetimes, fits, renewals, intervals, known changes, prices, saves, deterministic answers."""

from __future__ import annotations

import math
from datetime import date

import numpy as np
import pytest

from nodewise.plugin import best_interval_s
from nodewise_transient.deterministic import expect, mean_field_s
from nodewise_transient.fitting import choose, empirical, fit, sample_of_bins, single
from nodewise_transient.hybrid import SwitchPoint, hybrid_s, next_fraction, synchronous_step_s
from nodewise_transient.intervals import best_segments, daly_s, first_of, restarting, young_s
from nodewise_transient.job import Checkpoints, Group, Job
from nodewise_transient.lifetimes import Lifetime, exponential, piecewise_linear, weibull
from nodewise_transient.loss import ChiefLoss, elastic, synchronous
from nodewise_transient.prices import PriceSeries, cluster_dollars
from nodewise_transient.provenance import Provenance
from nodewise_transient.renewal import expected_losses
from nodewise_transient.saving import fit_saves
from nodewise_transient.servers import fit_shared, shared_speed
from nodewise_transient.simulation import simulate
from nodewise_transient.traces import Availability
from nodewise_transient.tuning import best_interval_steps
from nodewise_transient.walk import finish_s

STATED = Provenance(data_set="stated")


def test_a_tabulated_weibull_is_the_weibull() -> None:
    law = weibull(36_000.0, 0.6, provenance=STATED)
    ages = np.geomspace(1.0, 1e6, 200)
    np.testing.assert_allclose(1.0 - law.revoked_by(ages), np.exp(-((ages / 36_000.0) ** 0.6)), rtol=1e-4, atol=1e-9)
    assert law.mean_s() == pytest.approx(36_000.0 * math.gamma(1.0 + 1.0 / 0.6), rel=1e-3)


def test_the_cap_is_an_atom_and_age_conditions() -> None:
    law = piecewise_linear([3600.0, 7200.0], [0.2, 0.4], cap_s=7200.0, provenance=STATED)
    assert law.revoked_by(7199.999) == pytest.approx(0.4, abs=1e-6)
    assert law.revoked_by(7200.0) == 1.0
    assert law.revoked_within(3600.0 - 1e-6, age_s=3600.0) == pytest.approx(0.25, abs=1e-6)
    assert law.remaining_s(0.9, age_s=3600.0) == 3600.0
    assert law.remaining_s(0.125, age_s=3600.0) == pytest.approx(1800.0)
    assert law.mean_s() == pytest.approx(0.9 * 3600.0 + 0.7 * 3600.0)
    with pytest.raises(ValueError, match="no machine"):
        law.revoked_within(1.0, age_s=8000.0)
    assert law.with_cap(5400.0).revoked_by(5399.999) == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize(
    ("knots", "shares", "cap"),
    [([1.0, 2.0], [0.0, 0.1], 9.0), ([0.0, 2.0, 2.0], [0.0, 0.1, 0.2], 9.0), ([0.0, 2.0], [0.0, 0.2], 1.0)],
)
def test_laws_that_are_none_are_refused(knots: list[float], shares: list[float], cap: float) -> None:
    with pytest.raises(ValueError, match="must"):
        Lifetime(knots_s=np.array(knots), revoked=np.array(shares), cap_s=cap, provenance=STATED)


def test_fits_find_the_law_behind_censored_lives() -> None:
    rng = np.random.default_rng(1)
    lives = 7200.0 * rng.weibull(0.7, 4000)
    watched = rng.uniform(0.0, 14_400.0, 4000)
    seen = single(np.minimum(lives, watched), lives <= watched, provenance=STATED)
    found = fit(seen, "weibull")
    assert found.scale_s == pytest.approx(7200.0, rel=0.1)
    assert found.shape == pytest.approx(0.7, rel=0.05)
    assert not found.degenerate
    assert choose(seen).provenance.law == "weibull"
    kept = empirical(seen)
    assert kept.provenance.machines == 4000
    at = np.array([600.0, 3600.0, 7200.0])
    np.testing.assert_allclose(kept.revoked_by(at), 1.0 - np.exp(-((at / 7200.0) ** 0.7)), atol=0.03)
    assert any("no lifetime beyond" in note for note in kept.provenance.notes)


def test_what_all_die_of_at_once_is_no_weibull() -> None:
    hours = np.arange(1.0, 25.0) * 3600.0
    seen = sample_of_bins(hours, np.full(24, 0.5), machines=40, cap_s=86_400.0, provenance=STATED)
    assert fit(seen, "weibull").degenerate
    assert choose(seen).provenance.law == "empirical"


def test_nobody_revoked_tells_no_law() -> None:
    with pytest.raises(ValueError, match="state a law"):
        single([100.0, 200.0], [False, False], provenance=STATED)


def test_provenance_warns_where_lifetimes_are_used_elsewhere_or_late() -> None:
    origin = Provenance(data_set="x", device="K80", place="us-east1", measured=date(2019, 12, 1), machines=30)
    here = origin.warnings(device="K80", place="us-east1", today=date(2019, 12, 20))
    assert [notice.message for notice in here] == [
        "only 30 lifetimes were measured: the share of revoked nodes is uncertain by ±0.09"
    ]
    there = origin.warnings(device="P100", place="us-west1", today=date(2026, 1, 1))
    assert [
        part in " ".join(notice.message for notice in there)
        for part in ("may not hold elsewhere", "not on P100", "may have changed since")
    ] == [True] * 3


def test_renewals_of_a_constant_hazard_are_a_line_and_with_gaps_their_rate() -> None:
    law = exponential(3600.0, provenance=STATED)
    assert expected_losses(law, 36_000.0) == pytest.approx(10.0, rel=0.005)
    assert expected_losses(law, 36_000.0, age_s=5000.0) == pytest.approx(10.0, rel=0.005)
    # Far from the start one loss per mean life and gap.
    gaps = expected_losses(law, 360_000.0, delay_s=400.0) - expected_losses(law, 180_000.0, delay_s=400.0)
    assert gaps == pytest.approx(180_000.0 / 4000.0, rel=0.01)


def test_renewals_restart_the_cap() -> None:
    law = exponential(1e12, cap_s=1000.0, provenance=STATED)
    assert expected_losses(law, 5500.0, delay_s=100.0) == pytest.approx(5.0, abs=0.01)
    assert expected_losses(law, 900.0, age_s=500.0) == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("save_s", "hours", "young", "first", "higher", "exact"),
    [
        (3.82, 29.6, 902.3, 898.5, 899.7, 899.74),
        (3.82, 10.4, 534.8, 531.0, 532.3, 532.29),
        (60.0, 2.0, 929.5, 869.5, 889.9, 889.96),
        (300.0, 1.0, 1469.7, 1169.7, 1276.5, 1276.88),
    ],
)
def test_intervals_are_the_published_ones(
    save_s: float, hours: float, young: float, first: float, higher: float, exact: float
) -> None:
    mean_s = hours * 3600.0
    assert young_s(save_s, mean_s) == pytest.approx(young, abs=0.1)
    assert daly_s(save_s, mean_s, order=1) == pytest.approx(first, abs=0.1)
    assert daly_s(save_s, mean_s) == pytest.approx(higher, abs=0.1)
    assert best_interval_s(save_s, mean_s) == pytest.approx(exact, abs=0.1)


def test_the_recursion_for_any_law_is_dalys_form_and_the_simulation() -> None:
    law = exponential(7200.0, provenance=STATED)
    found = restarting(law, work_s=36_000.0, segments=60, save_s=30.0, restart_s=120.0)
    assert found.running_s == pytest.approx(40167.0, abs=0.5)
    assert abs(best_segments(law, work_s=36_000.0, save_s=30.0, restart_s=120.0)[0] - 36_000.0 / 637.4) < 1.0
    young = weibull(7200.0, 0.6, provenance=STATED)
    exact = restarting(young, work_s=20_000.0, segments=20, save_s=30.0, restart_s=120.0, age_s=600.0)
    job = Job(
        steps=20_000.0,
        groups=(Group(count=1, lifetime=young, ages_s=(600.0,), replacement_s=(200.0,)),),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(120.0),
        checkpoints=Checkpoints(interval_steps=1000.0, seconds=30.0),
    )
    outcome = simulate(job, runs=20_000)
    assert outcome.time_s.mean == pytest.approx(exact.total_s(200.0), abs=4.0 * outcome.time_s.standard_error)
    assert outcome.expected_losses == pytest.approx(exact.losses, rel=0.05)


def test_what_never_lives_for_a_segment_never_ends() -> None:
    law = exponential(1e9, cap_s=500.0, provenance=STATED)
    assert restarting(law, work_s=5000.0, segments=5, save_s=30.0, restart_s=0.0).running_s == math.inf
    assert restarting(law, work_s=5000.0, segments=50, save_s=30.0, restart_s=0.0).running_s < math.inf


def test_waiting_moves_the_best_interval_only_where_the_hazard_changes() -> None:
    setting = {"work_s": 36_000.0, "save_s": 30.0, "restart_s": 10.0, "delay_s": 3000.0}
    constant = exponential(7200.0, provenance=STATED)
    # Losses are running time over the mean life, whatever the interval: waiting scales all of them alike.
    assert best_segments(constant, **setting)[0] == best_segments(constant, **setting, workers_per_h=1.0)[0]
    ageing = weibull(7200.0, 3.0, provenance=STATED)
    in_time, seconds = best_segments(ageing, **setting)
    in_cost, dollars = best_segments(ageing, **setting, workers_per_h=3600.0)
    assert in_time != in_cost
    attempts = {"work_s": 36_000.0, "save_s": 30.0, "restart_s": 10.0}
    assert restarting(ageing, segments=in_cost, **attempts).total_s(3000.0) > seconds
    assert restarting(ageing, segments=in_time, **attempts).running_s > dollars


def test_the_first_of_many_dies_as_often_as_all_of_them() -> None:
    law = exponential(7200.0, provenance=STATED)
    assert first_of(law, 8).mean_s() == pytest.approx(900.0, rel=1e-3)
    capped = first_of(piecewise_linear([3600.0, 86_400.0], [0.1, 0.4], cap_s=86_400.0, provenance=STATED), 4)
    assert capped.revoked_by(3600.0) == pytest.approx(1.0 - 0.9**4)
    assert capped.revoked[-1] == pytest.approx(1.0 - 0.6**4)


@pytest.mark.parametrize("objective", ["time", "cost"])
def test_the_simulated_interval_is_near_the_closed_one(objective: str) -> None:
    job = Job(
        steps=36_000.0,
        groups=(
            Group(count=1, lifetime=exponential(7200.0, provenance=STATED), replacement_s=(0.0,), price_per_h=1.0),
        ),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(120.0),
        checkpoints=Checkpoints(seconds=30.0),
    )
    steps, value = best_interval_steps(job, objective=objective)  # type: ignore[arg-type]
    assert 400.0 < steps < 1000.0
    assert value == pytest.approx(40160.0 / (1.0 if objective == "time" else 3600.0), rel=0.01)


def test_long_runs_save_as_often_as_short_ones() -> None:
    job = Job(
        steps=1e7,
        groups=(
            Group(count=1, lifetime=exponential(10_800.0, provenance=STATED), replacement_s=(0.0,), price_per_h=1.0),
        ),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(600.0),
        checkpoints=Checkpoints(seconds=3.0),
    )
    steps, _ = best_interval_steps(job, objective="time", runs=20)
    assert 0.5 * young_s(3.0, 10_800.0) < steps < 2.0 * young_s(3.0, 10_800.0)


def test_saves_that_cost_nothing_are_at_most_one_a_step() -> None:
    job = Job(
        steps=20.0,
        groups=(Group(count=1, lifetime=exponential(10.0, provenance=STATED), replacement_s=(0.0,), price_per_h=1.0),),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(1.0),
        checkpoints=Checkpoints(seconds=0.0),
    )
    steps, _ = best_interval_steps(job, objective="time", runs=20)
    assert 1.0 <= steps <= 2.0


def test_walks_stop_where_the_record_ends_and_where_nothing_runs() -> None:
    done = finish_s([0.0, 100.0], [1.0, 0.0], [50.0, 100.0, 101.0])
    np.testing.assert_array_equal(done, [50.0, 100.0, np.inf])
    assert finish_s([0.0], [2.0], 100.0, end_s=40.0) == np.inf
    record = Availability(since_s=np.array([0.0, 60.0]), instances=np.array([0, 3]), length_s=100.0)
    np.testing.assert_array_equal(record.ticks(20.0, needed=2), [0.0, 0.0, 0.0, 1.0, 1.0])
    changes, speeds = record.speeds(np.arange(4.0), on_demand=1)
    np.testing.assert_array_equal(finish_s(changes, speeds, [60.0, 90.0]), [60.0, 70.0])


def test_prices_are_integrated_over_uptimes() -> None:
    series = PriceSeries(since_s=np.array([0.0, 3600.0]), per_h=np.array([1.0, 3.0]))
    assert series.integral(1800.0, 5400.0) == pytest.approx(0.5 + 1.5)
    assert cluster_dollars([3600.0, np.inf], 2.0, time_s=7200.0, servers_per_h=1.0) == pytest.approx(2.0 + 4.0 + 2.0)
    assert cluster_dollars([np.inf], 2.0, time_s=3600.0, startup_s=1800.0) == pytest.approx(3.0)


def test_saves_are_affine_and_need_two() -> None:
    law = fit_saves([4.0, 5.0, 8.0], [10.0, 60.0, 210.0])
    assert law.seconds(110.0) == pytest.approx(6.0)
    assert law.s_per_graph_mb == 0.0
    with pytest.raises(ValueError, match="two saves"):
        fit_saves([4.0], [10.0])


def test_the_mean_field_is_exact_for_fixed_lives_and_early_for_random_ones() -> None:
    law = exponential(3600.0, provenance=STATED)
    job = Job(steps=5 * 3600.0, groups=(Group(count=4, lifetime=law),), speeds=np.arange(5.0))
    assert mean_field_s(job) == math.inf  # five mean lives of work, four workers
    half = Job(steps=4 * 1800.0, groups=(Group(count=4, lifetime=law),), speeds=np.arange(5.0))
    assert mean_field_s(half) == pytest.approx(3600.0 * math.log(2.0), rel=0.002)
    assert any("MONTE_CARLO" in said for said in expect(half).warnings)


def test_fixed_points_follow_the_simulation_whatever_the_reaction() -> None:
    law = weibull(20 * 3600.0, 0.7, provenance=STATED)
    for reaction, chief in (
        (elastic(30.0), ChiefLoss()),
        (synchronous(60.0), ChiefLoss()),
        (elastic(0.0), ChiefLoss(policy="rollback", setup_s=90.0)),
    ):
        job = Job(
            steps=4 * 28_800.0,
            groups=(Group(count=4, lifetime=law, replacement_s=(100.0, 200.0), price_per_h=1.0),),
            speeds=np.arange(5.0),
            reaction=reaction,
            chief=chief,
            checkpoints=Checkpoints(interval_steps=4 * 900.0, seconds=10.0),
            servers_per_h=0.5,
        )
        outcome, expected = simulate(job, runs=20_000), expect(job)
        assert expected.time_s == pytest.approx(outcome.time_s.mean, rel=0.01)
        assert expected.dollars == pytest.approx(outcome.dollars.mean, rel=0.01)
        assert expected.losses == pytest.approx(outcome.expected_losses, rel=0.03)


def test_losses_faster_than_saves_have_no_mean() -> None:
    job = Job(
        steps=36_000.0,
        groups=(Group(count=1, lifetime=exponential(60.0, provenance=STATED), replacement_s=(1.0,)),),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(60.0),
        checkpoints=Checkpoints(interval_steps=1200.0, seconds=30.0),
    )
    assert expect(job).time_s == math.inf


def test_hybrids_pay_for_the_switch_only_where_there_is_one() -> None:
    shares = hybrid_s([0.0, 0.5, 1.0], synchronous_s=100.0, asynchronous_s=20.0, switch_s=7.0)
    np.testing.assert_array_equal(shares, [20.0, 67.0, 100.0])
    with pytest.raises(ValueError, match="fraction must be from 0 to 1"):
        hybrid_s(1.1, synchronous_s=1.0, asynchronous_s=1.0)
    assert synchronous_step_s([1.0, 1.0], 0.25, [1.0, 3.0]) == 3.25


def test_the_next_fraction_halves_what_is_not_known() -> None:
    points = (SwitchPoint(fraction=0.0, accuracy=0.89), SwitchPoint(fraction=0.1, accuracy=0.914))
    assert next_fraction(points, least_accuracy=0.91) == pytest.approx(0.05)
    assert next_fraction(points, least_accuracy=0.91, width=0.2) is None
    assert next_fraction((), least_accuracy=0.91) == 0.5


def test_capacities_that_runs_do_not_tell_are_unlimited() -> None:
    own, capacity = fit_shared([1, 2, 4], [10.0, 20.0, 40.0])
    assert own == pytest.approx(10.0, rel=1e-3)
    assert capacity == math.inf
    told = fit_shared([1, 4, 8], shared_speed(np.array([10.0, 40.0, 80.0]), 45.0))
    np.testing.assert_allclose(told, (10.0, 45.0), rtol=0.01)
