"""The soft minimum at its limits and at points known in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nodewise_laws import soft_minimum, soft_minimum_demand


def test_at_the_knee() -> None:
    np.testing.assert_allclose(soft_minimum(7.0, 7.0, [3, 5, 8]) / 7.0, (0.794, 0.871, 0.917), atol=5e-4)


def test_order_one_is_the_shape_of_optimus() -> None:
    workers = np.arange(1, 9)
    np.testing.assert_allclose(soft_minimum(2.0 * workers, 5.0, 1), workers / (1 / 2.0 + workers / 5.0))


def test_infinite_order_is_the_asymptotic_bound() -> None:
    assert soft_minimum([2.0, 8.0], 5.0, math.inf).tolist() == [2.0, 5.0]
    np.testing.assert_allclose(soft_minimum([2.0, 8.0], 5.0, 1e4), (2.0, 5.0))


def test_without_a_limit_everybody_gets_what_they_ask() -> None:
    assert soft_minimum(3.0, math.inf, 3) == 3.0
    assert soft_minimum_demand(3.0, math.inf, 3) == 3.0


def test_nothing_asked_or_nothing_given() -> None:
    assert soft_minimum([0.0, 3.0, 0.0], [3.0, 0.0, 0.0], 3).tolist() == [0.0, 0.0, 0.0]
    assert soft_minimum_demand([0.0, 0.0], [3.0, 0.0], [3.0, math.inf]).tolist() == [0.0, 0.0]


def test_no_power_overflows() -> None:
    np.testing.assert_allclose(soft_minimum([1e200, 1e-200], 1e200, 50), (1e200 * 2 ** (-1 / 50), 1e-200))


def test_calibration_returns_the_measured_rate() -> None:
    demand = soft_minimum_demand([0.5, 2.0, 4.9], 5.0, 3)
    np.testing.assert_allclose(soft_minimum(demand, 5.0, 3), (0.5, 2.0, 4.9), rtol=1e-12)
    assert demand[1] == pytest.approx((2.0**-3 - 5.0**-3) ** (-1 / 3))
    assert soft_minimum_demand(5.0, 5.0, math.inf) == 5.0


@pytest.mark.parametrize(
    ("demand", "capacity", "order", "message"),
    [
        (-1.0, 5.0, 3, "demand_per_s must be finite and at least 0"),
        (1.0, -5.0, 3, "capacity_per_s must be at least 0"),
        (1.0, math.nan, 3, "capacity_per_s must be at least 0"),
        (1.0, 5.0, 0, "order must be more than 0"),
        (1.0, 5.0, math.nan, "order must be more than 0"),
        ([1.0, 2.0], [5.0, 6.0, 7.0], 3, r"broadcast together, got demand_per_s \(2,\)"),
    ],
)
def test_names_the_argument_that_is_wrong(demand: object, capacity: object, order: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        soft_minimum(demand, capacity, order)  # type: ignore[arg-type]


@pytest.mark.parametrize(("throughput", "order"), [(5.0, 3), (6.0, 3), (6.0, math.inf)])
def test_no_demand_reaches_a_throughput_beyond_capacity(throughput: float, order: float) -> None:
    with pytest.raises(ValueError, match="throughput_per_s must be less than capacity_per_s"):
        soft_minimum_demand(throughput, 5.0, order)
