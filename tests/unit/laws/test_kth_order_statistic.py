"""Expected k-th smallest of gamma-distributed times."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise_laws import expected_maximum_gamma, expected_order_statistic_gamma


@pytest.mark.parametrize("cv", [0.0, 1e-6, 0.1, 0.5, 1.0, 3.0, 10.0])
def test_the_last_is_the_maximum(cv: float) -> None:
    workers = np.array([1, 2, 5, 31, 200, 5_000, 1_000_000])
    last = expected_order_statistic_gamma(2.0, cv, workers, workers)
    np.testing.assert_allclose(last, expected_maximum_gamma(2.0, cv, workers), rtol=1e-8)


@pytest.mark.parametrize("workers", [2, 17, 140, 160, 900])
@pytest.mark.parametrize("cv", [0.05, 0.5, 2.0])
def test_all_of_them_average_to_the_mean_and_ascend(workers: int, cv: float) -> None:
    """Both ways to place the nodes meet between 140 and 160 workers."""
    each = expected_order_statistic_gamma(3.0, cv, workers, np.arange(1, workers + 1))
    assert each.mean() == pytest.approx(3.0, rel=1e-9)
    assert np.all(np.diff(each) > 0.0)


@pytest.mark.parametrize("workers", [3, 40, 1_000, 100_000])
def test_exponential_times_have_a_closed_form(workers: int) -> None:
    """The gaps between ordered exponential times have means 1 / W, 1 / (W - 1), ..., 1."""
    rank = np.unique(np.linspace(1, workers, 9).round())
    harmonic = np.cumsum(1.0 / np.arange(workers, 0.0, -1.0))
    np.testing.assert_allclose(
        expected_order_statistic_gamma(1.0, 1.0, workers, rank), harmonic[rank.astype(int) - 1], rtol=1e-8
    )


def test_constant_times_are_constant_and_shapes_broadcast() -> None:
    np.testing.assert_array_equal(expected_order_statistic_gamma(2.0, 0.0, 9, [1, 5, 9]), (2.0, 2.0, 2.0))
    assert expected_order_statistic_gamma(np.ones((2, 1, 1)), [[0.1], [0.2]], 9, [1, 5, 9]).shape == (2, 2, 3)
    assert expected_order_statistic_gamma([], 0.1, 9, 3).shape == (0,)


@pytest.mark.parametrize(
    ("mean_s", "cv", "workers", "rank", "message"),
    [
        (-1.0, 0.1, 3, 1, "mean_s"),
        (1.0, 11.0, 3, 1, "cv must be at most"),
        (1.0, 0.1, 0, 1, "workers must be whole"),
        (1.0, 0.1, 3, 0, "rank must be whole"),
        (1.0, 0.1, 3, 4, "rank must be at most workers"),
        (1.0, [0.1, 0.2], 3, [1, 2, 3], "must broadcast together"),
    ],
)
def test_names_the_argument_that_is_wrong(mean_s: float, cv: object, workers: int, rank: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        expected_order_statistic_gamma(mean_s, cv, workers, rank)  # type: ignore[arg-type]
