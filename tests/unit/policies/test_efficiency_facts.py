"""The published facts about "least remaining time over efficiency, then fill", exactly."""

from __future__ import annotations

import numpy as np
import pytest
from schedules import TABLE, Clock, Rates, curves_of, decided, granted, job, state_of

from nodewise.plugin import Curves, Floats
from nodewise_policies.efficiency import ratios
from nodewise_policies.sharing import Candidates, remaining_s

NO_FILL, FILL = "efficiency-srpt", "efficiency-srpt-fill"
A, B = job("a", 1000.0, 0.0), job("b", 2000.0, 1.0)


def ratios_of(curves: Curves) -> Floats:
    state = state_of([A], 8)
    return ratios(state, curves, Candidates(curves), remaining_s(state, curves, restarts=False))


def test_a_job_alone_runs_where_speed_up_times_efficiency_is_greatest() -> None:
    assert granted(NO_FILL, state_of([A], 8), [TABLE]) == [5]
    best = [rate * rate / count for count, rate in enumerate(TABLE, start=1)]
    assert best.index(max(best)) + 1 == 5


@pytest.mark.parametrize(
    ("devices", "without_fill", "with_fill"),
    [
        (3, [3, 0], [3, 0]),
        (5, [5, 0], [5, 0]),
        (8, [5, 3], [5, 3]),
        (9, [5, 4], [5, 4]),
        (12, [5, 5], [7, 5]),
        (16, [5, 5], [7, 7]),
    ],
)
def test_two_jobs_of_one_table(devices: int, without_fill: list[int], with_fill: list[int]) -> None:
    state = state_of([A, B], devices)
    assert granted(NO_FILL, state, [TABLE, TABLE]) == without_fill
    assert granted(FILL, state, [TABLE, TABLE]) == with_fill


@pytest.mark.parametrize("name", [NO_FILL, FILL])
def test_servers_are_taken_besides_the_workers(name: str) -> None:
    served = [job("a", 1000.0, 0.0, server_devices=1), job("b", 2000.0, 1.0, server_devices=1)]
    assert granted(name, state_of(served, 9), [TABLE, TABLE]) == [5, 2]


@pytest.mark.parametrize("name", [NO_FILL, FILL])
def test_straight_curves_give_everything_to_the_shortest_remaining_work(name: str) -> None:
    straight = [10.0 * count for count in range(1, 9)]
    jobs = [job("a", 1000.0, 0.0), job("b", 900.0, 1.0)]
    assert granted(name, state_of(jobs, 6), [straight, straight]) == [0, 6]


def test_flat_curves_take_one_device_and_the_fill_adds_none() -> None:
    flat = [7.0] * 8
    assert granted(NO_FILL, state_of([A, B], 8), [flat, flat]) == [1, 1]
    assert granted(FILL, state_of([A, B], 8), [flat, flat]) == [1, 1]


def test_ratio_is_remaining_time_over_efficiency() -> None:
    curves = curves_of([TABLE])
    left, one = 1000.0, TABLE[0]
    by_hand = [(left / rate) / (rate / (count * one)) for count, rate in enumerate(TABLE, start=1)]
    found = ratios_of(curves)
    np.testing.assert_allclose(found, by_hand, rtol=1e-11)


def test_efficiency_is_relative_to_the_smallest_answered_count() -> None:
    # Without rows for 1 device, eff(2) = 1: 4 devices at twice the rate of 2 are as efficient, and finish sooner.
    assert granted(NO_FILL, state_of([A], 8), [(0.0, 20.0, 0.0, 40.0)]) == [4]
    curves = curves_of([(0.0, 20.0, 0.0, 30.0)])
    np.testing.assert_allclose(ratios_of(curves), [50.0, 1000 / 30 / (30 / 40)])


def test_ties_go_to_the_earlier_then_to_the_smaller_id_then_to_fewer_devices() -> None:
    tables = [TABLE, TABLE]
    assert granted(NO_FILL, state_of([job("b", submitted=1.0), job("a", submitted=2.0)], 5), tables) == [5, 0]
    assert granted(NO_FILL, state_of([job("b"), job("a")], 5), tables) == [0, 5]
    # 1 and 4 devices tie in thr(n)^2 / n, in floating point only after rounding.
    assert granted(NO_FILL, state_of([A], 8), [(0.1, 0.0, 0.0, 0.2)]) == [1]
    assert granted(NO_FILL, state_of([A], 8), [(0.1, 0.0, 0.0, 0.1 * 2 * (1 + 1e-15))]) == [1]


