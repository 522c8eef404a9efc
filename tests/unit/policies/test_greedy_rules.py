"""Shortest remaining time, marginal gain, capped efficiency, attained service and goodput on cases counted by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from schedules import TABLE, Clock, Rates, curves_of, decided, granted, job, state_of, with_defaults

from nodewise.domain.columns import as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.schedule import CurrentAllocation, Curves
from nodewise_policies.goodput import Goodput, goodputs

A, B = job("a", 1000.0, 0.0), job("b", 2000.0, 1.0)
STRAIGHT = [10.0 * count for count in range(1, 9)]
FLAT = [7.0] * 8
DIP = [10.0, 6.0, 30.0, 31.0]


def held(devices: int, age_s: float = 100.0) -> CurrentAllocation:
    return CurrentAllocation(pool=0, placement=((0, devices),), age_s=age_s)


# --- shortest remaining time


def test_srpt_takes_the_count_of_least_remaining_time() -> None:
    assert granted("srpt", state_of([A, B], 8), [TABLE, TABLE]) == [7, 1]
    assert granted("srpt", state_of([A, job("b", 500.0)], 8), [TABLE, TABLE]) == [1, 7]
    assert granted("srpt", state_of([A, job("b", 500.0, weight=0.25)], 8), [TABLE, TABLE]) == [7, 1]


def test_srpt_leaves_a_job_alone_where_a_restart_costs_more_than_it_gains() -> None:
    running = job("a", 1000.0, current=held(5), restart_cost_s=30.0)
    state = state_of([running], 8)
    assert granted("srpt", state, [TABLE]) == [7]
    assert granted("srpt", state_of([running], 8, parameters={"count_restarts": 1.0}), [TABLE]) == [5]
    long = job("a", 1e6, current=held(5), restart_cost_s=30.0)
    assert granted("srpt", state_of([long], 8, parameters={"count_restarts": 1.0}), [TABLE]) == [7]


# --- marginal gain


def test_marginal_gain_starts_everyone_and_then_raises_the_greatest_gain() -> None:
    # Gains of a straight curve: R / 10 (1 - 1/2), (1/2 - 1/3), ...: twice the work is served first.
    assert granted("marginal-gain", state_of([A, B], 3), [STRAIGHT, STRAIGHT]) == [1, 2]
    assert granted("marginal-gain", state_of([A, B], 6), [STRAIGHT, STRAIGHT]) == [3, 3]
    assert granted("marginal-gain", state_of([A, B], 8), [STRAIGHT, FLAT]) == [7, 1]
    assert granted("marginal-gain", state_of([A, B], 1), [STRAIGHT, STRAIGHT]) == [1, 0]


def test_marginal_gain_looks_over_a_dip() -> None:
    assert granted("marginal-gain", state_of([A], 8), [DIP]) == [4]
    assert granted("marginal-gain", state_of([A], 2), [DIP]) == [1]
    assert granted("marginal-gain", state_of([A], 8, parameters={"look_ahead": 0.0}), [DIP]) == [1]


def test_marginal_gain_takes_servers_once() -> None:
    served = [job("a", 1000.0, server_devices=2), job("b", 2000.0, server_devices=2)]
    assert granted("marginal-gain", state_of(served, 8), [STRAIGHT, STRAIGHT]) == [2, 2]


@pytest.mark.parametrize("policy", ["srpt", "marginal-gain", "efficiency-capped", "efficiency-srpt", "packing"])
def test_a_job_of_next_to_no_work_is_served_like_any_other(policy: str) -> None:
    done = job("a", 5e-324, 0.0)
    assert granted(policy, state_of([done, B], 8), [TABLE, TABLE])[1] > 0


# --- capped efficiency


def test_the_cap_is_twice_the_fair_share_before_the_fill() -> None:
    # Alone, the best count of the table is 5; with 8 devices and 4 jobs the cap is 4.
    jobs = [job(f"{index}", 1000.0 * (index + 1)) for index in range(4)]
    assert granted("efficiency-capped", state_of(jobs, 8), [TABLE] * 4) == [4, 4, 0, 0]
    assert granted("efficiency-capped", state_of(jobs, 8, parameters={"cap_factor": 1.0}), [TABLE] * 4) == [2, 2, 2, 2]
    assert granted("efficiency-capped", state_of(jobs[:1], 8), [TABLE]) == [7]
    heavy = [job("a", 1000.0, weight=3.0), job("b", 1000.0)]
    assert granted("efficiency-capped", state_of(heavy, 4, parameters={"cap_factor": 1.0}), [STRAIGHT] * 2) == [3, 1]


def test_a_smallest_count_above_the_cap_is_still_allowed() -> None:
    jobs = [job(f"{index}", 1000.0) for index in range(4)]
    assert granted("efficiency-capped", state_of(jobs, 8), [[0.0] * 5 + [10.0]] * 4) == [6, 0, 0, 0]


def test_flat_curves_take_one_device_and_nothing_more() -> None:
    assert granted("efficiency-capped", state_of([A, B], 8), [FLAT, FLAT]) == [1, 1]


def test_the_fill_goes_where_the_rate_rises_most_in_proportion() -> None:
    # After step 1 with a cap of one device each: ln 2 for a straight curve's second device, ln(3) / 2 over the dip.
    state = state_of([A, B], 5, parameters={"cap_factor": 0.0})
    assert granted("efficiency-capped", state, [STRAIGHT, FLAT]) == [4, 1]
    assert granted("efficiency-capped", state, [STRAIGHT, DIP]) == [2, 3]


def test_waiting_lifts_a_job_in_the_end() -> None:
    # At best 2,000 s are left of the long job: after 1e7 s it counts as 1 + 0.1 x 5,000 times shorter.
    for now, wanted in ((1e6, [0, 1]), (1e7, [1, 0])):
        jobs = [job("a", 1e5, 0.0), job("b", 1000.0, now)]
        assert granted("efficiency-capped", replace(state_of(jobs, 1), now_s=now), [TABLE, TABLE]) == wanted


def test_a_job_near_its_end_is_not_resized() -> None:
    running = job("a", 100.0, current=held(2), restart_cost_s=30.0)
    assert granted("efficiency-capped", state_of([running], 8), [TABLE]) == [2]
    assert granted("efficiency-capped", state_of([running], 8, parameters={"count_restarts": 0.0}), [TABLE]) == [7]


# --- attained service


def test_las_serves_who_had_least_first_and_backfills() -> None:
    jobs = [
        job("old", attained_service_device_s=9000.0, requested_devices=2),
        job("mid", submitted=1.0, attained_service_device_s=4000.0, requested_devices=2),
        job("big", submitted=2.0, requested_devices=4),
        job("new", submitted=3.0, requested_devices=1),
    ]
    tables = [TABLE] * 4
    assert granted("las", state_of(jobs, 5), tables) == [0, 0, 4, 1]
    assert granted("las", state_of(jobs, 3), tables) == [0, 2, 0, 1]
    one_queue = {"first_limit_device_s": 1e9, "second_limit_device_s": 1e9}
    assert granted("las", state_of(jobs, 4, parameters=one_queue), tables) == [2, 2, 0, 0]


def test_las_promotes_who_waited_long() -> None:
    jobs = [job("old", attained_service_device_s=9000.0), job("new", submitted=3.0)]
    state = with_defaults("las", state_of(jobs, 1, parameters={"promotion_ratio": 2.0}))
    for now, wanted in ((26_000.0, [0, 1]), (27_001.0, [1, 0])):
        assert granted("las", replace(state, now_s=now), [TABLE, TABLE]) == wanted


def test_las_does_not_look_at_sizes() -> None:
    jobs = [job("a", 1.0, 1.0, requested_devices=3), job("b", 1e9, 0.0, requested_devices=3)]
    assert granted("las", state_of(jobs, 4), [TABLE, TABLE]) == [0, 3]


# --- goodput


def weak_scaling(rates: list[Rates], batch: int) -> Curves:
    plain = curves_of(rates)
    rows = len(plain.devices)
    configurations = Configurations.of(rows, workers=as_ints(plain.devices), batch_per_worker=batch)
    return replace(plain, configurations=configurations)


def test_statistical_efficiency_holds_back_large_batches() -> None:
    noisy = job("a", gradient_noise_scale_samples=1e9, initial_batch_samples=32.0)
    quiet = job("b", gradient_noise_scale_samples=32.0, initial_batch_samples=32.0)
    curves = weak_scaling([STRAIGHT, STRAIGHT], 32)
    rates, known = goodputs(state_of([noisy, quiet], 8), curves)
    assert known == [True, True]
    np.testing.assert_allclose(rates[:8], STRAIGHT, rtol=1e-6)
    np.testing.assert_allclose(rates[8:], [10.0 * n * 64 / (32 + 32 * n) for n in range(1, 9)])
    answer = Goodput().decide(state_of([noisy, quiet], 8), curves, Clock())
    assert answer.grants[0].devices > answer.grants[1].devices


def test_without_its_facts_a_job_is_taken_by_its_throughput_and_says_so() -> None:
    answer = decided("goodput", state_of([A], 8), [TABLE])
    assert answer.grants[0].devices == 7
    assert "throughput alone" in answer.grants[0].why


def test_goodput_weighs_speed_ups_not_remaining_time() -> None:
    assert granted("goodput", state_of([A, job("b", 1e9)], 8), [STRAIGHT, STRAIGHT]) == [4, 4]
    # Fair shares are 1 and 7 devices: 1 / n + 4 x 7 / m is least at 2 and 7.
    assert granted("goodput", state_of([A, job("b", weight=4.0)], 9), [STRAIGHT, STRAIGHT]) == [2, 7]


def test_goodput_leaves_a_job_alone_after_a_restart() -> None:
    fresh = job("a", current=held(2), restart_cost_s=30.0, restarts=1)
    state = state_of([fresh], 8)
    assert Goodput().decide(replace(state, now_s=40.0), curves_of([TABLE]), Clock()).grants[0].devices == 2
    assert Goodput().decide(replace(state, now_s=4e5), curves_of([TABLE]), Clock()).grants[0].devices == 7


# --- what all have in common


@pytest.mark.parametrize("name", ["efficiency-capped", "marginal-gain", "goodput", "srpt", "las", "deadline-aware"])
def test_an_exhausted_budget_keeps_what_was_granted(name: str) -> None:
    jobs = [job(f"{index}", deadline_s=1e6) for index in range(40)]
    nothing = decided(name, state_of(jobs, 12), [TABLE] * 40, Clock(looks=0))
    assert not nothing.complete
    assert sum(grant.devices for grant in nothing.grants) == 0
    some = decided(name, state_of(jobs, 64), [TABLE] * 40, Clock(looks=1))
    assert sum(grant.devices for grant in some.grants) > 0
    assert math.isfinite(sum(grant.devices for grant in some.grants))
