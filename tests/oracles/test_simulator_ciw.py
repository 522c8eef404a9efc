"""Ciw simulates, in its own way, networks for which no law is exact: nearly constant or wide times, served in order."""

from __future__ import annotations

import math
from typing import Any

import pytest

from nodewise_queueing.simulator import Discipline, Law, Link, SimulationSpec, simulate

pytestmark = [pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]

ciw = pytest.importorskip("ciw", reason="Ciw is not installed")

DEMANDS_S = (0.1, 0.15)
COMPUTE_S = 0.5
CYCLES = 12_000


def laws(name: str, mean_s: float) -> tuple[Law, Any]:
    if name == "uniform":
        return Law.uniform(0.3), ciw.dists.Uniform(lower=0.7 * mean_s, upper=1.3 * mean_s)
    cv = {"erlang": 0.5, "wide": 1.5}[name]
    return Law.gamma(cv), ciw.dists.Gamma(shape=cv**-2, scale=mean_s * cv**2)


@pytest.mark.parametrize("name", ["uniform", "erlang", "wide"])
def test_service_in_order_as_ciw_sees_it(name: str) -> None:
    workers, horizon_s = 5, CYCLES / 5.0
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([1e-6, math.inf]), None, None],
        batching_distributions=[ciw.dists.Deterministic(value=workers)] + [ciw.dists.Deterministic(value=1)] * 2,
        service_distributions=[laws(name, mean_s)[1] for mean_s in (COMPUTE_S, *DEMANDS_S)],
        number_of_servers=[math.inf, 1, 1],
        routing=[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
    )
    ciw.seed(1)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_time(horizon_s)
    begin_s = 0.1 * horizon_s
    ends = [record.exit_date for record in simulation.get_all_records() if record.node == 3]
    expected = sum(end > begin_s for end in ends) / (horizon_s - begin_s)

    law = laws(name, 1.0)[0]
    spec = SimulationSpec(
        compute_s=COMPUTE_S,
        download_s=DEMANDS_S[:1],
        upload_s=DEMANDS_S[1:],
        update_s=(0.0,),
        compute_law=law,
        transfer_law=law,
        link=Link(discipline=Discipline.FIRST_COME_FIRST_SERVED),
    )
    found = simulate(spec, workers, seed=1, cycles=200_000)
    assert found.throughput_per_s == pytest.approx(expected, rel=0.025)
