"""Each rule's own promise on random clusters: optimal where it says so, nothing idle that someone could use."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from schedules import (
    POLICIES,
    SHARING_TIME,
    Clock,
    Instance,
    Rates,
    curves_of,
    decided,
    granted,
    instances,
    job,
    state_of,
    with_defaults,
)

from nodewise.domain.schedule import ClusterState, Shares
from nodewise_policies.max_min_program import greatest_least_value

CONCAVE = st.lists(st.floats(0.1, 5.0), min_size=1, max_size=5).map(
    lambda steps: np.cumsum(sorted(steps, reverse=True)).tolist()
)


def left_over(state: ClusterState, grants: list[tuple[int, int]]) -> tuple[list[int], dict[str, int]]:
    free, quota = [pool.total_devices for pool in state.pools], dict(state.quotas)
    for asker, (devices, pool) in zip(state.jobs, grants):
        if devices:
            free[pool] -= devices + asker.server_devices
            if asker.queue in quota:
                quota[asker.queue] -= devices + asker.server_devices
    return free, quota


@pytest.mark.parametrize("name", ["efficiency-capped", "marginal-gain", "goodput", "deadline-aware"])
@settings(max_examples=24, derandomize=True, deadline=None)
@given(instances())
def test_nothing_stays_free_that_would_start_or_speed_up_a_job(name: str, instance: Instance) -> None:
    state, tables = instance
    curves = curves_of(tables)
    found = decided(name, state, tables).grants
    free, quota = left_over(state, [(grant.devices, grant.pool) for grant in found])
    for index, (asker, grant) in enumerate(zip(state.jobs, found)):
        rows = curves.rows(index)
        for pool, count, rate in zip(curves.pool[rows], curves.devices[rows], curves.samples_per_s[rows]):
            room = min(free[pool], quota.get(asker.queue, 10**6))
            if not grant.devices:
                assert count + asker.server_devices > room
            elif pool == grant.pool and count > grant.devices:
                held = curves.samples_per_s[rows][(curves.pool[rows] == pool) & (curves.devices[rows] == grant.devices)]
                assert count - grant.devices > room or rate <= held[0] * (1 + 1e-9)


@settings(max_examples=32, derandomize=True, deadline=None)
@given(st.lists(CONCAVE, min_size=1, max_size=3), st.integers(3, 9), st.data())
def test_marginal_gain_and_goodput_are_optimal_on_concave_curves(
    tables: list[list[float]], devices: int, data: st.DataObject
) -> None:
    """Remaining times and inverse speed-ups are convex there, so that the greedy ascent reaches the least sum."""
    sizes = [data.draw(st.floats(1.0, 100.0)) for _ in tables]
    jobs = [job(f"{index}", size, float(index)) for index, size in enumerate(sizes)]
    state = state_of(jobs, devices)
    choices = [counts for counts in product(*(range(1, len(table) + 1) for table in tables)) if sum(counts) <= devices]

    def remaining(counts: tuple[int, ...]) -> float:
        return sum(size / table[count - 1] for size, table, count in zip(sizes, tables, counts))

    def slowness(counts: tuple[int, ...]) -> float:
        fair = [table[max(min(int(devices / len(tables)), len(table)), 1) - 1] for table in tables]
        return sum(at_fair / table[count - 1] for at_fair, table, count in zip(fair, tables, counts))

    for name, objective in (("marginal-gain", remaining), ("goodput", slowness)):
        found = objective(tuple(granted(name, state, tables)))
        assert found <= min(map(objective, choices)) * (1 + 1e-6)


@settings(max_examples=32, derandomize=True, deadline=None)
@given(st.lists(st.lists(st.floats(0.5, 9.0), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 8))
def test_srpt_serves_the_least_remaining_time_of_all(tables: list[list[float]], devices: int) -> None:
    jobs = [job(f"{index}", 100.0, float(index)) for index in range(len(tables))]
    found = granted("srpt", state_of(jobs, devices), tables)
    served = min(100.0 / table[count - 1] for table, count in zip(tables, found) if count)
    assert served <= min(100.0 / rate for table in tables for rate in table[:devices]) * (1 + 1e-9)


@st.composite
def programmes(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[int]]:
    pools, jobs = draw(st.integers(1, 3)), draw(st.integers(1, 6))
    rates = st.sampled_from([0.0, 0.5, 1.0, 2.0, 5.0])
    values = np.array([[draw(rates) for _ in range(pools)] for _ in range(jobs)])
    devices = np.array([[draw(st.integers(1, 4))] * pools for _ in range(jobs)])
    return values, devices, [draw(st.integers(1, 6)) for _ in range(pools)]


def least(values: np.ndarray, shares: np.ndarray) -> float:
    listed = (values > 0).any(axis=1)
    return float((values * shares).sum(axis=1)[listed].min(initial=np.inf))


@settings(max_examples=32, derandomize=True, deadline=None)
@given(programmes(), st.integers(0, 2**16))
def test_the_programme_is_feasible_free_of_order_and_never_worse_with_more_devices(
    programme: tuple[np.ndarray, np.ndarray, list[int]], seed: int
) -> None:
    values, devices, sizes = programme
    jobs = [job(f"{index}") for index in range(len(values))]
    shares = greatest_least_value(state_of(jobs, sizes), values, devices, Clock())
    assert shares is not None
    assert (shares >= 0).all()
    assert (shares.sum(axis=1) <= 1 + 1e-7).all()
    assert ((shares * devices).sum(axis=0) <= np.array(sizes) + 1e-6).all()
    more = greatest_least_value(state_of(jobs, [size + 1 for size in sizes]), values, devices, Clock())
    assert more is not None
    assert least(values, more) >= least(values, shares) - 1e-7
    order = np.random.default_rng(seed).permutation(len(values))
    again = greatest_least_value(state_of(jobs, sizes), values[order], devices[order], Clock())
    assert again is not None
    np.testing.assert_allclose(again, shares[order], atol=1e-9)


@pytest.mark.parametrize("name", SHARING_TIME)
@settings(max_examples=10, derandomize=True, deadline=None)
@given(instances(), st.integers(0, 2**16))
def test_shares_do_not_depend_on_the_order_of_jobs(name: str, instance: Instance, seed: int) -> None:
    state, tables = instance

    def shares(state: ClusterState, tables: list[Rates]) -> np.ndarray:
        answer = POLICIES[name].record.policy.decide(with_defaults(name, state), curves_of(tables), Clock())
        assert isinstance(answer, Shares)
        return answer.shares

    order = np.random.default_rng(seed).permutation(len(state.jobs)).tolist()
    shuffled = replace(state, jobs=tuple(state.jobs[index] for index in order))
    found = shares(shuffled, [tables[index] for index in order])
    np.testing.assert_allclose(found, shares(state, tables)[order], atol=1e-9)
