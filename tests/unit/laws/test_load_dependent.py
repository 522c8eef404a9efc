"""Stations whose rate depends on how many customers are present."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
import pytest

from nodewise_laws import LoadDependentCurve, exact_mva, flow_capped_rates, load_dependent


@pytest.mark.parametrize(
    ("cap_ratio", "golden"),
    [
        (2, (1.25, 2.5, 3.653663, 4.642226, 5.419834, 5.971730, 6.319375, 6.511648)),
        (3, (1.25, 2.5, 3.75, 4.967257, 6.109959, 7.135958, 8.008735, 8.704188)),
    ],
)
def test_reproduces_the_golden_values_of_capped_flows(cap_ratio: float, golden: tuple[float, ...]) -> None:
    curve = load_dependent([0.3], flow_capped_rates(8, cap_ratio), 0.5, 8)
    np.testing.assert_allclose(curve.throughput_per_s, golden, atol=5e-7)


def test_plain_rates_are_the_plain_recursion_at_any_size() -> None:
    demands, think = (0.1, 0.15, 0.0, 0.02), 0.5
    curve, plain = load_dependent(demands, 1.0, think, 1_500), exact_mva(demands, think, 1_500)
    np.testing.assert_allclose(curve.throughput_per_s, plain.throughput_per_s, rtol=1e-11)
    np.testing.assert_allclose(curve.residence_s, plain.residence_s, rtol=1e-11)
    np.testing.assert_allclose(curve.queue_length, plain.queue_length, rtol=1e-11)
    np.testing.assert_allclose(curve.busy_share, plain.utilisation, rtol=1e-11)
    np.testing.assert_allclose(curve.cycle_s, plain.cycle_s, rtol=1e-11)


def placements(customers: int, stations: int) -> Iterator[tuple[int, ...]]:
    """Every way to place so many customers at so many stations."""
    for walls in combinations_with_replacement(range(customers + 1), stations - 1):
        bounds = (0, *walls, customers)
        yield tuple(bounds[k + 1] - bounds[k] for k in range(stations))


def test_every_placement_counted_one_by_one_says_the_same() -> None:
    """The product form itself, summed over all states in plain numbers."""
    demands, think, customers = (0.2, 0.05), 0.3, 6
    rates = np.array([[0.5, 1.7, 1.1, 3.0, 0.2, 2.0], [1.0, 2.0, 2.5, 2.5, 2.5, 2.5]])

    def solve(population: int) -> tuple[float, np.ndarray, np.ndarray]:
        total, queue, busy = 0.0, np.zeros(2), np.zeros(2)
        for thinking, *present in placements(population, 3):
            weight = think**thinking / math.factorial(thinking)
            for station, number in enumerate(present):
                weight *= demands[station] ** number / math.prod(rates[station, :number].tolist())
            total += weight
            queue += weight * np.array(present)
            busy += weight * (np.array(present) > 0)
        return total, queue / total, busy / total

    curve = load_dependent(demands, rates, think, customers)
    constants = [1.0]
    for population in range(1, customers + 1):
        total, queue, busy = solve(population)
        constants.append(total)
        assert curve.throughput_per_s[population - 1] == pytest.approx(constants[-2] / constants[-1], rel=1e-12)
        np.testing.assert_allclose(curve.queue_length[population - 1], queue, rtol=1e-12)
        np.testing.assert_allclose(curve.busy_share[population - 1], busy, rtol=1e-12)


@pytest.mark.parametrize("cap_ratio", [8.0, 8.5, 1e6])
def test_up_to_the_cap_nobody_waits(cap_ratio: float) -> None:
    curve = load_dependent([0.3, 0.2], flow_capped_rates(8, cap_ratio), 0.5, 8)
    np.testing.assert_allclose(curve.throughput_per_s, curve.population / 1.0, rtol=1e-14)
    np.testing.assert_allclose(curve.residence_s, np.broadcast_to((0.3, 0.2), (8, 2)), rtol=1e-13)


def test_a_ratio_need_not_be_whole_and_may_be_less_than_one() -> None:
    np.testing.assert_array_equal(flow_capped_rates(4, 2.5), (1.0, 2.0, 2.5, 2.5))
    # A flow that could use twice the link: its demand over the link's rate is the plain demand.
    slow = load_dependent([0.3], flow_capped_rates(6, 0.5), 0.5, 6)
    np.testing.assert_allclose(slow.throughput_per_s, exact_mva([0.6], 0.5, 6).throughput_per_s, rtol=1e-13)


def test_a_link_saturates_at_its_own_rate_whatever_one_flow_can_use() -> None:
    curve = load_dependent([0.3], flow_capped_rates(400, 7.5), 0.5, 400)
    assert curve.throughput_per_s[-1] == pytest.approx(7.5 / 0.3, rel=1e-12)
    assert curve.busy_share[-1, 0] == pytest.approx(1.0, abs=1e-12)


def test_goodput_that_falls_with_flows_makes_throughput_fall() -> None:
    falling = 1.0 / (1.0 + 0.05 * np.arange(40))
    curve = load_dependent([0.1], falling, 1.0, 40)
    peak = int(curve.throughput_per_s.argmax())
    assert 5 < peak < 20
    assert np.all(np.diff(curve.throughput_per_s[peak:]) < 0.0)
    assert curve.throughput_per_s[-1] < 0.6 * curve.throughput_per_s[peak]


def test_thousands_of_customers_neither_overflow_nor_lose_anybody() -> None:
    curve = load_dependent([0.01, 1.0, 1e-6], np.array([[50.0], [2.0], [1e-3]]), 300.0, 2_000)
    somewhere = curve.queue_length.sum(axis=1) + curve.throughput_per_s * curve.think_s
    np.testing.assert_allclose(somewhere, curve.population, rtol=1e-10)
    assert curve.throughput_per_s[-1] == pytest.approx(2.0, rel=1e-9)


def test_without_stations_everybody_thinks() -> None:
    curve = load_dependent([], 1.0, 2.0, 5)
    np.testing.assert_allclose(curve.throughput_per_s, curve.population / 2.0, rtol=1e-14)
    assert curve.queue_length.shape == (5, 0)


def test_the_answer_cannot_be_changed() -> None:
    curve: LoadDependentCurve = load_dependent([0.3], 1.0, 0.5, 3)
    with pytest.raises(ValueError, match="read-only"):
        curve.throughput_per_s[0] = 0.0


@pytest.mark.parametrize(
    ("demands_s", "rates", "think_s", "population", "message"),
    [
        ([-0.1], 1.0, 1.0, 2, "demands_s must be finite and at least 0"),
        ([[0.1]], 1.0, 1.0, 2, "demands_s must have 1 axes"),
        ([0.1], 0.0, 1.0, 2, "rates must be finite and more than 0"),
        ([0.1], math.inf, 1.0, 2, "rates must be finite and more than 0"),
        ([0.1], [1.0, 2.0, 2.0], 1.0, 2, r"rates must broadcast to \(1, 2\)"),
        ([0.1], 1.0, -1.0, 2, "think_s must be finite and at least 0"),
        ([0.1], 1.0, 1.0, 0, "population must be an integer of at least 1"),
        ([0.0], 1.0, 0.0, 2, "a cycle of more than 0 seconds"),
    ],
)
def test_names_the_argument_that_is_wrong(
    demands_s: object, rates: object, think_s: float, population: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        load_dependent(demands_s, rates, think_s, population)  # type: ignore[arg-type]


@pytest.mark.parametrize(("population", "cap_ratio"), [(0, 1.0), (2, 0.0), (2, -1.0), (2, math.nan)])
def test_names_what_is_wrong_with_a_cap(population: int, cap_ratio: float) -> None:
    with pytest.raises(ValueError, match="population" if population < 1 else "cap_ratio"):
        flow_capped_rates(population, cap_ratio)
