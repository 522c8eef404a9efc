"""Policies on random clusters: the heap form is the rule, nothing is oversubscribed, work is conserved."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from schedules import GRANTING, POLICIES, Clock, Instance, Rates, curves_of, instances, job, with_defaults

from nodewise.domain.schedule import Allocation, ClusterState, CurrentAllocation, Grant
from nodewise_policies.efficiency import ratios
from nodewise_policies.sharing import Candidates, comparable, remaining_s


class Naive:
    """The rule as written: scan every job and count in every step."""

    def __init__(self, state: ClusterState, tables: list[Rates]) -> None:
        self.state, self.curves = state, curves_of(tables)
        self.ratio = ratios(
            state, self.curves, Candidates(self.curves), remaining_s(state, self.curves, restarts=False)
        )
        self.rates = comparable(self.curves.samples_per_s)
        self.free = [pool.total_devices for pool in state.pools]
        self.quota = dict(state.quotas)
        self.grants = [Grant(0)] * len(state.jobs)

    def rows(self, index: int) -> list[int]:
        found = self.curves.rows(index)
        return list(range(found.start, found.stop))

    def room(self, index: int, pool: int) -> int:
        queue = self.state.jobs[index].queue
        return min(self.free[pool], self.quota.get(queue, 10**6))

    def take(self, index: int, pool: int, devices: int, cost: int) -> None:
        queue = self.state.jobs[index].queue
        self.free[pool] -= cost
        if queue in self.quota:
            self.quota[queue] -= cost
        self.grants[index] = Grant(devices, pool)

    def schedule(self) -> None:
        while True:
            choices = []
            for index, asker in enumerate(self.state.jobs):
                if self.grants[index].devices:
                    continue
                for row in self.rows(index):
                    pool, count = int(self.curves.pool[row]), int(self.curves.devices[row])
                    if count + asker.server_devices <= self.room(index, pool):
                        key = (self.ratio[row], asker.submit_time_s, asker.job_id, count, pool)
                        choices.append((key, index, pool, count))
            if not choices:
                return
            _, index, pool, count = min(choices)
            self.take(index, pool, count, count + self.state.jobs[index].server_devices)

    def fill(self) -> None:
        waiting = {index for index, grant in enumerate(self.grants) if grant.devices}
        while waiting:
            choices = []
            for index in waiting:
                held, asker = self.grants[index], self.state.jobs[index]
                extras = [
                    (-self.rates[row], int(self.curves.devices[row]) - held.devices)
                    for row in self.rows(index)
                    if self.curves.pool[row] == held.pool
                    and 0 <= self.curves.devices[row] - held.devices <= self.room(index, held.pool)
                ]
                choices.append((min(extras)[1], asker.submit_time_s, asker.job_id, index))
            extra, _, _, index = min(choices)
            held = self.grants[index]
            self.take(index, held.pool, held.devices + extra, extra)
            waiting.remove(index)


def decide(name: str, state: ClusterState, tables: list[Rates]) -> Allocation:
    answer = POLICIES[name].record.policy.decide(with_defaults(name, state), curves_of(tables), Clock())
    assert isinstance(answer, Allocation)
    return answer


def what(answer: Allocation) -> list[tuple[int, int]]:
    return [(grant.devices, grant.pool) for grant in answer.grants]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(instances())
def test_the_heap_form_is_the_naive_form(instance: Instance) -> None:
    naive = Naive(*instance)
    naive.schedule()
    assert what(decide("efficiency-srpt", *instance)) == [(grant.devices, grant.pool) for grant in naive.grants]
    naive.fill()
    assert what(decide("efficiency-srpt-fill", *instance)) == [(grant.devices, grant.pool) for grant in naive.grants]


@pytest.mark.parametrize("name", GRANTING)
@settings(max_examples=16, derandomize=True, deadline=None)
@given(instance=instances(), seed=st.integers(0, 2**16))
def test_grants_are_feasible_deterministic_and_free_of_the_jobs_order(name: str, instance: Instance, seed: int) -> None:
    state, tables = instance
    answer = decide(name, state, tables)
    assert decide(name, state, tables) == answer
    free = [pool.total_devices for pool in state.pools]
    quota = dict(state.quotas)
    curves = curves_of(tables)
    for index, (asker, grant) in enumerate(zip(state.jobs, answer.grants)):
        if grant.devices:
            rows = curves.rows(index)
            assert ((curves.pool[rows] == grant.pool) & (curves.devices[rows] == grant.devices)).any()
            free[grant.pool] -= grant.devices + asker.server_devices
            if asker.queue in quota:
                quota[asker.queue] -= grant.devices + asker.server_devices
    assert min(free) >= 0
    assert all(left >= 0 for left in quota.values())
    order = np.random.default_rng(seed).permutation(len(state.jobs)).tolist()
    shuffled = replace(state, jobs=tuple(state.jobs[index] for index in order))
    again = decide(name, shuffled, [tables[index] for index in order])
    assert [again.grants[order.index(index)] for index in range(len(order))] == list(answer.grants)


@pytest.mark.parametrize("name", GRANTING)
@settings(max_examples=16, derandomize=True, deadline=None)
@given(instance=instances())
def test_jobs_without_a_curve_change_nothing_for_the_others(name: str, instance: Instance) -> None:
    state, tables = instance
    ghosts = (job("0"), job("zz", queue="q", current=CurrentAllocation(pool=0, placement=((0, 1),))))
    haunted = replace(state, jobs=(*state.jobs, *ghosts))
    answer = decide(name, haunted, [*tables, (), ()])
    assert answer.grants[:-2] == decide(name, state, tables).grants
    assert [grant.devices for grant in answer.grants[-2:]] == [0, 0]


@settings(max_examples=120, derandomize=True, deadline=None)
@given(instances())
def test_filling_conserves_work(instance: Instance) -> None:
    """When the fill is done, no job can be started, and none can be made faster, with what is left."""
    state, tables = instance
    curves = curves_of(tables)
    answer = decide("efficiency-srpt-fill", state, tables)
    free = [pool.total_devices for pool in state.pools]
    quota = dict(state.quotas)
    for asker, grant in zip(state.jobs, answer.grants):
        if grant.devices:
            free[grant.pool] -= grant.devices + asker.server_devices
            if asker.queue in quota:
                quota[asker.queue] -= grant.devices + asker.server_devices
    for index, (asker, grant) in enumerate(zip(state.jobs, answer.grants)):
        rows = curves.rows(index)
        for pool, count, rate in zip(curves.pool[rows], curves.devices[rows], curves.samples_per_s[rows]):
            room = min(free[pool], quota.get(asker.queue, 10**6))
            if not grant.devices:
                assert count + asker.server_devices > room
            elif pool == grant.pool and count > grant.devices:
                held = curves.samples_per_s[rows][(curves.pool[rows] == pool) & (curves.devices[rows] == grant.devices)]
                assert count - grant.devices > room or rate <= held[0]
