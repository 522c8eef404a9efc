"""What holds of expected maxima and soft minima, whatever the numbers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_truths import expected_maximum_exponential

from nodewise_laws import expected_maximum_gamma, soft_minimum, soft_minimum_demand

QUICK = settings(derandomize=True, deadline=None, max_examples=200)
ROUNDING = 1e-9

rates = st.floats(1e-6, 1e6) | st.just(0.0)
spreads = st.floats(1e-8, 5.0) | st.just(0.0)
orders = st.floats(0.25, 200.0) | st.just(math.inf)
WORKERS = np.arange(1, 65)


@QUICK
@given(mean_s=st.floats(1e-6, 1e4), cv=spreads)
def test_a_maximum_grows_with_workers_ever_more_slowly(mean_s: float, cv: float) -> None:
    maximum = expected_maximum_gamma(mean_s, cv, WORKERS)
    np.testing.assert_allclose(maximum[0], mean_s, rtol=ROUNDING)
    gains = np.diff(maximum) / mean_s
    assert np.all(gains >= -ROUNDING)
    assert np.all(np.diff(gains) <= ROUNDING)
    # Hartley and David, 1954: e_W of any law is at most (W - 1) / sqrt(2 W - 1).
    assert np.all(maximum <= mean_s * (1.0 + cv * (WORKERS - 1) / np.sqrt(2 * WORKERS - 1) + ROUNDING))


@QUICK
@given(cv=st.floats(0.0, 5.0), more=st.floats(0.0, 2.0))
def test_a_gamma_maximum_grows_with_the_spread(cv: float, more: float) -> None:
    smaller, larger = expected_maximum_gamma(1.0, [[cv], [cv + more]], WORKERS)
    assert np.all(smaller <= larger * (1.0 + ROUNDING))


@QUICK
@given(mean_s=st.floats(1e-6, 1e4), cv=st.floats(0.0, 1.0))
def test_less_spread_than_exponential_means_a_smaller_maximum(mean_s: float, cv: float) -> None:
    exponential = mean_s * expected_maximum_exponential(WORKERS)
    assert np.all(expected_maximum_gamma(mean_s, cv, WORKERS) <= exponential * (1.0 + ROUNDING))


@QUICK
@given(demand=rates, capacity=rates | st.just(math.inf), order=orders)
def test_a_soft_minimum_lies_below_the_minimum_and_above_its_value_at_the_knee(
    demand: float, capacity: float, order: float
) -> None:
    value = float(soft_minimum(demand, capacity, order))
    smaller = min(demand, capacity)
    assert value <= smaller
    assert value >= smaller * 2.0 ** (-1.0 / order) * (1.0 - ROUNDING)
    if math.isfinite(capacity):
        np.testing.assert_allclose(value, soft_minimum(capacity, demand, order), rtol=ROUNDING)


@QUICK
@given(demand=st.floats(1e-6, 1e6), capacity=st.floats(1e-6, 1e6), order=orders, factor=st.floats(1.0, 10.0))
def test_a_soft_minimum_is_nondecreasing_in_everything_and_keeps_units(
    demand: float, capacity: float, order: float, factor: float
) -> None:
    value = float(soft_minimum(demand, capacity, order))
    for more in (
        soft_minimum(demand * factor, capacity, order),
        soft_minimum(demand, capacity * factor, order),
        soft_minimum(demand, capacity, order * factor),
    ):
        assert value <= more * (1.0 + ROUNDING)
    np.testing.assert_allclose(soft_minimum(demand * factor, capacity * factor, order), value * factor, rtol=ROUNDING)


@QUICK
@given(demand=st.floats(1e-3, 1e3), capacity=st.floats(1e-3, 1e3))
def test_a_soft_minimum_has_the_plain_one_and_the_harmonic_one_as_limits(demand: float, capacity: float) -> None:
    smaller = min(demand, capacity)
    np.testing.assert_allclose(soft_minimum(demand, capacity, 1e9), smaller, rtol=1e-8)
    assert soft_minimum(demand, capacity, math.inf) == smaller
    np.testing.assert_allclose(soft_minimum(demand, capacity, 1), 1.0 / (1.0 / demand + 1.0 / capacity), rtol=ROUNDING)


@QUICK
@given(throughput=st.floats(1e-3, 1e3), headroom=st.floats(1.01, 1e3), order=st.floats(0.5, 50.0))
def test_calibration_is_the_inverse(throughput: float, headroom: float, order: float) -> None:
    capacity = throughput * headroom
    demand = soft_minimum_demand(throughput, capacity, order)
    assert demand >= throughput
    np.testing.assert_allclose(soft_minimum(demand, capacity, order), throughput, rtol=ROUNDING)
