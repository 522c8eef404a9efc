"""Jobs that lose workers: closed forms, what each reaction costs, money, and determinism."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from nodewise_transient.deterministic import expect
from nodewise_transient.job import Checkpoints, Group, Job, speed_table
from nodewise_transient.lifetimes import Lifetime, exponential, never, piecewise_linear
from nodewise_transient.loss import Burst, ChiefLoss, elastic, synchronous
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate

STATED = Provenance(data_set="stated")


def dies_at(age_s: float) -> Lifetime:
    """Everybody dies within a millisecond of an age."""
    return piecewise_linear([age_s - 1e-3, age_s], [0.0, 1.0], provenance=STATED)


def fixture(**changes: object) -> Job:
    """Daly's setting: one worker, a segment of 600 s, saves of 30 s, restarts of 120 s."""
    job = Job(
        steps=36_000.0,
        groups=(Group(count=1, lifetime=exponential(7200.0, provenance=STATED), replacement_s=(0.0,)),),
        speeds=np.array([0.0, 1.0]),
        reaction=synchronous(120.0),
        checkpoints=Checkpoints(interval_steps=600.0, seconds=30.0),
    )
    return replace(job, **changes)  # type: ignore[arg-type]


def test_monte_carlo_is_dalys_closed_form() -> None:
    outcome = simulate(fixture(), runs=40_000)
    assert outcome.time_s.mean == pytest.approx(40167.0, abs=4.0 * outcome.time_s.standard_error)
    assert outcome.time_s.standard_error < 0.001 * 40167.0
    assert (outcome.time_s.p50, outcome.time_s.p90, outcome.time_s.p99) == pytest.approx(
        (40084, 41692, 43340), rel=5e-3
    )
    assert expect(fixture()).time_s == pytest.approx(40167.0, rel=0.002)


def test_the_parts_add_up_to_the_time() -> None:
    parts = simulate(fixture(), runs=1000)
    split = parts.breakdown
    assert split is not None
    total = split.compute_s + split.degraded_s + split.checkpoint_s + split.lost_work_s + split.restart_s
    assert total == pytest.approx(parts.time_s.mean, rel=1e-9)


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    first, second, other = (simulate(fixture(), runs=5000, seed=seed) for seed in (3, 3, 4))
    assert first.end_s.tobytes() == second.end_s.tobytes()
    assert first.cost.tobytes() == second.cost.tobytes()
    assert first.end_s.tobytes() != other.end_s.tobytes()


@pytest.mark.parametrize("interval", [math.inf, 1000.0, 700.0, 36_000.0, 36_000.0 / 7.0])
def test_without_losses_there_is_work_and_saves_and_nothing_else(interval: float) -> None:
    saves = Checkpoints(interval_steps=interval, seconds=12.0, share_stopped=0.25)
    job = fixture(groups=(Group(count=1, price_per_h=2.0),), checkpoints=saves, servers_per_h=1.0)
    outcome = simulate(job, runs=3)
    count = math.ceil(36_000.0 / interval - 1e-9) if math.isfinite(interval) else 0
    np.testing.assert_allclose(outcome.end_s, 36_000.0 + 3.0 * count, rtol=1e-9)
    np.testing.assert_allclose(outcome.cost, 3.0 * outcome.end_s / 3600.0)
    assert expect(job).time_s == pytest.approx(float(outcome.end_s[0]), rel=1e-3)


def test_who_is_alone_and_not_replaced_fails_for_sure() -> None:
    outcome = simulate(fixture(groups=(Group(count=1, lifetime=dies_at(500.0)),)), runs=20)
    assert outcome.p_failure == 1.0
    assert outcome.time_s.mean == math.inf
    assert outcome.breakdown is None
    np.testing.assert_allclose(outcome.end_s, 500.0, atol=0.01)


def test_an_asynchronous_loss_costs_the_workers_share_until_it_is_replaced() -> None:
    groups = (Group(count=1), Group(count=1, lifetime=dies_at(1000.0), replacement_s=(400.0,), price_per_h=3.6))
    job = Job(steps=3600.0, groups=groups, speeds=speed_table((1, 1), lambda a, b: float(a + b)))
    outcome = simulate(job, runs=2)
    # Lost at 1000 s, back at 1400 s, lost again only after 2400 s: 400 of 2 x 1800 worker-seconds are missed.
    np.testing.assert_allclose(outcome.end_s, 2000.0, atol=0.01)
    np.testing.assert_allclose(outcome.cost, 0.001 * 1600.0, rtol=1e-4)
    billed = replace(job, groups=(groups[0], replace(groups[1], bills_startup=True)))
    np.testing.assert_allclose(simulate(billed, runs=2).cost, 0.001 * 2000.0, rtol=1e-4)


