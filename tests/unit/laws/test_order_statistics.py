"""Expected maxima against tables, closed forms and an independent quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from queueing_truths import expected_maximum, expected_maximum_exponential, expected_maximum_normal
from scipy import stats

from nodewise_laws import MAX_COEFFICIENT_OF_VARIATION, MAX_WORKERS, expected_maximum_gamma, maximum_cv_gamma

# Expected maximum of W standard normal variables (H. Leon Harter, Biometrika 48, 1961, to three decimals).
NORMAL_WORKERS = (2, 3, 4, 6, 8, 12, 16, 32, 64)
NORMAL_DEVIATIONS = (0.564, 0.846, 1.029, 1.267, 1.424, 1.629, 1.766, 2.070, 2.344)


def test_the_normal_truth_reproduces_the_published_table() -> None:
    deviations = [expected_maximum_normal(workers) for workers in NORMAL_WORKERS]
    np.testing.assert_allclose(deviations, NORMAL_DEVIATIONS, atol=5.1e-4)
    assert deviations[1] == pytest.approx(1.5 / math.sqrt(math.pi), rel=1e-9)


def test_the_exponential_truth_is_the_harmonic_number() -> None:
    computed = expected_maximum_exponential([1, 2, 4, 8, 64])
    np.testing.assert_allclose(computed, (1.0, 1.5, 2.083333, 2.717857, 4.743891), atol=1e-6)


def test_small_spreads_reproduce_the_published_table_of_the_normal_law() -> None:
    computed = (expected_maximum_gamma(2.0, 1e-6, NORMAL_WORKERS) / 2.0 - 1.0) / 1e-6
    np.testing.assert_allclose(computed, NORMAL_DEVIATIONS, atol=5.1e-4)


def test_gamma_of_spread_one_is_exponential() -> None:
    workers = [1, 2, 3, 8, 64, 1000, MAX_WORKERS]
    truth = 0.2 * expected_maximum_exponential(workers)
    np.testing.assert_allclose(expected_maximum_gamma(0.2, 1.0, workers), truth, rtol=1e-8)


def test_gamma_of_two_has_a_closed_form() -> None:
    """E max of two = mean + half of Gini's mean difference, Gamma(k + 1/2) / (sqrt(pi) Gamma(k + 1)) x mean."""
    for cv in (0.01, 0.1, 0.3, 0.7, 2.0, 5.0, 10.0):
        shape = cv**-2
        difference = math.exp(math.lgamma(shape + 0.5) - math.lgamma(shape + 1.0)) / math.sqrt(math.pi)
        assert expected_maximum_gamma(1.0, cv, 2) == pytest.approx(1.0 + difference, rel=1e-9)


def test_constant_times_have_no_straggler() -> None:
    assert expected_maximum_gamma(0.3, 0.0, [1, 5, 64]).tolist() == [0.3, 0.3, 0.3]
    assert expected_maximum_gamma(0.0, 0.3, 64) == 0.0


@pytest.mark.parametrize("cv", [1e-7, 0.99e-5, 1.01e-5, 1e-3])
def test_small_spreads_approach_the_normal_law(cv: float) -> None:
    workers = [1, 2, 64, 1000]
    normal = [1.0 + cv * expected_maximum_normal(number) for number in workers]
    np.testing.assert_allclose(expected_maximum_gamma(1.0, cv, workers), normal, rtol=4.0 * cv**2 + 1e-11)


@pytest.mark.parametrize("cv", [0.05, 0.3, 1.0, 3.0])
def test_gamma_agrees_with_adaptive_quadrature(cv: float) -> None:
    law = stats.gamma(cv**-2, scale=cv**2)
    workers = [1, 2, 3, 8, 64, 512]
    reference = [expected_maximum(lambda time_s: float(law.cdf(time_s)), number) for number in workers]
    np.testing.assert_allclose(expected_maximum_gamma(1.0, cv, workers), reference, rtol=1e-6)


def test_the_quadrature_of_any_law_finds_the_uniform_one() -> None:
    for workers in (1, 2, 8, 64):
        uniform = expected_maximum(lambda time_s: min(time_s / 3.0, 1.0), workers, scale_s=0.01)
        assert uniform == pytest.approx(3.0 * workers / (workers + 1.0), rel=1e-6)


def test_arguments_broadcast() -> None:
    table = expected_maximum_gamma([[1.0], [2.0], [4.0]], [[0.0], [0.3], [0.5]], [1, 4])
    assert table.shape == (3, 2)
    np.testing.assert_allclose(table[1], expected_maximum_gamma(2.0, 0.3, [1, 4]))
    assert expected_maximum_gamma(1.0, [], []).shape == (0,)
    assert expected_maximum_gamma(1.0, 0.3, 4).shape == ()


@pytest.mark.parametrize(
    ("mean_s", "cv", "workers", "message"),
    [
        (-1.0, 0.3, 2, "mean_s must be finite and at least 0"),
        (1.0, -0.3, 2, "cv must be finite and at least 0"),
        (1.0, 2.0 * MAX_COEFFICIENT_OF_VARIATION, 2, "cv must be at most 10"),
        (1.0, 0.3, 0, "workers must be whole numbers from 1 to 1000000"),
        (1.0, 0.3, MAX_WORKERS + 1, "workers must be whole numbers from 1 to 1000000"),
        (1.0, 0.3, 2.5, "workers must be whole numbers"),
        ([1.0, 2.0], 0.3, [1, 2, 3], "broadcast together"),
    ],
)
def test_names_the_argument_that_is_wrong(mean_s: object, cv: object, workers: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expected_maximum_gamma(mean_s, cv, workers)  # type: ignore[arg-type]


@pytest.mark.parametrize("cv", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("workers", [1, 2, 8, 64])
def test_the_variation_of_a_maximum_is_that_of_a_sample(cv: float, workers: int) -> None:
    found = maximum_cv_gamma(cv, workers)
    if cv == 0.0 or workers == 1:
        assert found == cv
        return
    sample = np.random.default_rng(3).gamma(cv**-2, cv**2, (100_000, workers)).max(axis=1)
    assert found == pytest.approx(sample.std() / sample.mean(), rel=0.01)


@pytest.mark.parametrize(("cv", "workers"), [(-0.1, 2), (math.nan, 2), (0.1, 0), (0.1, MAX_WORKERS + 1)])
def test_the_variation_of_a_maximum_refuses_what_is_out_of_range(cv: float, workers: int) -> None:
    with pytest.raises(ValueError, match=r"cv|workers"):
        maximum_cv_gamma(cv, workers)
