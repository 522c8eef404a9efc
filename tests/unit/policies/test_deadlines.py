"""Deadlines: the cheapest count in time, reservations, admission and best effort."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from schedules import TABLE, Rates, decided, granted, job, pool, state_of

from nodewise.domain.schedule import ClusterState
from nodewise_policies.timeline import Slot, Timeline

NAME = "deadline-aware"
STRAIGHT = [10.0 * count for count in range(1, 9)]


def fixed(state: ClusterState, tables: list[Rates]) -> list[int]:
    return granted(NAME, state, tables)


def test_the_cheapest_count_that_is_in_time() -> None:
    # 1000 samples: 100 s on one device, 33.3 s on three. Costs rise with the count, so the fewest in time is cheapest;
    # the best-effort job gets what is left.
    urgent = job("a", 1000.0, deadline_s=60.0)
    other = job("b", 1e7, 1.0)
    assert fixed(state_of([urgent, other], 6), [TABLE, [10.0, 11.0, 12.0, 13.0]])[0] >= 2
    tight = state_of([urgent, other], 3)
    assert fixed(tight, [TABLE, TABLE]) == [2, 1]
    late = job("a", 1000.0, deadline_s=30.0)
    assert fixed(state_of([late, other], 4), [TABLE, TABLE]) == [4, 0]


def test_price_decides_between_pools_where_it_is_known() -> None:
    state = state_of([job("a", 1000.0, deadline_s=1000.0, allowed_pools=(0, 1))], (1, 1))
    tables: list[Rates] = [{0: [10.0], 1: [12.0]}]
    assert decided(NAME, state, tables).grants[0].pool == 1
    dear = (replace(pool("x", 1), price_per_node_hour=1.0), replace(pool("y", 1), price_per_node_hour=2.0))
    assert decided(NAME, replace(state, pools=dear), tables).grants[0].pool == 0


def test_a_deadline_that_cannot_be_met_is_best_effort_and_told() -> None:
    hopeless = job("a", 1e6, deadline_s=10.0)
    answer = decided(NAME, state_of([hopeless], 8), [TABLE])
    assert answer.grants[0].devices == 7
    assert "cannot meet its deadline" in answer.grants[0].why
    assert answer.memory == b""


def test_an_admitted_job_is_not_displaced_by_a_later_one() -> None:
    # One device: the first takes 100 s of its 120. The newcomer has the earlier deadline, and would push it out.
    first = job("a", 1000.0, deadline_s=120.0)
    admitted = decided(NAME, state_of([first], 1), [[10.0]])
    assert admitted.grants[0].devices == 1
    newcomer = job("b", 500.0, 1.0, deadline_s=60.0)
    both = replace(state_of([first, newcomer], 1), memory=admitted.memory)
    assert granted(NAME, both, [[10.0], [10.0]]) == [1, 0]
    assert granted(NAME, replace(both, memory=b""), [[10.0], [10.0]]) == [0, 1]


def test_a_job_that_is_in_time_later_waits_and_lends_its_devices() -> None:
    soon = job("a", 500.0, deadline_s=50.0)
    later = job("b", 500.0, deadline_s=100.0)
    answer = decided(NAME, state_of([soon, later], 1), [[10.0], [10.0]])
    assert [grant.devices for grant in answer.grants] == [1, 0]
    assert len(answer.memory) == 16
    too_late = replace(later, deadline_s=99.0)
    assert len(decided(NAME, state_of([soon, too_late], 1), [[10.0], [10.0]]).memory) == 8


def test_slack_keeps_time_in_hand() -> None:
    jobs = [job("a", 1000.0, deadline_s=100.0), job("b", 1e9)]
    assert granted(NAME, state_of(jobs, 2), [STRAIGHT, STRAIGHT]) == [1, 1]
    assert granted(NAME, state_of(jobs, 2, parameters={"slack": 0.5}), [STRAIGHT, STRAIGHT]) == [2, 0]


def test_quotas_are_reserved_over_time_as_well() -> None:
    jobs = [job("a", 500.0, deadline_s=50.0, queue="q"), job("b", 500.0, deadline_s=60.0, queue="q")]
    answer = decided(NAME, state_of(jobs, 2, {"q": 1}), [[10.0], [10.0]])
    assert [grant.devices for grant in answer.grants] == [1, 0]
    assert len(answer.memory) == 8


def test_the_timeline_finds_the_earliest_gap_that_lasts() -> None:
    timeline = Timeline([4])
    timeline.reserve([0], 3, 0.0, 10.0)
    timeline.reserve([0], 4, 15.0, 10.0)
    devices, seconds, cost = np.array([1, 2]), np.array([12.0, 5.0]), np.array([1.0, 2.0])
    assert timeline.earliest([0], devices, seconds, cost, 100.0) == Slot(0, 0.0)
    assert timeline.earliest([0], devices[1:], seconds[1:], cost[1:], 100.0) == Slot(0, 10.0)
    assert timeline.earliest([0], np.array([2]), np.array([6.0]), cost[:1], 100.0) == Slot(0, 25.0)
    assert timeline.earliest([0], np.array([2]), np.array([6.0]), cost[:1], 30.0) is None
    assert timeline.earliest([0], np.array([5]), np.array([6.0]), cost[:1], 300.0) is None
