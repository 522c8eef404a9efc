"""Ciw (G. I. Palmer et al., Journal of Simulation 13(1), 2019) simulates what the laws compute.

Mean value analysis promises the same throughput for every law of service under processor sharing, so
the networks differ in law as well as in numbers. Exactly deterministic times are left out: started
together they run in lock-step, which is no stationary network, and Ciw loses customers on exact ties.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from nodewise_laws import exact_mva, flow_capped_rates, load_dependent

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

ciw = pytest.importorskip("ciw", reason="Ciw is not installed")

CYCLES = 12_000
WARM_UP = 0.1


def _law(name: str, mean_s: float) -> Any:
    """Return a continuous law of the given mean."""
    if name == "exponential":
        return ciw.dists.Exponential(rate=1.0 / mean_s)
    if name == "uniform":
        return ciw.dists.Uniform(lower=0.7 * mean_s, upper=1.3 * mean_s)
    if name == "gamma":
        return ciw.dists.Gamma(shape=1.0 / 0.3**2, scale=mean_s * 0.3**2)
    assert name == "lognormal"
    deviation = math.sqrt(math.log(1.0 + 1.0**2))
    return ciw.dists.Lognormal(mean=math.log(mean_s) - deviation**2 / 2.0, sd=deviation)


def _simulated_throughput(
    law: str, demands_s: list[float], think_s: float, population: int, *, horizon_s: float, seed: int, flows: int = 1
) -> float:
    """Cycles per second after the warm-up, of a closed network that Ciw simulates.

    A station serves up to `flows` customers at full rate, and shares the rate of so many among more.
    """
    stations = 1 + len(demands_s)
    # A closed population enters as one batch right after the start, and nobody ever after.
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([1e-6, math.inf])] + [None] * len(demands_s),
        batching_distributions=[ciw.dists.Deterministic(value=population)]
        + [ciw.dists.Deterministic(value=1)] * len(demands_s),
        service_distributions=[_law(law, think_s)] + [_law(law, demand) for demand in demands_s],
        number_of_servers=[math.inf] * stations,
        ps_thresholds=[flows] * stations,
        # Ciw reads routing entries as floats only.
        routing=[[1.0 if to == (at + 1) % stations else 0.0 for to in range(stations)] for at in range(stations)],
    )
    ciw.seed(seed)
    simulation = ciw.Simulation(network, node_class=[ciw.Node] + [ciw.PSNode] * len(demands_s))
    simulation.simulate_until_max_time(horizon_s)
    begin_s = WARM_UP * horizon_s
    finished = sum(1 for record in simulation.get_all_records() if record.node == 1 and record.exit_date > begin_s)
    return finished / (horizon_s - begin_s)


@pytest.mark.parametrize("law", ["exponential", "uniform", "gamma", "lognormal"])
@pytest.mark.parametrize("seed", range(2))
def test_simulated_throughput_is_within_two_per_cent(law: str, seed: int) -> None:
    numbers = np.random.default_rng([seed, len(law)])
    demands = numbers.uniform(0.05, 0.3, int(numbers.integers(1, 4))).tolist()
    think, population = float(numbers.uniform(0.2, 1.5)), int(numbers.integers(2, 11))
    expected = float(exact_mva(demands, think, population).throughput_per_s[-1])
    simulated = _simulated_throughput(law, demands, think, population, horizon_s=CYCLES / expected, seed=seed)
    assert simulated == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("law", "flows"), [("exponential", 2), ("gamma", 3)])
def test_simulated_capped_flows_are_within_two_per_cent(law: str, flows: int) -> None:
    """Links on which one flow uses a part of the rate: load-dependent stations, whatever the law of sizes."""
    demands, think, population = [0.3, 0.2], 0.5, 7
    curve = load_dependent(demands, flow_capped_rates(population, flows), think, population)
    expected = float(curve.throughput_per_s[-1])
    simulated = _simulated_throughput(
        law, demands, think, population, horizon_s=CYCLES / expected, seed=flows, flows=flows
    )
    assert simulated == pytest.approx(expected, rel=0.02)
