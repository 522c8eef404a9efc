"""What holds of expected maxima, soft minima and rounds, whatever the numbers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nodewise_laws import (
    barrier_round_best_overlap_s,
    barrier_round_no_overlap_s,
    expected_maximum_exponential,
    expected_maximum_gamma,
    expected_maximum_normal,
    soft_minimum,
    soft_minimum_demand,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=200)
ROUNDING = 1e-9

seconds = st.floats(1e-6, 1e4) | st.just(0.0)
rates = st.floats(1e-6, 1e6) | st.just(0.0)
spreads = st.floats(1e-8, 5.0) | st.just(0.0)
orders = st.floats(0.25, 200.0) | st.just(math.inf)
WORKERS = np.arange(1, 65)


@QUICK
@given(mean_s=st.floats(1e-6, 1e4), cv=spreads)
def test_a_maximum_grows_with_workers_ever_more_slowly(mean_s: float, cv: float) -> None:
    for maximum_of in (expected_maximum_gamma, expected_maximum_normal):
        maximum = maximum_of(mean_s, cv, WORKERS)
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
    gamma, exponential = expected_maximum_gamma(mean_s, cv, WORKERS), expected_maximum_exponential(mean_s, WORKERS)
    assert np.all(gamma <= exponential * (1.0 + ROUNDING))


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


@QUICK
@given(download_s=seconds, upload_s=seconds, update_s=seconds, compute_s=seconds, cv=st.floats(0.0, 2.0))
def test_rounds_get_longer_with_workers_and_overlap_never_hurts(
    download_s: float, upload_s: float, update_s: float, compute_s: float, cv: float
) -> None:
    slowest_s = expected_maximum_gamma(compute_s, cv, WORKERS)
    apart = barrier_round_no_overlap_s(
        WORKERS, download_s=download_s, upload_s=upload_s, update_s=update_s, maximum_compute_s=slowest_s
    )
    beside = barrier_round_best_overlap_s(
        WORKERS,
        download_s=download_s,
        upload_s=upload_s,
        update_s=update_s,
        compute_s=compute_s,
        maximum_compute_s=slowest_s,
    )
    for round_s in (apart, beside):
        np.testing.assert_allclose(round_s[0], download_s + compute_s + upload_s + update_s, rtol=ROUNDING)
        assert np.all(np.diff(round_s) >= -ROUNDING * round_s[1:])
        assert np.all(round_s >= slowest_s)
        assert np.all(round_s >= WORKERS * (download_s + upload_s + update_s) * (1.0 - ROUNDING))
    assert np.all(beside <= apart * (1.0 + ROUNDING))
