"""What holds of expected maxima, whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from queueing_truths import expected_maximum_exponential

from nodewise_laws import expected_maximum_gamma

QUICK = settings(derandomize=True, deadline=None, max_examples=80)
ROUNDING = 1e-9

spreads = st.floats(1e-8, 5.0) | st.just(0.0)
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
