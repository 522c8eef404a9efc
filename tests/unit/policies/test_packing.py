"""First come, first served, with two jobs on a device where that does more."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from schedules import Clock, Rates, curves_of, decided, job, state_of

from nodewise.domain.columns import as_ints, freeze
from nodewise.domain.schedule import ClusterState, CurrentAllocation, Grant, JobState
from nodewise.domain.shared_pairs import SharedPairs
from nodewise.hosting.calls import ImpossibleAnswerError
from nodewise.scheduling.packing import hosts_of

ONE: Rates = [1.0]
TOTALS = np.array([[1.2, 1.6, 0.9], [1.6, 1.4, 1.1], [0.9, 1.1, 1.8]])
"""Of kinds 0, 1 and 2, half of it each."""


def sharing(state: ClusterState, *kinds: int) -> ClusterState:
    tables = tuple(freeze(TOTALS / 2) for _ in state.pools)
    return replace(state, sharing=SharedPairs(kinds=as_ints(kinds), shares=tables))


def jobs_of(*names: str, **stated: object) -> list[JobState]:
    return [job(name, submitted=float(place), **stated) for place, name in enumerate(names)]


def running(name: str, beside: str = "", pool: int = 0, submitted: float = 0.0, **stated: object) -> JobState:
    current = CurrentAllocation(pool=pool, placement=((0, 1),), age_s=9.0, shares_with=beside)
    return job(name, submitted=submitted, current=current, **stated)


def grants(state: ClusterState, *tables: Rates, clock: Clock | None = None) -> list[tuple[int, int]]:
    """Devices of each job, and beside whom."""
    tables = tables or (ONE,) * len(state.jobs)
    found = decided("packing", state, tables, clock).grants
    hosts_of(found, state.jobs, state.sharing)
    return [(each.devices, each.shares_with) for each in found]


def test_who_finds_no_device_goes_beside_whom_the_total_is_greatest_with() -> None:
    state = sharing(state_of(jobs_of("a", "b", "c", "d"), 2), 0, 1, 1, 2)
    # c: 1.6 beside a, 1.4 beside b. d: 1.1 beside b, and a is taken.
    assert grants(state) == [(1, -1), (1, -1), (1, 0), (1, 1)]


def test_a_total_of_no_more_than_one_is_not_worth_it() -> None:
    assert grants(sharing(state_of(jobs_of("a", "b"), 1), 0, 2)) == [(1, -1), (0, -1)]
    assert grants(sharing(state_of(jobs_of("a", "b"), 1, parameters={"least_total": 1.6}), 0, 1))[1] == (0, -1)
    assert grants(sharing(state_of(jobs_of("a", "b"), 1, parameters={"least_share": 0.81}), 0, 1))[1] == (0, -1)
    assert grants(sharing(state_of(jobs_of("a", "b"), 1, parameters={"pack": 0.0}), 0, 1))[1] == (0, -1)


def test_without_pairs_it_is_first_come_first_served_with_backfill() -> None:
    jobs = jobs_of("a", "b", "c")
    two = [replace(jobs[1], requested_devices=2)]
    assert grants(state_of([jobs[0], *two, jobs[2]], 2), ONE, [1.0, 2.0], ONE) == [(1, -1), (0, -1), (1, -1)]


def test_free_devices_come_before_shared_ones() -> None:
    assert grants(sharing(state_of(jobs_of("a", "b"), 2), 0, 1)) == [(1, -1), (1, -1)]


def test_nobody_who_runs_is_stopped_for_who_came_earlier() -> None:
    state = sharing(state_of([job("a", submitted=0.0), running("b", submitted=1.0)], 1), 0, 2)
    assert grants(state) == [(0, -1), (1, -1)]


def test_pairs_that_run_stay_together_while_no_device_is_free() -> None:
    jobs = [running("a", "b"), running("b", "a", submitted=1.0), job("c", submitted=2.0)]
    assert grants(sharing(state_of(jobs, 1), 0, 1, 1)) == [(1, -1), (1, 0), (0, -1)]


def test_pairs_part_onto_free_devices_where_the_restart_pays() -> None:
    def pair(cost_s: float) -> ClusterState:
        leaver = running("b", "a", submitted=1.0, restart_cost_s=cost_s)
        return sharing(state_of([running("a", "b"), replace(leaver, remaining_samples=80.0)], 2), 0, 1)

    # 80 samples at 0.8 take 100 s, alone 80 s.
    assert grants(pair(19.0)) == [(1, -1), (1, -1)]
    assert grants(pair(21.0)) == [(1, -1), (1, 0)]


def test_jobs_of_more_devices_or_with_servers_do_not_share() -> None:
    wide = [replace(each, requested_devices=2) for each in jobs_of("a", "b")]
    assert grants(sharing(state_of(wide, 2), 0, 1), [1.0, 2.0], [1.0, 2.0]) == [(2, -1), (0, -1)]
    served = jobs_of("a", "b", server_devices=1)
    assert grants(sharing(state_of(served, 2), 0, 1)) == [(1, -1), (0, -1)]


def test_a_quota_counts_who_shares() -> None:
    state = sharing(state_of(jobs_of("a", "b", queue="q"), 1, {"q": 1}), 0, 1)
    assert grants(state) == [(1, -1), (0, -1)]
    assert grants(replace(state, quotas={"q": 2})) == [(1, -1), (1, 0)]


def test_pairs_are_of_one_pool() -> None:
    jobs = [job("a", allowed_pools=(0,)), job("b", submitted=1.0, allowed_pools=(1,))]
    state = sharing(state_of([*jobs, job("c", submitted=2.0, allowed_pools=(1,))], (1, 1)), 0, 1, 1)
    assert grants(state, {0: [1.0]}, {1: [1.0]}, {1: [1.0]}) == [(1, -1), (1, -1), (1, 1)]


@pytest.mark.parametrize("looks", [0, 1])
def test_what_was_granted_when_the_time_is_over_stands(looks: float) -> None:
    state = sharing(state_of([running("a"), *jobs_of("b", "c")], 1), 0, 1, 1)
    found = decided("packing", state, [ONE] * 3, Clock(looks))
    assert found.complete is False
    assert found.grants[0].devices == 1
    assert found.grants[1:] == (Grant(0), Grant(0))


def test_a_long_queue_of_one_kind_is_looked_through_once() -> None:
    """Hosts that pair with nobody, and thousands that wait."""
    names = [f"{number:05d}" for number in range(3000)]
    state = sharing(state_of(jobs_of(*names), 50), *([0] * 50 + [2] * 2950))
    clock = Clock()
    found = decided("packing", state, [ONE] * 3000, clock)
    assert sum(each.devices for each in found.grants) == 50
    assert len(curves_of([ONE]).devices) == 1


def test_a_pair_that_the_request_does_not_list_cannot_share() -> None:
    state = state_of(jobs_of("a", "b"), 1)
    unlisted = SharedPairs(kinds=as_ints([0, 1]), shares=(freeze(np.zeros((2, 2))),))
    with pytest.raises(ImpossibleAnswerError) as caught:
        hosts_of((Grant(1, 0), Grant(1, 0, "", 0)), state.jobs, unlisted)
    assert str(caught.value) == "it granted 'b' a share of the device of 'a': shared_pairs does not list the pair"
