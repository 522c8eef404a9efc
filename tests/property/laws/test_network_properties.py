"""What holds of every closed queueing network, on networks that Hypothesis makes up."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from queueing_truths import erlang_finite_source

from nodewise_laws import (
    MvaCurve,
    asymptotic_bounds,
    balanced_job_bounds,
    exact_mva,
    exact_mva_many,
    exact_mva_multiclass,
    knee_population,
)

QUICK = settings(derandomize=True, deadline=None, max_examples=80)
# Rounding of a sum over at most 40 customers and 5 stations.
ROUNDING = 1e-11

# Ten orders of magnitude, and 0: a phase that a job does not have.
seconds = st.floats(1e-6, 1e4) | st.just(0.0)


@st.composite
def networks(draw: st.DrawFn, *, max_stations: int = 5, max_population: int = 40) -> MvaCurve:
    """Draw a network and solve it."""
    demands = draw(st.lists(seconds, min_size=1, max_size=max_stations))
    think = draw(seconds)
    assume(sum(demands) + think > 0.0)
    return exact_mva(demands, think, draw(st.integers(1, max_population)))


@QUICK
@given(networks())
def test_one_customer_never_waits(curve: MvaCurve) -> None:
    np.testing.assert_allclose(curve.throughput_per_s[0], 1.0 / (curve.think_s + curve.demands_s.sum()), rtol=ROUNDING)
    np.testing.assert_array_equal(curve.residence_s[0], curve.demands_s)


@QUICK
@given(networks())
def test_every_customer_is_somewhere(curve: MvaCurve) -> None:
    somewhere = curve.queue_length.sum(axis=1) + curve.throughput_per_s * curve.think_s
    np.testing.assert_allclose(somewhere, curve.population, rtol=ROUNDING)


@QUICK
@given(networks())
def test_littles_law_and_the_utilisation_law(curve: MvaCurve) -> None:
    np.testing.assert_allclose(curve.cycle_s, curve.think_s + curve.residence_s.sum(axis=1), rtol=ROUNDING)
    np.testing.assert_allclose(curve.queue_length, curve.throughput_per_s[:, np.newaxis] * curve.residence_s)
    assert np.all(curve.utilisation <= 1.0 + ROUNDING)
    assert np.all(curve.utilisation <= curve.queue_length * (1.0 + ROUNDING))
    assert np.all(curve.residence_s >= curve.demands_s)


@QUICK
@given(networks())
def test_throughput_is_nondecreasing_and_concave(curve: MvaCurve) -> None:
    throughput = np.concatenate(([0.0], curve.throughput_per_s))
    gains = np.diff(throughput)
    slack = ROUNDING * throughput[-1]
    assert np.all(gains >= -slack)
    assert np.all(np.diff(gains) <= slack)


@QUICK
@given(networks())
def test_both_pairs_of_bounds_hold_and_the_balanced_ones_are_tighter(curve: MvaCurve) -> None:
    loose = asymptotic_bounds(curve.demands_s, curve.think_s, curve.population)
    tight = balanced_job_bounds(curve.demands_s, curve.think_s, curve.population)
    chain = (loose.lower_per_s, tight.lower_per_s, curve.throughput_per_s, tight.upper_per_s, loose.upper_per_s)
    for smaller, larger in pairwise(chain):
        assert np.all(smaller <= larger * (1.0 + ROUNDING))


@QUICK
@given(networks())
def test_the_asymptotes_cross_at_the_knee(curve: MvaCurve) -> None:
    knee = float(knee_population(curve.demands_s, curve.think_s))
    assert knee >= 1.0 - ROUNDING
    upper = asymptotic_bounds(curve.demands_s, curve.think_s, curve.population).upper_per_s
    linear = curve.population / (curve.think_s + curve.demands_s.sum())
    before = curve.population <= knee
    np.testing.assert_allclose(upper[before], linear[before], rtol=ROUNDING)
    assert np.all(upper[~before] <= linear[~before])


@QUICK
@given(networks())
def test_a_balanced_network_without_thinking_meets_its_bound(curve: MvaCurve) -> None:
    largest = curve.demands_s.max()
    assume(largest > 0.0)
    stations = curve.demands_s.size
    balanced = exact_mva([largest] * stations, 0.0, curve.population.size)
    # X(W) = W / (D (W + K - 1)) for K equal stations of demand D.
    exact = balanced.population / (largest * (balanced.population + stations - 1))
    np.testing.assert_allclose(balanced.throughput_per_s, exact, rtol=ROUNDING)
    bounds = balanced_job_bounds(balanced.demands_s, 0.0, balanced.population)
    np.testing.assert_allclose(bounds.lower_per_s, exact, rtol=ROUNDING)
    np.testing.assert_allclose(bounds.upper_per_s, exact, rtol=ROUNDING)


@QUICK
@given(demand_s=st.floats(1e-6, 1e4), think_s=seconds, population=st.integers(1, 200))
def test_one_station_is_erlangs_finite_source(demand_s: float, think_s: float, population: int) -> None:
    np.testing.assert_allclose(
        exact_mva((demand_s,), think_s, population).throughput_per_s,
        erlang_finite_source(demand_s, think_s, population),
        rtol=1e-9,
    )


@QUICK
@given(networks(), st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
def test_order_of_stations_and_unit_of_time_change_nothing(curve: MvaCurve, random: object, factor: float) -> None:
    demands = curve.demands_s.tolist()
    random.shuffle(demands)  # type: ignore[attr-defined]
    scaled = exact_mva(np.array(demands) * factor, curve.think_s * factor, curve.population.size)
    np.testing.assert_allclose(scaled.throughput_per_s * factor, curve.throughput_per_s, rtol=1e-10)


@QUICK
@given(networks(), st.floats(1.0, 3.0), st.data())
def test_more_demand_or_thinking_never_helps(curve: MvaCurve, factor: float, data: st.DataObject) -> None:
    demands = curve.demands_s.copy()
    demands[data.draw(st.integers(0, demands.size - 1))] *= factor
    slower = exact_mva(demands, curve.think_s * factor, curve.population.size)
    assert np.all(slower.throughput_per_s <= curve.throughput_per_s * (1.0 + ROUNDING))


@QUICK
@given(
    st.integers(1, 4).flatmap(
        lambda stations: st.lists(
            st.tuples(st.lists(st.floats(1e-6, 1e4), min_size=stations, max_size=stations), seconds),
            min_size=1,
            max_size=6,
        )
    ),
    st.integers(1, 20),
)
def test_many_networks_at_once_equal_each_alone(rows: list[tuple[list[float], float]], population: int) -> None:
    demands, think = [row[0] for row in rows], [row[1] for row in rows]
    curves = exact_mva_many(demands, think, population)
    for index, (demands_s, think_s) in enumerate(rows):
        alone = exact_mva(demands_s, think_s, population)
        np.testing.assert_allclose(curves.throughput_per_s[index], alone.throughput_per_s, rtol=ROUNDING)
        np.testing.assert_allclose(curves.residence_s[index], alone.residence_s, rtol=ROUNDING)


@QUICK
@given(
    st.lists(st.floats(1e-4, 1e2), min_size=1, max_size=3), seconds, st.lists(st.integers(0, 4), min_size=1, max_size=3)
)
def test_classes_that_are_alike_are_one_class(demands: list[float], think_s: float, populations: list[int]) -> None:
    total = sum(populations)
    assume(total > 0)
    solved = exact_mva_multiclass([demands] * len(populations), [think_s] * len(populations), populations)
    curve = exact_mva(demands, think_s, total)
    np.testing.assert_allclose(solved.throughput_per_s.sum(), curve.throughput_per_s[-1], rtol=ROUNDING)
    np.testing.assert_allclose(
        solved.throughput_per_s, np.array(populations) / total * curve.throughput_per_s[-1], rtol=ROUNDING
    )
    np.testing.assert_allclose(solved.queue_length.sum(axis=0), curve.queue_length[-1], rtol=ROUNDING)


@QUICK
@given(st.data(), st.integers(1, 3), st.integers(1, 3))
def test_classes_obey_the_laws_and_their_order_changes_nothing(
    data: st.DataObject, classes: int, stations: int
) -> None:
    row = st.lists(st.floats(1e-4, 1e2), min_size=stations, max_size=stations)
    demands = np.array(data.draw(st.lists(row, min_size=classes, max_size=classes)))
    think = np.array(data.draw(st.lists(seconds, min_size=classes, max_size=classes)))
    populations = np.array(data.draw(st.lists(st.integers(1, 4), min_size=classes, max_size=classes)))
    solved = exact_mva_multiclass(demands, think, populations)
    somewhere = solved.queue_length.sum(axis=1) + solved.throughput_per_s * think
    np.testing.assert_allclose(somewhere, populations, rtol=ROUNDING)
    assert np.all(solved.utilisation.sum(axis=0) <= 1.0 + ROUNDING)
    assert np.all(solved.throughput_per_s <= populations / (think + demands.sum(axis=1)) * (1.0 + ROUNDING))
    turned = exact_mva_multiclass(demands[::-1], think[::-1], populations[::-1])
    np.testing.assert_allclose(turned.throughput_per_s[::-1], solved.throughput_per_s, rtol=ROUNDING)
