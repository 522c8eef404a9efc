"""Several parameter servers: the bracket holds a simulated fork and join."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from nodewise_laws import exact_mva, server_bracket, shard_demands_s

CONSTANT, EXPONENTIAL = 0.0, 1.0


def fork_join_per_s(demands_s: tuple[float, ...], size_cv: float, workers: int, think_s: float, steps: int) -> float:
    """Steps per second of workers that think, then use all servers at once, each of which shares its rate."""
    generator = np.random.default_rng(5)

    def gamma(mean: float, cv: float) -> float:
        return float(mean * generator.gamma(1 / cv**2, cv**2)) if cv else mean

    servers = range(len(demands_s))
    # Work that each customer present has had since the start, and when that was last brought up to date.
    served, updated_s = [0.0] * len(demands_s), [0.0] * len(demands_s)
    present: list[list[tuple[float, int]]] = [[] for _ in servers]
    thinking = sorted((think_s * float(generator.random()), worker) for worker in range(workers))
    parts_left = [0] * workers
    finished, begin_s, now_s, warm_up = 0, 0.0, 0.0, steps // 10
    while finished < steps + warm_up:
        now_s, server = thinking[0][0] if thinking else math.inf, -1
        for index in servers:
            if present[index]:
                end_s = updated_s[index] + (present[index][0][0] - served[index]) * len(present[index])
                if end_s < now_s:
                    now_s, server = end_s, index
        if server < 0:
            _, worker = heapq.heappop(thinking)
            parts_left[worker] = len(demands_s)
            for index in servers:
                if present[index]:
                    served[index] += (now_s - updated_s[index]) / len(present[index])
                updated_s[index] = now_s
                heapq.heappush(present[index], (served[index] + gamma(demands_s[index], size_cv), worker))
            continue
        served[server], worker = heapq.heappop(present[server])
        updated_s[server] = now_s
        parts_left[worker] -= 1
        if not parts_left[worker]:
            finished += 1
            begin_s = now_s if finished == warm_up else begin_s
            heapq.heappush(thinking, (now_s + gamma(think_s, 0.3), worker))
    return steps / (now_s - begin_s)


@pytest.mark.parametrize("demands_s", [(0.1, 0.1), (0.15, 0.05), (0.08, 0.1, 0.12, 0.1)])
@pytest.mark.parametrize("workers", [1, 4, 12])
def test_constant_shards_come_out_as_the_slowest_server_alone(demands_s: tuple[float, ...], workers: int) -> None:
    bracket = server_bracket(demands_s, [], 0.5, workers)
    simulated = fork_join_per_s(demands_s, CONSTANT, workers, 0.5, steps=3_000)
    assert simulated == pytest.approx(bracket.slowest_server_per_s[-1], rel=0.015)


@pytest.mark.parametrize("demands_s", [(0.1, 0.1), (0.15, 0.05), (0.08, 0.1, 0.12, 0.1)])
@pytest.mark.parametrize("workers", [1, 4, 12])
def test_the_bracket_holds_whatever_the_sizes(demands_s: tuple[float, ...], workers: int) -> None:
    bracket = server_bracket(demands_s, [], 0.5, workers)
    simulated = fork_join_per_s(demands_s, EXPONENTIAL, workers, 0.5, steps=4_000)
    assert bracket.pessimistic_per_s[-1] * 0.99 <= simulated <= bracket.optimistic_per_s[-1] * 1.02


def test_one_server_is_a_plain_network() -> None:
    bracket, plain = server_bracket([0.1], [0.05], 0.5, 10), exact_mva([0.1, 0.05], 0.5, 10).throughput_per_s
    for curve in (bracket.pessimistic_per_s, bracket.slowest_server_per_s, bracket.optimistic_per_s):
        np.testing.assert_allclose(curve, plain, rtol=1e-13)
    assert bracket.bound_per_s == pytest.approx(10.0)
    np.testing.assert_array_equal(bracket.population, np.arange(1, 11))


def test_even_shards_divide_the_demand_and_uneven_ones_are_held_by_the_bound() -> None:
    even = server_bracket([0.05, 0.05], [0.02], 0.5, 40)
    np.testing.assert_allclose(even.optimistic_per_s, exact_mva([0.05, 0.02], 0.5, 40).throughput_per_s, rtol=1e-13)
    np.testing.assert_array_equal(even.optimistic_per_s, even.slowest_server_per_s)
    uneven = server_bracket([0.09, 0.01], [0.02], 0.5, 40)
    assert uneven.optimistic_per_s[-1] == uneven.bound_per_s == pytest.approx(1 / 0.09)
    assert np.all(uneven.slowest_server_per_s < even.slowest_server_per_s)


def test_each_phase_uses_its_own_servers() -> None:
    both = server_bracket([[0.1, 0.05], [0.04, 0.2]], [0.01], 0.5, 8)
    assert both.bound_per_s == pytest.approx(5.0)
    np.testing.assert_allclose(
        both.slowest_server_per_s, exact_mva([0.1, 0.2, 0.01], 0.5, 8).throughput_per_s, rtol=1e-13
    )
    np.testing.assert_allclose(
        both.pessimistic_per_s, exact_mva([0.1, 0.05, 0.04, 0.2, 0.01], 0.5, 8).throughput_per_s, rtol=1e-13
    )


def test_servers_without_a_demand_bound_nothing() -> None:
    bracket = server_bracket([0.0, 0.0], [], 0.5, 3)
    assert bracket.bound_per_s == math.inf
    np.testing.assert_allclose(bracket.optimistic_per_s, (2.0, 4.0, 6.0), rtol=1e-14)


def test_a_shard_costs_its_bytes_and_its_messages() -> None:
    demands = shard_demands_s([1e6, 3e6], [1e8, 1e8], tensors=[10, 4], overhead_s=1e-3)
    np.testing.assert_allclose(demands, (0.02, 0.034), rtol=1e-15)
    np.testing.assert_allclose(shard_demands_s([1e6, 3e6], 1e8), (0.01, 0.03), rtol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], 0.5, 3), r"server_demands_s must be \(P,\) or \(F, P\)"),
        ((0.1, [], 0.5, 3), r"server_demands_s must be \(P,\) or \(F, P\)"),
        (([-0.1], [], 0.5, 3), "server_demands_s must be finite"),
        (([0.1], 0.1, 0.5, 3), "other_demands_s must have 1 axes"),
        (([0.1], [], -0.5, 3), "think_s must be finite"),
        (([0.1], [], 0.5, 0), "population must be an integer"),
        (([0.0], [], 0.0, 1), "more than 0 seconds"),
    ],
)
def test_names_the_argument_that_is_wrong(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        server_bracket(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "rate", "more", "message"),
    [
        ([-1.0], 1.0, {}, "shard_bytes must be finite"),
        ([1.0], 0.0, {}, "bytes_per_s must be more than 0"),
        ([1.0, 1.0], [1.0, 1.0, 1.0], {}, "must broadcast together"),
        ([1.0], 1.0, {"tensors": -1.0}, "tensors must be finite"),
        ([1.0], 1.0, {"overhead_s": math.nan}, "overhead_s must be finite"),
    ],
)
def test_names_what_is_wrong_with_a_shard(size: object, rate: object, more: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shard_demands_s(size, rate, **more)  # type: ignore[arg-type]
