"""Exact multiclass MVA against published and independently computed values."""

from __future__ import annotations

import numpy as np
import pytest

from nodewise_laws import exact_mva, exact_mva_multiclass


def test_reproduces_lazowska_page_142() -> None:
    """E. D. Lazowska et al., "Quantitative System Performance", Prentice-Hall 1984, p. 142."""
    solved = exact_mva_multiclass([[1.0, 3.0], [2.0, 4.0]], [0.0, 0.0], [1, 1])
    np.testing.assert_allclose(solved.throughput_per_s, (3 / 19, 2 / 19), rtol=1e-12)
    np.testing.assert_allclose(solved.residence_s, [[4 / 3, 5.0], [2.5, 7.0]], rtol=1e-12)


def test_reproduces_schwetman_example_5b() -> None:
    """H. D. Schwetman, Purdue University technical report CSD-TR-330, example 5(b), p. 7."""
    solved = exact_mva_multiclass([[0.025], [0.5]], [1.0, 15.0], [15, 5])
    np.testing.assert_allclose(solved.throughput_per_s, (14.323, 0.314), rtol=2e-3)
    # Published to three decimals: 0.047 alone allows one per cent.
    np.testing.assert_allclose(solved.residence_s[:, 0], (0.047, 0.934), atol=5e-4)


def test_reproduces_the_golden_values_of_two_kinds_of_workers() -> None:
    solved = exact_mva_multiclass([[0.02], [0.02]], [0.2, 0.08], [3, 3])
    np.testing.assert_allclose(solved.throughput_per_s, (12.2225, 24.8333), atol=5e-5)


def test_one_class_is_the_single_class_recursion() -> None:
    solved = exact_mva_multiclass([[0.1, 0.15]], [0.5], [6])
    curve = exact_mva((0.1, 0.15), 0.5, 6)
    np.testing.assert_allclose(solved.throughput_per_s, curve.throughput_per_s[-1:], rtol=1e-12)
    np.testing.assert_allclose(solved.queue_length[0], curve.queue_length[-1], rtol=1e-12)
    np.testing.assert_allclose(solved.utilisation[0], curve.utilisation[-1], rtol=1e-12)


def test_a_class_without_customers_changes_nothing() -> None:
    with_it = exact_mva_multiclass([[0.1], [9.0], [0.2]], [0.5, 0.1, 0.3], [2, 0, 3])
    without = exact_mva_multiclass([[0.1], [0.2]], [0.5, 0.3], [2, 3])
    np.testing.assert_allclose(with_it.throughput_per_s[[0, 2]], without.throughput_per_s)
    assert with_it.throughput_per_s[1] == 0.0
    assert with_it.queue_length[1].tolist() == with_it.residence_s[1].tolist() == [0.0]


def test_more_states_than_the_cap_are_refused_and_counted() -> None:
    with pytest.raises(ValueError, match=r"populations \[9, 9\] need 100 states, more than max_states 99"):
        exact_mva_multiclass([[0.1], [0.2]], [0.5, 0.3], [9, 9], max_states=99)
    exact_mva_multiclass([[0.1], [0.2]], [0.5, 0.3], [9, 9], max_states=100)
    with pytest.raises(ValueError, match="more than max_states 1000000"):
        exact_mva_multiclass([[0.1]] * 40, [0.5] * 40, [9] * 40)


@pytest.mark.parametrize(
    ("demands_s", "think_s", "populations", "message"),
    [
        ([[0.1], [-1.0]], [1.0, 1.0], [1, 1], "demands_s must be finite and at least 0"),
        ([0.1, 0.2], [1.0, 1.0], [1, 1], "demands_s must have 2 axes"),
        ([[0.1], [0.2]], [1.0], [1, 1], r"think_s must have shape \(2,\)"),
        ([[0.1], [0.2]], [1.0, 1.0], [1, 1, 1], r"populations must have shape \(2,\)"),
        ([[0.1], [0.2]], [1.0, 1.0], [1, 1.5], "populations must be whole numbers at least 0"),
        ([[0.1], [0.2]], [1.0, 1.0], [1, -1], "populations must be whole numbers at least 0"),
        ([[0.1], [0.2]], [1.0, 1.0], [0, 0], "populations must hold at least one customer"),
        ([[0.1], [0.0]], [1.0, 0.0], [1, 1], "more than 0 seconds in every class"),
    ],
)
def test_names_the_argument_that_is_wrong(
    demands_s: object, think_s: object, populations: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        exact_mva_multiclass(demands_s, think_s, populations)  # type: ignore[arg-type]
