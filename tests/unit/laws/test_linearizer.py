"""Approximations of networks with several classes, and the choice between them and the exact solution."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from nodewise_laws import MAX_CHEAP_STATES, bard_schweitzer, exact_mva_multiclass, linearizer, multiclass
from nodewise_laws.linearizer import TOLERANCE

TWO_KINDS = ([[0.02], [0.02]], [0.2, 0.08], [3, 3])
CROWD = ([[0.1, 0.2], [0.3, 0.05], [0.02, 0.02]], [1.0, 2.0, 0.5], [200, 300, 100])


def test_reproduces_the_golden_values_of_two_kinds_of_workers() -> None:
    np.testing.assert_allclose(linearizer(*TWO_KINDS).throughput_per_s, (12.241, 24.92), atol=1e-3)
    np.testing.assert_allclose(bard_schweitzer(*TWO_KINDS).throughput_per_s, (11.992, 23.660), atol=1e-3)


def test_errs_less_than_bard_schweitzer_by_far_on_two_kinds_of_workers() -> None:
    exact = exact_mva_multiclass(*TWO_KINDS).throughput_per_s
    near, far = (
        np.abs(solve(*TWO_KINDS).throughput_per_s / exact - 1.0).max() for solve in (linearizer, bard_schweitzer)
    )
    assert near < 0.004
    assert far > 0.04


@pytest.mark.parametrize("approximate", [linearizer, bard_schweitzer])
def test_one_customer_is_exact(approximate: object) -> None:
    solved = approximate([[0.1, 0.3], [0.2, 0.1]], [0.5, 0.6], [0, 1])  # type: ignore[operator]
    np.testing.assert_allclose(solved.throughput_per_s, (0.0, 1.0 / 0.9), rtol=1e-12)
    np.testing.assert_allclose(solved.residence_s, ((0.0, 0.0), (0.2, 0.1)), rtol=1e-12)


@pytest.mark.parametrize("approximate", [linearizer, bard_schweitzer])
def test_a_class_without_customers_changes_nothing(approximate: object) -> None:
    with_it = approximate([[0.1], [9.0], [0.2]], [0.5, 0.1, 0.3], [2, 0, 3])  # type: ignore[operator]
    without = approximate([[0.1], [0.2]], [0.5, 0.3], [2, 3])  # type: ignore[operator]
    np.testing.assert_allclose(with_it.throughput_per_s[[0, 2]], without.throughput_per_s, rtol=1e-8)
    assert with_it.throughput_per_s[1] == 0.0
    assert with_it.queue_length[1].tolist() == with_it.residence_s[1].tolist() == [0.0]


def test_a_crowd_is_solved_and_saturates_the_bottleneck() -> None:
    for solved in (linearizer(*CROWD), bard_schweitzer(*CROWD)):
        assert solved.residual <= TOLERANCE
        assert solved.utilisation.sum(axis=0).max() == pytest.approx(1.0, abs=2e-3)
        somewhere = solved.queue_length.sum(axis=1) + solved.throughput_per_s * solved.think_s
        np.testing.assert_allclose(somewhere, solved.populations, rtol=1e-9)


def test_an_unreached_fixed_point_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["nodewise_laws.linearizer"], "MAX_SWEEPS", 3)
    assert linearizer(*CROWD).residual > TOLERANCE


def test_the_choice_is_exact_where_cheap_and_says_which() -> None:
    small = multiclass(*TWO_KINDS)
    assert small.method == "exact"
    assert small.residual == 0.0
    np.testing.assert_array_equal(small.throughput_per_s, exact_mva_multiclass(*TWO_KINDS).throughput_per_s)
    assert multiclass(*TWO_KINDS, max_states=16).method == "exact"
    forced = multiclass(*TWO_KINDS, max_states=15)
    assert forced.method == "linearizer"
    np.testing.assert_array_equal(forced.throughput_per_s, linearizer(*TWO_KINDS).throughput_per_s)
    assert multiclass(*CROWD).method == "linearizer"
    assert bard_schweitzer(*TWO_KINDS).method == "bard-schweitzer"


def test_the_cap_counts_stations_too() -> None:
    populations = [99, 99]
    assert multiclass([[0.1], [0.2]], [1.0, 1.0], populations).method == "exact"
    assert multiclass([[0.1] * 3, [0.2] * 3], [1.0, 1.0], populations).method == "linearizer"
    assert 100 * 100 <= MAX_CHEAP_STATES < 3 * 100 * 100


def test_neither_choice_takes_long() -> None:
    classes = 8
    demands = np.random.default_rng(3).uniform(0.001, 0.1, (classes, 4))
    begin_s = time.process_time()  # of a processor, whatever else is at work
    assert multiclass(demands, np.ones(classes), np.full(classes, 64)).method == "linearizer"
    assert multiclass(demands[:2, :2], np.ones(2), [97, 97]).method == "exact"
    assert time.process_time() - begin_s < 4.0


@pytest.mark.parametrize("solve", [linearizer, bard_schweitzer, multiclass])
@pytest.mark.parametrize(
    ("demands_s", "think_s", "populations", "message"),
    [
        ([[0.1], [-1.0]], [1.0, 1.0], [1, 1], "demands_s must be finite and at least 0"),
        ([[0.1], [0.2]], [1.0], [1, 1], r"think_s must have shape \(2,\)"),
        ([[0.1], [0.2]], [1.0, 1.0], [0, 0], "populations must hold at least one customer"),
        ([[0.1], [0.0]], [1.0, 0.0], [1, 1], "more than 0 seconds in every class"),
    ],
)
def test_names_the_argument_that_is_wrong(
    solve: object, demands_s: object, think_s: object, populations: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        solve(demands_s, think_s, populations)  # type: ignore[operator]
