"""Shares of time: the published optima, and what rounds make of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from schedules import POLICIES, Clock, Rates, curves_of, job, state_of, with_defaults

from nodewise.domain.schedule import ClusterState, Shares
from nodewise.plugin import Floats
from nodewise_policies.max_min_program import greatest_least_value

THROUGHPUTS = ((4.0, 1.0), (2.0, 1.0), (1.0, 1.0))


def shares_of(name: str, state: ClusterState, tables: Sequence[Rates], budget: Clock | None = None) -> Shares:
    answer = POLICIES[name].record.policy.decide(with_defaults(name, state), curves_of(tables), budget or Clock())
    assert isinstance(answer, Shares)
    return answer


def golden(weights: Sequence[float], devices: Sequence[int], workers: int) -> tuple[Floats, float]:
    """Shares of the published example, and the least normalised throughput that they give."""
    jobs = [
        job(f"j{index}", weight=weight, requested_devices=count, allowed_pools=(0, 1))
        for index, (weight, count) in enumerate(zip(weights, devices))
    ]
    tables = [
        {pool: [0.0] * (count - 1) + [rate] for pool, rate in enumerate(rates)}
        for count, rates in zip(devices, THROUGHPUTS)
    ]
    found = shares_of("max-min-fairness-aware", state_of(jobs, (workers, workers)), tables).shares
    proportional = np.mean(THROUGHPUTS, axis=1)
    terms = (np.array(THROUGHPUTS) * found).sum(axis=1) * np.array(devices) / (np.array(weights) * proportional)
    return found, float(terms.min())


@pytest.mark.parametrize(
    ("weights", "devices", "workers", "optimum"),
    [((1, 1, 1), (1, 1, 1), 1, 0.8), ((2, 1, 1), (1, 1, 1), 1, 0.6), ((1, 1, 1), (1, 1, 2), 2, 4 / 3)],
)
def test_published_optima(weights: list[float], devices: list[int], workers: int, optimum: float) -> None:
    shares, least = golden(weights, devices, workers)
    assert least == pytest.approx(optimum, abs=1e-6)
    assert (shares.sum(axis=1) <= 1 + 1e-9).all()
    assert (np.array(devices) @ shares <= workers + 1e-9).all()


def test_published_shares() -> None:
    shares, _ = golden((1, 1, 1), (1, 1, 1), 1)
    np.testing.assert_allclose(shares, [[0.5, 0], [0.5, 0.2], [0, 0.8]], atol=1e-6)


def test_plain_fairness_knows_no_throughputs() -> None:
    jobs = [job("a", allowed_pools=(0, 1)), job("b", weight=2.0, allowed_pools=(0, 1))]
    tables: list[Rates] = [{0: [9.0], 1: [1.0]}, {0: [1.0], 1: [1.0]}]
    answer = shares_of("max-min-fairness", state_of(jobs, (1, 0)), [{0: [9.0]}, {0: [1.0]}])
    np.testing.assert_allclose(answer.shares[:, 0], [1 / 3, 2 / 3], atol=1e-6)
    assert answer.shuffle_seed == 0
    swapped: list[Rates] = [{0: [1.0], 1: [9.0]}, {0: [1.0], 1: [1.0]}]
    state = state_of(jobs, (1, 1))
    np.testing.assert_allclose(
        shares_of("max-min-fairness", state, tables).shares, shares_of("max-min-fairness", state, swapped).shares
    )


def test_the_makespan_is_that_of_the_programme() -> None:
    # Two jobs of 10 and 30 samples at 1 sample/s share one device: done together after 40 s.
    answer = shares_of("min-makespan-aware", state_of([job("a", 10.0), job("b", 30.0)], 1), [[1.0], [1.0]])
    np.testing.assert_allclose(answer.shares[:, 0], [0.25, 0.75], atol=1e-6)


def test_quotas_bound_the_shares_of_a_queue() -> None:
    jobs = [job("a", queue="q"), job("b", queue="q"), job("c")]
    answer = shares_of("max-min-fairness", state_of(jobs, 4, {"q": 1}), [[1.0]] * 3)
    assert answer.shares[:2].sum() == pytest.approx(1.0, abs=1e-6)
    assert answer.shares[2, 0] >= 0.5 - 1e-6


def test_jobs_that_are_alike_get_alike_shares() -> None:
    jobs = [job(f"{index}") for index in range(7)]
    shares = shares_of("max-min-fairness-aware", state_of(jobs, 3), [[1.0]] * 7).shares
    np.testing.assert_allclose(shares[:, 0], 3 / 7, atol=1e-6)


@pytest.mark.parametrize("name", ["max-min-fairness", "max-min-fairness-aware", "min-makespan-aware"])
def test_a_job_that_can_run_nowhere_holds_back_nobody(name: str) -> None:
    jobs = [job("a"), job("b", requested_devices=3), job("c")]
    answer = shares_of(name, state_of(jobs, 4), [[1.0], [1.0], ()])
    np.testing.assert_allclose(answer.shares[:, 0], [1.0, 0.0, 0.0], atol=1e-6)
    nothing = shares_of(name, state_of([], 4), [])
    assert nothing.shares.shape == (0, 1)


@pytest.mark.parametrize("name", ["max-min-fairness", "max-min-fairness-aware", "min-makespan-aware"])
def test_without_time_the_answer_is_an_equal_split(name: str) -> None:
    jobs = [job("a", allowed_pools=(0, 1)), job("b", allowed_pools=(0, 1))]
    answer = shares_of(name, state_of(jobs, (1, 1)), [{0: [1.0], 1: [2.0]}] * 2, Clock(looks=0))
    assert not answer.complete
    assert (answer.shares == 0.5).all()


def test_the_programme_says_when_the_time_ran_out() -> None:
    values = np.ones((1, 1))
    assert greatest_least_value(state_of([job("a")], 1), values, values.astype(int), Clock(looks=0)) is None
