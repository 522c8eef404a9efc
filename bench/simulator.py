"""Simulated events per second: the compiled simulator beside Ciw, on the same network in the same run."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import ciw
from results import Result

from nodewise_laws import exact_mva
from nodewise_queueing.simulator import Law, SimulationSpec, simulate

WORKERS = 6
COMPUTE_S = 0.5
DEMANDS_S = (0.1, 0.15)
HORIZON_S = 1_000.0
CYCLES = 1_000_000
REPEATS = 3


def compiled_events_per_s(workers: int) -> float:
    """Completions of services per second of wall clock; the first, short run loads the machine code."""
    spec = SimulationSpec(
        compute_s=COMPUTE_S,
        download_s=DEMANDS_S[:1],
        upload_s=DEMANDS_S[1:],
        update_s=(0.0,),
        compute_law=Law.exponential(),
        transfer_law=Law.exponential(),
    )
    simulate(spec, workers, seed=0, cycles=100)
    best = 0.0
    for seed in range(REPEATS):
        started = time.perf_counter()
        result = simulate(spec, workers, seed=seed, cycles=CYCLES)
        best = max(best, result.events / (time.perf_counter() - started))
        if workers == WORKERS:
            exact = float(exact_mva(DEMANDS_S, COMPUTE_S, workers).throughput_per_s[-1])
            assert abs(result.throughput_per_s / exact - 1.0) < 0.01
    return best


def ciw_events_per_s(workers: int) -> float:
    """The same of Ciw, whose records are one per completed service; building the network is not counted."""
    best = 0.0
    for seed in range(REPEATS):
        network = ciw.create_network(
            arrival_distributions=[ciw.dists.Sequential([1e-6, math.inf]), None, None],
            batching_distributions=[ciw.dists.Deterministic(value=workers)] + [ciw.dists.Deterministic(value=1)] * 2,
            service_distributions=[ciw.dists.Exponential(rate=1.0 / mean_s) for mean_s in (COMPUTE_S, *DEMANDS_S)],
            number_of_servers=[math.inf] * 3,
            routing=[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]],
        )
        ciw.seed(seed)
        simulation = ciw.Simulation(network, node_class=[ciw.Node, ciw.PSNode, ciw.PSNode])
        started = time.perf_counter()
        simulation.simulate_until_max_time(HORIZON_S)
        seconds = time.perf_counter() - started
        best = max(best, len(simulation.get_all_records()) / seconds)
    return best


def run() -> Iterator[Result]:
    """Six workers, for which the throughput is known, and many."""
    for workers in (WORKERS, 64):
        events = compiled_events_per_s(workers)
        yield Result(f"simulated_events_of_{workers}_workers", events, "events/s", ciw_events_per_s(workers))
