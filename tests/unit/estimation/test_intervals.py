from __future__ import annotations

import numpy as np
import pytest
from estimators import predictions_of

from nodewise.domain.columns import as_floats
from nodewise.estimation.answer.intervals import interval_of, one_sided_rate
from nodewise.estimation.question import IntervalBasis


def test_ninety_percent_are_1645_deviations_of_the_logarithm() -> None:
    predictions = predictions_of([1.0, 1.0], log_spread=as_floats([0.1, 0.2]))
    interval = interval_of(predictions, as_floats([10.0, 20.0]), 0.9)
    assert interval is not None
    factors = np.exp(1.6448536 * np.array([0.1, 0.2]))
    np.testing.assert_allclose(interval.lower_steps_per_s, np.array([10.0, 20.0]) / factors, rtol=1e-7)
    np.testing.assert_allclose(interval.upper_steps_per_s, np.array([10.0, 20.0]) * factors, rtol=1e-7)
    assert (interval.coverage, interval.basis) == (0.9, IntervalBasis.MODEL_SPREAD)


def test_a_model_without_a_spread_has_no_interval() -> None:
    predictions = predictions_of([1.0], log_spread=as_floats([0.0]))
    assert interval_of(predictions, as_floats([1.0]), 0.9) is None


def test_a_simulation_says_so() -> None:
    interval = interval_of(predictions_of([1.0], simulated=True), as_floats([1.0]), 0.5)
    assert interval is not None
    assert interval.basis == IntervalBasis.SIMULATION


def test_one_side_of_a_90_percent_interval_holds_with_95_percent() -> None:
    predictions, rate = predictions_of([1.0], simulated=True), as_floats([10.0])
    interval = interval_of(predictions, rate, 0.9)
    assert interval is not None
    assert one_sided_rate(predictions, rate, 0.95)[0] == pytest.approx(interval.lower_steps_per_s[0])


def test_a_coverage_next_to_certainty_has_finite_bounds() -> None:
    predictions, rate = predictions_of([1.0], log_spread=as_floats([10.0])), as_floats([1.0])
    almost = float(np.nextafter(1.0, 0.0))
    interval = interval_of(predictions, rate, almost)
    assert interval is not None
    assert np.isfinite(interval.upper_steps_per_s[0])
    assert interval.lower_steps_per_s[0] > 0
    assert one_sided_rate(predictions, rate, almost)[0] > 0
