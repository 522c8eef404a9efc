"""What holds of stations whose rate depends on the number present, whatever the numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from nodewise_laws import (
    LoadDependentCurve,
    asymptotic_bounds,
    exact_mva,
    flow_capped_rates,
    load_dependent,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=40)
# Logarithms of up to some thousands round to 1e-12.
ROUNDING = 1e-10
LONGEST = 30

seconds = st.floats(1e-6, 1e4) | st.just(0.0)


@st.composite
def networks(draw: st.DrawFn, *, nondecreasing: bool = False, capped: bool = False) -> LoadDependentCurve:
    """Draw a network and solve it; rates are anything, or nondecreasing, or those of capped flows (concave too)."""
    demands = draw(st.lists(seconds, min_size=1, max_size=4))
    think, population = draw(seconds), draw(st.integers(1, LONGEST))
    assume(sum(demands) + think > 0.0)
    if capped:
        rates = [flow_capped_rates(population, draw(st.floats(0.2, 40.0))) for _ in demands]
    else:
        row = st.lists(st.floats(0.1, 10.0), min_size=population, max_size=population)
        rates = [np.array(draw(row)) for _ in demands]
    if nondecreasing:
        rates = [np.sort(row) for row in rates]
    return load_dependent(demands, rates, think, population)


@QUICK
@given(networks())
def test_every_customer_is_somewhere_and_littles_law_holds(curve: LoadDependentCurve) -> None:
    somewhere = curve.queue_length.sum(axis=1) + curve.throughput_per_s * curve.think_s
    np.testing.assert_allclose(somewhere, curve.population, rtol=ROUNDING)
    np.testing.assert_allclose(curve.cycle_s, curve.think_s + curve.residence_s.sum(axis=1), rtol=ROUNDING)
    assert np.all((curve.busy_share >= 0.0) & (curve.busy_share <= 1.0))
    assert np.all(curve.busy_share <= curve.queue_length * (1.0 + ROUNDING))


@QUICK
@given(networks())
def test_one_customer_is_served_at_the_first_rate(curve: LoadDependentCurve) -> None:
    first = curve.demands_s / curve.rates[:, 0]
    np.testing.assert_allclose(curve.residence_s[0], first, rtol=ROUNDING)
    np.testing.assert_allclose(curve.throughput_per_s[0], 1.0 / (curve.think_s + first.sum()), rtol=ROUNDING)


@QUICK
@given(networks())
def test_no_station_does_more_than_its_best_rate(curve: LoadDependentCurve) -> None:
    """Utilisation law: X D is the mean relative rate, which idle time and the best rate bound."""
    used = curve.throughput_per_s[:, np.newaxis] * curve.demands_s
    best = np.maximum.accumulate(curve.rates, axis=1).T
    worst = np.minimum.accumulate(curve.rates, axis=1).T
    assert np.all(used <= curve.busy_share * best * (1.0 + ROUNDING))
    assert np.all(used >= curve.busy_share * worst * (1.0 - ROUNDING))


@QUICK
@given(networks(nondecreasing=True))
def test_throughput_does_not_fall_where_no_rate_falls(curve: LoadDependentCurve) -> None:
    assert np.all(np.diff(curve.throughput_per_s) >= -ROUNDING * curve.throughput_per_s[1:])


@QUICK
@given(networks(capped=True))
def test_capped_flows_give_a_concave_curve_between_the_plain_one_and_the_line(curve: LoadDependentCurve) -> None:
    """J. G. Shanthikumar and D. D. Yao, Math. of Operations Research 13(3), 1988: concave rates, concave throughput."""
    throughput = np.concatenate(([0.0], curve.throughput_per_s))
    slack = ROUNDING * throughput[-1]
    assert np.all(np.diff(throughput) >= -slack)
    assert np.all(np.diff(throughput, n=2) <= slack)
    plain = load_dependent(curve.demands_s, curve.rates[:, :1], curve.think_s, curve.population.size)
    assert np.all(curve.throughput_per_s >= plain.throughput_per_s * (1.0 - ROUNDING))
    line = curve.population * curve.throughput_per_s[0]
    assert np.all(curve.throughput_per_s <= line * (1.0 + ROUNDING))
    # Nothing beats the asymptotic bound at each station's best rate.
    best = curve.demands_s / curve.rates.max(axis=1)
    if best.any():
        capacity = asymptotic_bounds(best, curve.think_s, curve.population).upper_per_s
        assert np.all(curve.throughput_per_s <= capacity * (1.0 + ROUNDING))


@QUICK
@given(networks(capped=True))
def test_up_to_the_smallest_cap_throughput_is_linear(curve: LoadDependentCurve) -> None:
    below = curve.population <= curve.rates.max(axis=1).min()
    assume(below.any() and np.all(curve.rates[:, 0] == 1.0))
    line = curve.population / (curve.think_s + curve.demands_s.sum())
    np.testing.assert_allclose(curve.throughput_per_s[below], line[below], rtol=ROUNDING)


@QUICK
@given(st.lists(seconds, min_size=1, max_size=4), seconds, st.integers(1, 60), st.floats(0.1, 10.0))
def test_constant_rates_are_plain_demands(demands: list[float], think: float, population: int, rate: float) -> None:
    assume(sum(demands) + think > 0.0)
    curve, plain = (
        load_dependent(demands, rate, think, population),
        exact_mva(np.array(demands) / rate, think, population),
    )
    np.testing.assert_allclose(curve.throughput_per_s, plain.throughput_per_s, rtol=ROUNDING)
    np.testing.assert_allclose(curve.queue_length, plain.queue_length, rtol=ROUNDING)
    np.testing.assert_allclose(curve.busy_share, plain.utilisation, rtol=ROUNDING, atol=ROUNDING)


@QUICK
@given(networks(), st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
def test_order_of_stations_and_unit_of_time_change_nothing(
    curve: LoadDependentCurve, random: object, factor: float
) -> None:
    order = list(range(curve.demands_s.size))
    random.shuffle(order)  # type: ignore[attr-defined]
    scaled = load_dependent(
        curve.demands_s[order] * factor, curve.rates[order], curve.think_s * factor, curve.population.size
    )
    np.testing.assert_allclose(scaled.throughput_per_s * factor, curve.throughput_per_s, rtol=ROUNDING)
    np.testing.assert_allclose(scaled.queue_length, curve.queue_length[:, order], rtol=ROUNDING)