def test_among_equal_pools_the_first_is_taken_and_a_faster_one_wins() -> None:
    anywhere = job("a", allowed_pools=(0, 1))
    assert decided(NO_FILL, state_of([anywhere], (8, 8)), [{0: TABLE, 1: TABLE}]).grants[0].pool == 0
    faster = [2 * rate for rate in TABLE]
    assert decided(NO_FILL, state_of([anywhere], (8, 8)), [{0: TABLE, 1: faster}]).grants[0].pool == 1
    assert decided(NO_FILL, state_of([anywhere], (8, 0)), [{0: TABLE, 1: faster}]).grants[0].pool == 0


def test_a_weight_divides_the_ratio() -> None:
    heavy = job("b", 2000.0, 1.0, weight=2.5)
    assert granted(NO_FILL, state_of([A, heavy], 5), [TABLE, TABLE]) == [0, 5]


def test_fill_serves_the_job_that_needs_fewest_extras() -> None:
    # A would need 3 more for its last gain, B one: B is served first although A was submitted earlier.
    table_a, table_b = (10.0, 10.0, 10.0, 11.0), (10.0, 10.5)
    assert granted(FILL, state_of([A, B], 5), [table_a, table_b]) == [1, 2]
    assert granted(FILL, state_of([A, B], 6), [table_a, table_b]) == [4, 2]


def test_fill_falls_back_to_what_fits() -> None:
    # 1 device each; A gains at 2 and at 5. With two free devices only the first gain fits.
    stairs = (10.0, 12.0, 12.0, 12.0, 14.0)
    assert granted(FILL, state_of([A], 3), [stairs]) == [2]
    assert granted(FILL, state_of([A], 5), [stairs]) == [5]


def test_fill_recounts_what_the_others_need_when_less_is_free() -> None:
    # Four free after step 1. B needs 2 and is served; A wanted 4, of the 2 that are left it can use one.
    table_a, table_b = (10.0, 10.1, 10.1, 10.1, 10.2), (10.0, 10.0, 10.1)
    assert granted(FILL, state_of([A, B], 6), [table_a, table_b]) == [2, 3]


def test_quotas_hold_in_both_steps_and_block_nobody_else() -> None:
    jobs = [job("a", 1000.0, queue="q"), job("b", 2000.0, queue="q"), job("c", 9000.0)]
    assert granted(FILL, state_of(jobs, 32, {"q": 7}), [TABLE] * 3) == [5, 2, 7]
    assert granted(FILL, state_of(jobs[:1], 32, {"q": 6}), [TABLE]) == [6]
    assert granted(FILL, state_of(jobs, 32, {"q": 0}), [TABLE] * 3) == [0, 0, 7]


def test_a_quota_is_shared_between_pools_while_filling() -> None:
    # One device each; a takes 1 of the 3 that the quota leaves, so b's step of 3 no longer fits and its step of 2 does.
    jobs = [job("a", queue="q"), job("b", 2000.0, queue="q", allowed_pools=(1,))]
    tables: list[Rates] = [{0: (10.0, 11.0)}, {1: (10.0, 10.0, 10.1, 10.2)}]
    assert granted(NO_FILL, state_of(jobs, (8, 8), {"q": 5}), tables) == [1, 1]
    assert granted(FILL, state_of(jobs, (8, 8), {"q": 5}), tables) == [2, 3]


def test_a_job_without_a_curve_gets_nothing_and_blocks_nobody() -> None:
    assert granted(FILL, state_of([A, B], 8), [(), TABLE]) == [0, 7]
    assert granted(FILL, state_of([A, B], 8), [(), ()]) == [0, 0]
    assert granted(FILL, state_of([], 8), []) == []


def test_an_exhausted_budget_keeps_what_was_granted() -> None:
    nothing = decided(FILL, state_of([A, B], 12), [TABLE, TABLE], Clock(looks=0))
    assert not nothing.complete
    assert [grant.devices for grant in nothing.grants] == [0, 0]
    scheduled = decided(FILL, state_of([A, B], 12), [TABLE, TABLE], Clock(looks=1))
    assert not scheduled.complete
    assert [grant.devices for grant in scheduled.grants] == [5, 5]
