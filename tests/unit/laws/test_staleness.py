"""How many updates of others come between a pull and the push that follows."""

from __future__ import annotations

import heapq
import math

import numpy as np
import numpy.typing as npt
import pytest

from nodewise_laws import exact_mva, private_cycle_cv, staleness_deviation, staleness_p95

COMPUTE_CV = 0.3


def simulated(
    compute_s: float, demands_s: tuple[float, ...], workers: int, *, size_cv: float = 0.0, updates: int = 6_000
) -> npt.NDArray[np.int64]:
    """Staleness of every update; stations share their rate, the first before computing and the others after it."""
    generator = np.random.default_rng(3)

    def gamma(mean: float, cv: float) -> float:
        return float(mean * generator.gamma(1 / cv**2, cv**2)) if cv else mean

    stations = range(len(demands_s))
    served, updated_s = [0.0] * len(demands_s), [0.0] * len(demands_s)
    present: list[list[tuple[float, int]]] = [[] for _ in stations]
    computing = sorted((compute_s * float(generator.random()), worker) for worker in range(workers))
    pulled_at, stale, pushes, warm_up = [0] * workers, [], 0, 20 * workers
    while pushes < updates + warm_up:
        now_s, station = computing[0][0] if computing else math.inf, -1
        for index in stations:
            if present[index]:
                end_s = updated_s[index] + (present[index][0][0] - served[index]) * len(present[index])
                if end_s < now_s:
                    now_s, station = end_s, index
        if station < 0:
            _, worker = heapq.heappop(computing)
            following = 1
        else:
            served[station], worker = heapq.heappop(present[station])
            updated_s[station] = now_s
            following = station + 1 if station else -1
        if following == len(demands_s):
            if pushes >= warm_up:
                stale.append(pushes - pulled_at[worker])
            pushes += 1
            pulled_at[worker] = pushes
            following = 0
        if following < 0:
            heapq.heappush(computing, (now_s + gamma(compute_s, COMPUTE_CV), worker))
            continue
        if present[following]:
            served[following] += (now_s - updated_s[following]) / len(present[following])
        updated_s[following] = now_s
        heapq.heappush(present[following], (served[following] + gamma(demands_s[following], size_cv), worker))
    return np.array(stale)


@pytest.mark.parametrize("workers", [2, 4, 8, 16])
@pytest.mark.parametrize(
    ("compute_s", "demands_s"), [(1.0, (0.01, 0.01, 0.005)), (1.0, (0.1, 0.1, 0.02)), (0.3, (0.2, 0.2, 0.05))]
)
def test_simulated_staleness_has_the_mean_the_spread_and_the_percentile(
    compute_s: float, demands_s: tuple[float, ...], workers: int
) -> None:
    stale = simulated(compute_s, demands_s, workers)
    cycle_s = float(exact_mva(demands_s, compute_s, workers).cycle_s[-1])
    private = private_cycle_cv(cycle_s, compute_s, COMPUTE_CV)
    assert stale.mean() == pytest.approx(workers - 1, abs=0.02)
    assert stale.std() == pytest.approx(staleness_deviation(workers, private), rel=0.12)
    assert np.percentile(stale, 95) == pytest.approx(staleness_p95(workers, private), abs=1.0)


@pytest.mark.parametrize("workers", [4, 16])
def test_transfers_of_unequal_size_overtake(workers: int) -> None:
    curve = exact_mva((0.1, 0.1, 0.02), 1.0, workers)
    stale = simulated(1.0, (0.1, 0.1, 0.02), workers, size_cv=1.0)
    private = private_cycle_cv(curve.cycle_s[-1], 1.0, COMPUTE_CV, residence_s=curve.residence_s[-1], service_cv=1.0)
    assert np.percentile(stale, 95) == pytest.approx(staleness_p95(workers, private), rel=0.1)


def test_exponential_cycles_are_poisson_processes() -> None:
    """Pushes of one other worker in an exponential cycle are geometric: variance 2, 95th percentile of W many known."""
    np.testing.assert_allclose(staleness_deviation([2, 5], 1.0), np.sqrt((2.0, 20.0)), rtol=1e-12)
    # A gamma law of W - 1 = 1,000 times an exponential cycle: ln 20 times the mean.
    assert float(staleness_p95(1_001, 1.0)) == pytest.approx(1_000 * math.log(20.0), rel=0.01)


def test_one_worker_and_equal_cycles_are_never_staler_than_the_mean() -> None:
    np.testing.assert_array_equal(staleness_p95(1, [0.0, 0.5, 3.0]), (0.0, 0.0, 0.0))
    np.testing.assert_array_equal(staleness_p95([1, 2, 9], 0.0), (0.0, 1.0, 8.0))


def test_a_cycle_varies_by_what_is_not_shared() -> None:
    assert private_cycle_cv(2.0, 1.0, 0.3) == pytest.approx(0.15)
    assert private_cycle_cv(2.0, 0.0, 0.3, residence_s=[0.6, 0.8], service_cv=1.0) == pytest.approx(0.5)
    curve = private_cycle_cv([1.0, 2.0], 1.0, 0.3, residence_s=np.ones((2, 3)), service_cv=0.0)
    np.testing.assert_allclose(curve, (0.3, 0.15))


@pytest.mark.parametrize(
    ("workers", "cycle_cv", "message"),
    [(0, 0.1, "workers"), (1.5, 0.1, "workers"), (2, -0.1, "cycle_cv"), ([1, 2], [0.1, 0.2, 0.3], "broadcast")],
)
def test_names_the_argument_that_is_wrong(workers: object, cycle_cv: object, message: str) -> None:
    for function in (staleness_p95, staleness_deviation):
        with pytest.raises(ValueError, match=message):
            function(workers, cycle_cv)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"cycle_s": 0.0},
        {"compute_s": -1.0},
        {"compute_cv": math.inf},
        {"residence_s": [-1.0]},
        {"service_cv": [0.1, 0.2], "residence_s": [1.0, 1.0, 1.0]},
    ],
)
def test_names_what_is_wrong_with_a_cycle(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        private_cycle_cv(**{"cycle_s": 1.0, "compute_s": 0.5, "compute_cv": 0.1, **wrong})
