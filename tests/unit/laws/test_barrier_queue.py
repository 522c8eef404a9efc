"""Rounds whose uploads queue in the order in which workers finish."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise_laws import barrier_round_queued, expected_maximum_gamma

WORKERS = np.arange(1, 301)


def simulated(workers: int, exchange_s: float, cv: float, rounds: int = 40_000) -> float:
    """Mean end of the last exchange by following each one, compute of mean 1."""
    generator = np.random.default_rng(7)
    finish = np.sort(generator.gamma(1 / cv**2, cv**2, size=(rounds, workers)), axis=1)
    free = np.zeros(rounds)
    for column in finish.T:
        free = np.maximum(free, column) + exchange_s
    return float(free.mean())


@pytest.mark.parametrize("workers", [2, 4, 12, 40])
@pytest.mark.parametrize("exchange_s", [0.01, 0.1, 0.5])
@pytest.mark.parametrize("cv", [0.1, 0.4, 1.0])
def test_a_simulation_of_the_queue_agrees(workers: int, exchange_s: float, cv: float) -> None:
    law = barrier_round_queued([workers], download_s=0.0, exchange_s=exchange_s, compute_s=1.0, compute_cv=cv)
    assert law.round_s[0] == pytest.approx(simulated(workers, exchange_s, cv), rel=0.015)


@pytest.mark.parametrize("workers", [129, 200, 400])
@pytest.mark.parametrize("exchange_s", [0.0005, 0.003, 0.05])
def test_many_workers_are_near_a_simulation(workers: int, exchange_s: float) -> None:
    law = barrier_round_queued([workers], download_s=0.0, exchange_s=exchange_s, compute_s=1.0, compute_cv=0.4)
    assert law.round_s[0] == pytest.approx(simulated(workers, exchange_s, 0.4, 5_000), rel=0.02)


def test_without_exchange_it_is_the_expected_maximum() -> None:
    law = barrier_round_queued(WORKERS, download_s=0.0, exchange_s=0.0, compute_s=2.0, compute_cv=0.3)
    np.testing.assert_allclose(law.round_s, expected_maximum_gamma(2.0, 0.3, WORKERS), rtol=0.006)
    np.testing.assert_array_equal(law.round_s, law.slowest_compute_s)


def test_one_worker_is_exact() -> None:
    law = barrier_round_queued([1], download_s=0.1, exchange_s=0.2, compute_s=0.5, compute_cv=0.7)
    assert law.round_s[0] == pytest.approx(0.8, rel=1e-15)


def test_constant_times_overlap_nothing() -> None:
    law = barrier_round_queued(WORKERS, download_s=0.1, exchange_s=0.2, compute_s=0.5, compute_cv=0.0)
    one_after_the_other = WORKERS * (0.1 + 0.2) + 0.5
    np.testing.assert_allclose(law.round_s, one_after_the_other, rtol=1e-12)


@pytest.mark.parametrize("cv", [0.0, 1e-4, 0.3, 1.0, 5.0])
def test_more_workers_never_shorten_a_round(cv: float) -> None:
    law = barrier_round_queued(WORKERS, download_s=0.0, exchange_s=0.004, compute_s=1.0, compute_cv=cv)
    assert np.all(np.diff(law.round_s) > 0.0)
    assert np.all(np.diff(law.slowest_compute_s) >= 0.0)


def test_a_question_does_not_depend_on_its_neighbours() -> None:
    together = barrier_round_queued(WORKERS, download_s=0.0, exchange_s=0.01, compute_s=1.0, compute_cv=0.3)
    alone = barrier_round_queued([200], download_s=0.0, exchange_s=0.01, compute_s=1.0, compute_cv=0.3)
    assert alone.round_s[0] == together.round_s[199]


@pytest.mark.parametrize(
    "wrong",
    [{"workers": [0]}, {"workers": [1.5]}, {"exchange_s": -1.0}, {"compute_s": float("nan")}, {"compute_cv": 11.0}],
)
def test_impossible_arguments_are_named(wrong: dict[str, object]) -> None:
    arguments = {"workers": [2], "download_s": 0.1, "exchange_s": 0.1, "compute_s": 0.1, "compute_cv": 0.1, **wrong}
    with pytest.raises(ValueError, match=next(iter(wrong))):
        barrier_round_queued(**arguments)
