"""Nodes that move to other groups, recorded nodes, prices that change, and a pace that is not known."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise_transient.job import Checkpoints, Group, Job, speed_table
from nodewise_transient.lifetimes import exponential, piecewise_linear
from nodewise_transient.loss import ChiefLoss, elastic, synchronous
from nodewise_transient.prices import PriceSeries
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate

STATED = Provenance(data_set="stated")
DIES_AT_1000 = piecewise_linear([999.999, 1000.0], [0.0, 1.0], provenance=STATED)


def test_a_lost_worker_goes_on_in_another_zone_at_its_speed_and_price() -> None:
    spot = Group(count=2, lifetime=DIES_AT_1000, price_per_h=3.6, replacement_s=(100.0,), joins=1)
    firm = Group(count=0, price_per_h=36.0)
    job = Job(steps=4000.0, groups=(spot, firm), speeds=speed_table((2, 2), lambda a, b: a + 2.0 * b))
    outcome = simulate(job, runs=3)
    # 2,000 steps until 1,000 s, nothing for 100 s, then 4 steps/s.
    np.testing.assert_allclose(outcome.end_s, 1600.0, rtol=1e-6)
    np.testing.assert_allclose(outcome.cost, 2 * (1000 * 0.001 + 500 * 0.01), rtol=1e-6)
    assert outcome.losses.tolist() == [2.0] * 3


def test_a_chain_of_groups_may_close() -> None:
    groups = tuple(
        Group(count=count, lifetime=DIES_AT_1000, price_per_h=price, replacement_s=(0.0,), joins=joins)
        for count, price, joins in ((1, 3.6, 1), (0, 7.2, 0))
    )
    job = Job(steps=3500.0, groups=groups, speeds=speed_table((1, 1), lambda a, b: a + b))
    assert job.capacities == (1, 1)
    outcome = simulate(job, runs=2)
    np.testing.assert_allclose(outcome.end_s, 3500.0, rtol=1e-6)
    np.testing.assert_allclose(outcome.cost, 1.0 + 2.0 + 1.0 + 1.0, rtol=1e-5)


def test_startup_is_billed_at_the_price_of_the_machine_that_comes() -> None:
    spot = Group(count=1, lifetime=DIES_AT_1000, price_per_h=3.6, replacement_s=(100.0,), joins=1, bills_startup=True)
    job = Job(
        steps=2000.0,
        groups=(spot, Group(count=0, price_per_h=36.0)),
        speeds=speed_table((1, 1), lambda a, b: a + b),
    )
    np.testing.assert_allclose(simulate(job, runs=1).cost, 1.0 + 11.0, rtol=1e-6)


def test_recorded_workers_come_and_go_as_recorded() -> None:
    there = Group(count=1)
    recorded = Group(count=2, price_per_h=3.6, changes_s=((600.0, 900.0), (0.0, 300.0, 500.0)))
    job = Job(
        steps=2000.0, groups=(there, recorded), speeds=speed_table((1, 2), lambda a, b: a + b), reaction=elastic(0.0)
    )
    outcome = simulate(job, runs=2)
    # 2/s to 300, 3/s to 500, 2/s to 600, 1/s to 900, 2/s on: 600 + 600 + 200 + 300 + 300.
    np.testing.assert_allclose(outcome.end_s, 1050.0)
    np.testing.assert_allclose(outcome.cost, (600 + 150 + 200) * 0.001)
    assert outcome.losses.tolist() == [2.0, 2.0]


def test_a_chief_that_is_recorded_as_absent_at_the_start_is_no_failure() -> None:
    recorded = Group(count=1, changes_s=((0.0, 100.0),))
    job = Job(steps=50.0, groups=(recorded,), speeds=np.arange(2.0), chief=ChiefLoss(policy="fail"))
    outcome = simulate(job, runs=1)
    assert outcome.p_failure == 0.0
    assert outcome.end_s[0] == pytest.approx(150.0)


def test_prices_that_change_are_integrated_over_uptimes() -> None:
    prices = PriceSeries(since_s=np.array([0.0, 500.0, 1500.0]), per_h=np.array([3.6, 36.0, 7.2]))
    group = Group(count=1, lifetime=DIES_AT_1000, replacement_s=(200.0,), prices=prices)
    job = Job(steps=1600.0, groups=(group,), speeds=np.arange(2.0))
    outcome = simulate(job, runs=1)
    assert outcome.end_s[0] == pytest.approx(1800.0, rel=1e-6)
    dear_s = (1000.0 - 500.0) + (1500.0 - 1200.0)
    assert outcome.cost[0] == pytest.approx(500 * 0.001 + dear_s * 0.01 + 300 * 0.002, rel=1e-5)


def test_a_pace_that_is_not_known_widens_the_times_and_parts_still_add_up() -> None:
    law = exponential(20_000.0, provenance=STATED)
    job = Job(
        steps=7200.0,
        groups=(Group(count=2, lifetime=law, replacement_s=(60.0,)),),
        speeds=np.arange(3.0) / 2.0,
        reaction=synchronous(30.0),
        checkpoints=Checkpoints(interval_steps=600.0, seconds=5.0),
    )
    known, unknown = simulate(job, runs=4000), simulate(job, runs=4000, log_spread=0.2)
    assert unknown.end_s.std() > 3 * known.end_s.std()
    assert unknown.time_s.mean == pytest.approx(known.time_s.mean * np.exp(0.02), rel=0.02)
    parts = unknown.breakdown
    assert parts is not None
    whole = parts.compute_s + parts.degraded_s + parts.checkpoint_s + parts.lost_work_s + parts.restart_s
    assert whole == pytest.approx(unknown.time_s.mean, rel=1e-9)
    assert simulate(job, runs=500, log_spread=0.2).end_s.tolist() != unknown.end_s[:500].tolist()


def test_a_job_that_can_never_be_done_ends() -> None:
    law = exponential(10.0, provenance=STATED)
    job = Job(
        steps=1e6,
        groups=(Group(count=4, lifetime=law, replacement_s=(0.0,)),),
        speeds=np.arange(5.0),
        reaction=synchronous(5.0),
    )
    outcome = simulate(job, runs=2)
    assert outcome.p_failure == 1.0


def test_recorded_changes_are_of_every_worker() -> None:
    with pytest.raises(ValueError, match="one entry per worker"):
        Group(count=2, changes_s=((1.0,),))
