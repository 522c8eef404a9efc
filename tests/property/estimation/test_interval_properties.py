from __future__ import annotations

import numpy as np
from estimators import predictions_of
from hypothesis import given
from hypothesis import strategies as st

from nodewise.domain.columns import as_floats
from nodewise.estimation.answer.intervals import interval_of, one_sided_rate

rates = st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=8)
spreads = st.floats(1e-6, 2.0)
coverages = st.floats(0.01, 0.99)


@given(rates, spreads, coverages)
def test_bounds_enclose_the_point_evenly_in_the_logarithm(rate: list[float], spread: float, coverage: float) -> None:
    point = as_floats(rate)
    predictions = predictions_of(1.0 / point, log_spread=as_floats([spread] * len(rate)))
    interval = interval_of(predictions, point, coverage)
    assert interval is not None
    lower, upper = interval.lower_steps_per_s, interval.upper_steps_per_s
    assert np.all(lower > 0)
    assert np.all((lower <= point) & (point <= upper))
    np.testing.assert_allclose(lower * upper, point**2, rtol=1e-9)


@given(spreads, coverages, coverages)
def test_more_coverage_is_wider(spread: float, one: float, other: float) -> None:
    predictions = predictions_of([1.0], log_spread=as_floats([spread]))
    narrow, wide = (interval_of(predictions, as_floats([1.0]), value) for value in sorted((one, other)))
    assert narrow is not None
    assert wide is not None
    assert narrow.upper_steps_per_s[0] <= wide.upper_steps_per_s[0]


@given(rates, spreads, st.floats(0.501, 0.999), st.floats(0.501, 0.999))
def test_more_confidence_promises_less(rate: list[float], spread: float, one: float, other: float) -> None:
    point = as_floats(rate)
    predictions = predictions_of(1.0 / point, log_spread=as_floats([spread] * len(rate)))
    less, more = (one_sided_rate(predictions, point, value) for value in sorted((one, other)))
    assert np.all(more <= less)
    assert np.all(less < point)
