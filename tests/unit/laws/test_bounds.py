"""Bounds and closed forms at points that can be computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from queueing_truths import erlang_finite_source

from nodewise_laws import asymptotic_bounds, balanced_job_bounds, knee_population


def test_asymptotic_bounds_by_hand() -> None:
    bounds = asymptotic_bounds((0.1, 0.15), 0.5, [1, 2, 10])
    np.testing.assert_allclose(bounds.upper_per_s, (1 / 0.75, 2 / 0.75, 1 / 0.15))
    np.testing.assert_allclose(bounds.lower_per_s, (1 / 0.75, 2 / 1.0, 10 / 3.0))


def test_balanced_job_bounds_by_hand() -> None:
    bounds = balanced_job_bounds((0.1, 0.15), 0.5, 2)
    assert bounds.upper_per_s == pytest.approx(2 / (0.75 + 0.125 / (1 + 0.5 / 0.25)))
    assert bounds.lower_per_s == pytest.approx(2 / (0.75 + 0.15 / (1 + 0.5 / 0.5)))


def test_unused_stations_do_not_loosen_the_balanced_job_bound() -> None:
    with_it = balanced_job_bounds((0.1, 0.0, 0.15, 0.0), 0.5, 4)
    without = balanced_job_bounds((0.1, 0.15), 0.5, 4)
    assert with_it.upper_per_s == without.upper_per_s
    assert with_it.lower_per_s == without.lower_per_s


@pytest.mark.parametrize("bounds_of", [asymptotic_bounds, balanced_job_bounds])
def test_without_demand_both_bounds_are_linear(bounds_of: object) -> None:
    assert callable(bounds_of)
    bounds = bounds_of((0.0, 0.0), 0.5, [1, 8])
    np.testing.assert_allclose(bounds.lower_per_s, (2.0, 16.0))
    np.testing.assert_allclose(bounds.upper_per_s, (2.0, 16.0))


def test_families_of_networks_broadcast_against_populations() -> None:
    demands, think = np.array([[0.1, 0.2], [0.3, 0.0]]), np.array([0.5, 0.0])
    bounds = balanced_job_bounds(demands[:, np.newaxis, :], think[:, np.newaxis], np.arange(1, 5))
    assert bounds.lower_per_s.shape == bounds.upper_per_s.shape == (2, 4)
    alone = balanced_job_bounds(demands[1], think[1], np.arange(1, 5))
    np.testing.assert_allclose(bounds.upper_per_s[1], alone.upper_per_s)


def test_knee_population() -> None:
    assert knee_population((0.1, 0.15), 0.5) == pytest.approx(5.0)
    assert knee_population((0.0,), 0.5) == math.inf
    np.testing.assert_allclose(knee_population([[0.1, 0.15], [0.2, 0.2]], [0.5, 0.0]), (5.0, 2.0))


def test_erlang_reproduces_the_golden_value_and_the_sum_it_stands_for() -> None:
    curve = erlang_finite_source(0.15, 0.5, 6)
    assert curve[-1] == pytest.approx(6.188100, abs=5e-7)
    for customers, throughput in enumerate(curve, start=1):
        terms = [math.perm(customers, k) * (0.15 / 0.5) ** k for k in range(customers + 1)]
        assert throughput == pytest.approx((1.0 - 1.0 / sum(terms)) / 0.15, rel=1e-12)


def test_erlang_without_thinking_is_the_service_rate() -> None:
    np.testing.assert_allclose(erlang_finite_source(0.2, 0.0, 3), 5.0)


def test_erlang_keeps_its_digits_at_any_load() -> None:
    assert erlang_finite_source(1e-12, 1.0, 2)[-1] == pytest.approx(2.0, rel=1e-11)
    assert erlang_finite_source(1.0, 1e-12, 500)[-1] == pytest.approx(1.0, rel=1e-11)


@pytest.mark.parametrize(
    ("demands_s", "think_s", "population", "message"),
    [
        ((), 0.5, 1, "demands_s must have at least one station"),
        (0.1, 0.5, 1, "demands_s must have at least one station"),
        ((-0.1,), 0.5, 1, "demands_s must be finite and at least 0"),
        ((0.1,), float("nan"), 1, "think_s must be finite and at least 0"),
        ((0.1,), 0.5, 0, "population must be whole numbers at least 1"),
        ((0.1,), 0.5, 1.5, "population must be whole numbers at least 1"),
        ((0.1,), [0.5, 0.5], [1, 2, 3], r"broadcast together, got demands_s \(\), think_s \(2,\)"),
        ((0.0,), 0.0, 1, "more than 0 seconds"),
    ],
)
def test_names_the_argument_that_is_wrong(demands_s: object, think_s: object, population: object, message: str) -> None:
    for bounds_of in (asymptotic_bounds, balanced_job_bounds):
        with pytest.raises(ValueError, match=message):
            bounds_of(demands_s, think_s, population)  # type: ignore[arg-type]
