"""How sure an order is: errors that rows share cancel, errors of their own do not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau

from nodewise.estimation.answer.ranking import expected_kendall, faster_probability

PAIR = np.array([0]), np.array([1])


def told(logs: list[float], shared: list[list[float]], own: list[float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.array(logs), np.array(shared), np.array(own)


def test_what_moves_both_alike_cancels() -> None:
    alike = told([0.0, 0.1], [[0.5], [0.5]], [0.05, 0.05])
    apart = told([0.0, 0.1], [[0.5], [-0.5]], [0.05, 0.05])
    assert faster_probability(*alike, *PAIR)[0] == pytest.approx(0.9214, abs=1e-4)  # Phi(0.1 / (0.05 sqrt 2))
    assert faster_probability(*apart, *PAIR)[0] == pytest.approx(0.5397, abs=1e-4)


def test_the_farther_apart_the_surer_and_complementary() -> None:
    errors = told([0.0, 0.05, 1.4], [[0.1], [0.1], [0.1]], [0.1, 0.1, 0.1])
    faster = faster_probability(*errors, np.array([0, 0, 1]), np.array([1, 2, 0]))
    assert 0.5 < faster[0] < faster[1] <= 1.0
    assert faster[0] + faster[2] == pytest.approx(1.0)


def test_without_any_spread_an_order_is_sure_and_a_tie_is_not() -> None:
    errors = told([0.0, 0.1, 0.1], [[], [], []], [0.0, 0.0, 0.0])
    faster = faster_probability(*errors, np.array([0, 1, 1]), np.array([1, 0, 2]))
    assert faster.tolist() == [1.0, 0.0, 0.5]


def test_the_expected_tau_is_about_the_true_one() -> None:
    generator = np.random.default_rng(4)
    count, own = 400, 0.3
    logs, shared = generator.normal(0.0, 0.4, count), generator.normal(0.0, 0.2, (count, 3))
    expected = expected_kendall(logs, shared, np.full(count, own))
    true = [
        kendalltau(logs, logs + shared @ generator.normal(size=3) + generator.normal(0.0, own, count))[0]
        for _ in range(40)
    ]
    assert expected == pytest.approx(np.mean(true), abs=0.03)


def test_pairs_are_drawn_alike_every_time_and_one_row_has_no_order() -> None:
    logs = np.linspace(0.0, 1.0, 2000)
    errors = logs, np.zeros((2000, 0)), np.full(2000, 0.05)
    assert expected_kendall(*errors) == expected_kendall(*errors)
    assert expected_kendall(logs[:1], np.zeros((1, 0)), np.zeros(1)) is None
