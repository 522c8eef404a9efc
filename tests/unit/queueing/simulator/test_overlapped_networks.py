"""Networks in which part of each residence costs the cycle no time; and long recursions equal short ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from nodewise_laws import exact_mva, exact_mva_many, mva, overlapped_mva

Floats = npt.NDArray[np.float64]


def by_the_formula(demands: Floats, saved: Floats, think: float, population: int) -> tuple[Floats, Floats]:
    """Throughput and exposed seconds, array by array, where service is shared."""
    shortest = min(demands.max(), think + np.maximum(demands - saved, 0.0).sum())
    rates, exposed, queue = [], [], np.zeros(demands.size)
    for number in range(1, population + 1):
        residence = demands * (1.0 + queue)
        parts = np.maximum(residence - saved, 0.0)
        parts[demands.argmax()] += max(0.0, number * shortest - think - parts.sum())
        rates.append(number / (think + parts.sum()))
        exposed.append(parts)
        queue = np.minimum(rates[-1] * residence, number)
    return np.array(rates), np.array(exposed)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("plain", [True, False])
def test_recursions_follow_the_formula(seed: int, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mva, "PLAIN_CELLS", 10**6 if plain else 0)
    numbers = np.random.default_rng(seed)
    count = int(numbers.integers(1, 5))
    demands, saved = numbers.uniform(0.01, 0.3, count), numbers.uniform(-0.1, 0.3, count)
    rates, exposed = by_the_formula(demands, saved, 0.4, 40)
    found = overlapped_mva(demands, saved, 0.4, 40)
    np.testing.assert_allclose(found.throughput_per_s, rates, rtol=1e-12)
    np.testing.assert_allclose(found.exposed_s, exposed, rtol=1e-12, atol=1e-15)
    # Little: the exposed parts and the think time make up the cycle.
    cycle_s = np.arange(1, 41) / found.throughput_per_s
    np.testing.assert_allclose(0.4 + found.exposed_s.sum(axis=1), cycle_s, rtol=1e-12)


def test_without_anything_saved_it_is_exact() -> None:
    found, exact = overlapped_mva((0.1, 0.15), (0.0, 0.0), 0.5, 12), exact_mva((0.1, 0.15), 0.5, 12)
    np.testing.assert_array_equal(found.throughput_per_s, exact.throughput_per_s)
    np.testing.assert_array_equal(found.residence_s, exact.residence_s)
    assert overlapped_mva((), (), 0.5, 2).throughput_per_s.tolist() == [2.0, 4.0]


def test_one_worker_is_its_profile_and_many_meet_the_busiest_station() -> None:
    found = overlapped_mva((0.1, 0.15), (0.05, 0.1), 0.5, 400)
    assert found.throughput_per_s[0] == pytest.approx(1.0 / 0.6)
    assert found.throughput_per_s[-1] <= 1.0 / 0.15 + 1e-12
    assert found.throughput_per_s[-1] == pytest.approx(1.0 / 0.15, rel=0.01)


@pytest.mark.parametrize(
    ("demands", "saved", "think"),
    [((0.1,), (0.1, 0.2), 0.5), ((0.1,), (np.nan,), 0.5), ((-0.1,), (0.1,), 0.5), ((0.1,), (0.1,), 0.0)],
)
def test_what_is_no_network_is_refused(demands: tuple[float, ...], saved: tuple[float, ...], think: float) -> None:
    with pytest.raises(ValueError, match="must"):
        overlapped_mva(demands, saved, think, 3)


@pytest.mark.parametrize("stations", [1, 3, 7])
def test_long_recursions_equal_short_ones(stations: int) -> None:
    numbers = np.random.default_rng(stations)
    demands, customers = numbers.uniform(0.0, 0.3, stations), 2 * mva.PLAIN_CELLS // stations
    long = exact_mva(demands, 0.5, customers)
    short = exact_mva(demands, 0.5, mva.PLAIN_CELLS // stations)
    np.testing.assert_array_equal(long.throughput_per_s[: short.throughput_per_s.size], short.throughput_per_s)
    together = exact_mva_many(demands[np.newaxis], 0.5, customers)
    np.testing.assert_allclose(long.throughput_per_s, together.throughput_per_s[0], rtol=1e-12)
    np.testing.assert_allclose(long.residence_s, together.residence_s[0], rtol=1e-12)


def test_long_recursions_take_any_array() -> None:
    demands = np.array([0.1, 0.0, 0.15, 0.0])[::2]
    demands.flags.writeable = False
    expected = exact_mva([0.1, 0.15], 0.5, 1000).throughput_per_s
    np.testing.assert_array_equal(exact_mva(demands, 0.5, 1000).throughput_per_s, expected)
    curve = exact_mva([0.1, 0.15], 0.5, 1000)
    np.testing.assert_array_equal(exact_mva(curve.demands_s, 0.5, 1000).throughput_per_s, expected)
    saved = overlapped_mva(demands, demands, 0.5, 1000).throughput_per_s
    np.testing.assert_array_equal(saved, overlapped_mva([0.1, 0.15], [0.1, 0.15], 0.5, 1000).throughput_per_s)