def test_a_synchronous_loss_stops_all_and_loses_what_is_not_saved() -> None:
    groups = (Group(count=3), Group(count=1, lifetime=dies_at(1000.0), replacement_s=(100.0,)))
    job = Job(
        steps=900.0,
        groups=groups,
        speeds=speed_table((3, 1), lambda a, b: (a + b) / 4.0),
        reaction=synchronous(50.0),
        checkpoints=Checkpoints(interval_steps=300.0, seconds=60.0),
    )
    outcome = simulate(job, runs=2)
    # Saved 600 steps by 720 s, 280 s are lost, 100 + 50 s of waiting, then 300 steps and their save.
    np.testing.assert_allclose(outcome.end_s, 1000.0 + 150.0 + 360.0, atol=0.01)
    np.testing.assert_allclose(outcome.parts_s[0], [900.0, 180.0, 280.0, 150.0], atol=0.01)


def test_an_elastic_job_goes_on_with_those_left() -> None:
    groups = (Group(count=1), Group(count=1, lifetime=dies_at(1000.0)))
    speeds = speed_table((1, 1), lambda a, b: float(a + b))
    outcome = simulate(Job(steps=3000.0, groups=groups, speeds=speeds, reaction=elastic(30.0)), runs=2)
    np.testing.assert_allclose(outcome.end_s, 2030.0, atol=0.01)


@pytest.mark.parametrize(
    ("policy", "end_s"), [("none", 2000.0), ("re-elect", 2050.0), ("rollback", 2250.0), ("fail", 1000.0)]
)
def test_what_a_lost_chief_costs_is_a_policy(policy: str, end_s: float) -> None:
    groups = (Group(count=1, lifetime=dies_at(1000.0)), Group(count=1))
    job = Job(
        steps=3000.0,
        groups=groups,
        speeds=speed_table((1, 1), lambda a, b: float(a + b)),
        chief=ChiefLoss(policy=policy, setup_s=50.0),  # type: ignore[arg-type]
        checkpoints=Checkpoints(interval_steps=900.0, seconds=0.0),
    )
    outcome = simulate(job, runs=2)
    # Rolled back from 2000 steps to 1800: 200 s of one worker.
    np.testing.assert_allclose(outcome.end_s, end_s, atol=0.02)
    assert outcome.p_failure == (1.0 if policy == "fail" else 0.0)


def test_caps_end_machines_and_start_again_with_the_next() -> None:
    capped = exponential(1e12, cap_s=1000.0, provenance=STATED)
    job = Job(
        steps=3500.0,
        groups=(Group(count=1, lifetime=capped, ages_s=(400.0,), replacement_s=(10.0,)),),
        speeds=np.array([0.0, 1.0]),
    )
    # 600 s, then 1000 s each: 3 replacements.
    np.testing.assert_allclose(simulate(job, runs=2).end_s, 3530.0, rtol=1e-6)


def test_bursts_widen_the_spread_and_leave_the_losses() -> None:
    law = exponential(20 * 3600.0, provenance=STATED)
    plain = Job(
        steps=16 * 7200.0, groups=(Group(count=16, lifetime=law, replacement_s=(300.0,)),), speeds=np.arange(17.0)
    )
    alone, together = (
        simulate(plain, runs=20_000),
        simulate(replace(plain, burst=Burst(chance=0.5, others=4)), runs=20_000),
    )
    assert together.expected_losses == pytest.approx(alone.expected_losses, rel=0.03)
    assert together.losses.std() > 1.3 * alone.losses.std()
    assert together.time_s.p99 > alone.time_s.p99


def test_mixed_tiers_keep_those_on_demand() -> None:
    spot = Group(count=4, lifetime=dies_at(600.0), price_per_h=1.0)
    job = Job(
        steps=4000.0, groups=(Group(count=1, price_per_h=3.0), spot), speeds=speed_table((1, 4), lambda a, b: a + b)
    )
    outcome = simulate(job, runs=2)
    np.testing.assert_allclose(outcome.end_s, 600.0 + 1000.0, atol=0.01)
    np.testing.assert_allclose(outcome.cost, (4 * 600.0 + 3 * 1600.0) / 3600.0, rtol=1e-5)


def test_a_horizon_gives_up() -> None:
    outcome = simulate(fixture(horizon_s=1000.0), runs=10)
    assert outcome.p_failure == 1.0
    np.testing.assert_allclose(outcome.end_s, 1000.0)


def test_unusable_jobs_are_refused() -> None:
    with pytest.raises(ValueError, match="steps must be positive"):
        fixture(steps=0.0)
    with pytest.raises(ValueError, match="one axis per group"):
        fixture(speeds=np.arange(3.0))
    with pytest.raises(ValueError, match="speeds must be finite"):
        fixture(speeds=np.array([0.0, math.nan]))
    with pytest.raises(ValueError, match="runs must be"):
        simulate(fixture(), runs=0)
    assert never().mean_s() == math.inf
