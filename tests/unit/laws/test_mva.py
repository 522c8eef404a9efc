"""Exact MVA against published and independently computed values."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from nodewise_laws import MvaCurve, exact_mva, exact_mva_many

# Z = 0.5 s, D = (0.1, 0.15) s: own computation, confirmed by two solvers of LINE and by simulation.
TWO_STATIONS_PER_S = (
    1.333333, 2.521008, 3.543424, 4.388544, 5.056022, 5.558800,
    5.920831, 6.171688, 6.340607, 6.452341, 6.525637, 6.573639,
)  # fmt: skip


def test_reproduces_the_golden_curve_of_two_stations() -> None:
    curve = exact_mva((0.1, 0.15), 0.5, 12)
    np.testing.assert_allclose(curve.throughput_per_s, TWO_STATIONS_PER_S, atol=5e-7)
    np.testing.assert_allclose(curve.queue_length[5], (1.016469, 2.204131), atol=5e-7)


def test_reproduces_the_golden_value_of_one_station() -> None:
    assert exact_mva((0.15,), 0.5, 6).throughput_per_s[-1] == pytest.approx(6.188100, abs=5e-7)


def test_reproduces_jain_example_34_2() -> None:
    """R. Jain, "The Art of Computer Systems Performance Analysis", Wiley 1991, example 34.2."""
    visits = np.array([16.0, 10.0, 5.0])
    curve = exact_mva(visits * (0.125, 0.3, 0.2), 4.0, 20)
    np.testing.assert_allclose(curve.queue_length[-1], (1.991, 16.177, 0.5), rtol=2e-3)
    np.testing.assert_allclose(curve.residence_s[-1] / visits, (0.373, 4.854, 0.300), rtol=2e-3)


def test_reproduces_bolch_example_8_3() -> None:
    """G. Bolch, S. Greiner, H. de Meer and K. S. Trivedi, "Queueing Networks and Markov Chains", ex. 8.3."""
    curve = exact_mva(np.array([0.02, 0.2, 0.4, 0.6]) * (1.0, 0.4, 0.2, 0.1), 0.0, 6)
    np.testing.assert_allclose(curve.queue_length[-1], (0.244, 2.261, 2.261, 1.234), rtol=2e-3)
    assert curve.throughput_per_s[-1] == pytest.approx(9.920, rel=2e-3)


def test_index_zero_is_one_customer() -> None:
    curve = exact_mva((0.1, 0.15), 0.5, 3)
    assert curve.population.tolist() == [1, 2, 3]
    np.testing.assert_allclose(curve.residence_s[0], (0.1, 0.15))
    np.testing.assert_allclose(curve.utilisation[0], (0.1 / 0.75, 0.15 / 0.75))
    assert curve.cycle_s[0] == pytest.approx(0.75)


def test_without_stations_scales_linearly() -> None:
    curve = exact_mva((), 0.25, 4)
    assert curve.throughput_per_s.tolist() == [4.0, 8.0, 12.0, 16.0]
    assert curve.residence_s.shape == curve.queue_length.shape == curve.utilisation.shape == (4, 0)


def test_without_thinking_one_station_is_always_busy() -> None:
    curve = exact_mva((0.2,), 0.0, 4)
    np.testing.assert_allclose(curve.throughput_per_s, 5.0)
    np.testing.assert_allclose(curve.utilisation, 1.0)


def test_a_curve_cannot_be_changed() -> None:
    demands = np.array([0.1, 0.15])
    curve = exact_mva(demands, 0.5, 3)
    demands[0] = 9.0
    assert curve.demands_s[0] == 0.1
    with pytest.raises(ValueError, match="read-only"):
        curve.throughput_per_s[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve.think_s = 1.0  # type: ignore[misc]


def test_many_networks_equal_each_one_alone() -> None:
    demands = np.array([[0.1, 0.15, 0.0], [0.0, 0.0, 0.3], [1e-4, 2.0, 3.0]])
    think = np.array([0.5, 0.0, 7.0])
    curves = exact_mva_many(demands, think, 9)
    assert curves.throughput_per_s.shape == (3, 9)
    assert curves.residence_s.shape == curves.queue_length.shape == curves.utilisation.shape == (3, 9, 3)
    assert curves.population.tolist() == list(range(1, 10))
    for index in range(3):
        alone: MvaCurve = exact_mva(demands[index], float(think[index]), 9)
        for name in ("throughput_per_s", "residence_s", "queue_length", "utilisation", "cycle_s"):
            np.testing.assert_allclose(getattr(curves, name)[index], getattr(alone, name), rtol=1e-12)


def test_many_networks_may_share_one_think_time_or_be_none() -> None:
    assert exact_mva_many([[0.1], [0.2]], 0.5, 2).think_s.tolist() == [0.5, 0.5]
    assert exact_mva_many(np.empty((0, 2)), 0.5, 2).throughput_per_s.shape == (0, 2)


@pytest.mark.parametrize(
    ("demands_s", "think_s", "population", "message"),
    [
        ((0.1, -0.1), 0.5, 2, "demands_s must be finite and at least 0"),
        ((0.1, float("nan")), 0.5, 2, "demands_s must be finite and at least 0"),
        ([[0.1]], 0.5, 2, r"demands_s must have 1 axes, got shape \(1, 1\)"),
        (0.1, 0.5, 2, "demands_s must have 1 axes"),
        ([[0.1], [0.1, 0.2]], 0.5, 2, "demands_s must be numbers in a rectangular array"),
        (("x",), 0.5, 2, "demands_s must be numbers"),
        ((0.1,), -0.5, 2, "think_s must be finite and at least 0"),
        ((0.1,), float("inf"), 2, "think_s must be finite and at least 0"),
        ((0.1,), (0.5,), 2, "think_s must have 0 axes"),
        ((0.1,), 0.5, 0, "population must be an integer of at least 1, got 0"),
        ((0.1,), 0.5, 2.5, "population must be an integer of at least 1, got 2.5"),
        ((0.0,), 0.0, 2, "must add up to a cycle of more than 0 seconds"),
    ],
)
def test_names_the_argument_that_is_wrong(demands_s: object, think_s: object, population: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_mva(demands_s, think_s, population)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("demands_s", "think_s", "message"),
    [
        ((0.1,), 0.5, "demands_s must have 2 axes"),
        ([[0.1], [0.2]], (0.5, 0.5, 0.5), r"think_s must be a scalar or of shape \(2,\)"),
        ([[0.1], [0.0]], 0.0, "must add up to a cycle of more than 0 seconds"),
    ],
)
def test_many_networks_name_the_argument_that_is_wrong(demands_s: object, think_s: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        exact_mva_many(demands_s, think_s, 2)  # type: ignore[arg-type]
