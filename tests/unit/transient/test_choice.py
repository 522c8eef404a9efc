"""Choosing: policies over time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nodewise_transient.deadlines import Deadline, Rule, availability_states, learn_chain, plan, play_rule

TICK_S = 600.0
JOB = Deadline(work_s=24 * 3600.0, deadline_s=36 * 3600.0, switch_s=300.0, spot_share=0.3, tick_s=TICK_S)


def record(up_h: float, down_h: float, ticks: int = 5000, seed: int = 0) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Availability of runs with constant chances of ending."""
    rng = np.random.default_rng(seed)
    has, found = True, []
    for _ in range(ticks):
        found.append(float(has))
        has = has ^ (rng.random() < TICK_S / 3600.0 / (up_h if has else down_h))
    return availability_states(np.array(found), TICK_S)


@pytest.mark.parametrize(("up_h", "down_h"), [(1.0, 3.0), (2.0, 2.0), (8.0, 1.0)])
def test_the_plan_beats_the_fixed_rules_and_nobody_is_late(up_h: float, down_h: float) -> None:
    chain = learn_chain(record(up_h, down_h, seed=1), TICK_S)
    states = record(up_h, down_h)
    starts = np.random.default_rng(2).integers(0, len(states) - JOB.span, 500)
    rules: tuple[Rule, ...] = ("on-demand", "greedy", "uniform-progress")
    played = {rule: play_rule(JOB, states, starts, rule) for rule in rules}
    played["timed"] = play_rule(JOB, states, starts, "timed", until_s=18 * 3600.0)
    planned = play_rule(JOB, states, starts, "planned", table=plan(JOB, chain))
    assert planned.cost.mean() < min(each.cost.mean() for each in played.values())
    for each in (*played.values(), planned):
        assert each.end_s.max() <= JOB.deadline_s + 1e-6
        cost = (each.on_demand_s + 0.3 * each.spot_s) / (JOB.work_s + JOB.switch_s)
        np.testing.assert_allclose(each.cost, cost)
    np.testing.assert_allclose(played["on-demand"].cost, 1.0)


def test_with_spot_all_the_time_all_of_it_is_spot() -> None:
    states = availability_states(np.ones(1000), TICK_S)
    for rule, table in (("greedy", None), ("planned", plan(JOB, learn_chain(states, TICK_S)))):
        played = play_rule(JOB, states, np.array([0, 300]), rule, table=table)  # type: ignore[arg-type]
        np.testing.assert_allclose(played.cost, 0.3, rtol=1e-9)
        np.testing.assert_allclose(played.end_s, 24 * 3600.0 + 300.0)


def test_without_spot_the_net_is_on_demand_in_time() -> None:
    states = availability_states(np.zeros(1000), TICK_S)
    played = play_rule(JOB, states, np.array([0]), "greedy")
    np.testing.assert_allclose(played.cost, 1.0)
    assert JOB.deadline_s - 2 * TICK_S < played.end_s[0] <= JOB.deadline_s


def test_chains_are_chances_and_ages_part_them() -> None:
    chain = learn_chain(record(2.0, 5.0), TICK_S)
    np.testing.assert_allclose(chain.chances.sum(axis=1), 1.0)
    states = availability_states(np.repeat([1.0, 0.0], [30, 100]), TICK_S)
    assert states[0] == chain.spots
    assert states[7] > states[0]
    assert states[30] == 0
    assert states[-1] == chain.spots - 1


def test_promises_that_on_demand_cannot_keep_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be met"):
        Deadline(work_s=3600.0, deadline_s=3600.0, switch_s=300.0, spot_share=0.3, tick_s=60.0)
    with pytest.raises(ValueError, match="plan must be given for the planned rule"):
        play_rule(JOB, record(1.0, 1.0), np.array([0]), "planned")
    assert math.isfinite(JOB.span)
