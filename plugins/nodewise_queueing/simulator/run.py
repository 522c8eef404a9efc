"""Simulation of one job on one number of workers."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, SupportsIndex

import numpy as np

from nodewise.plugin import Floats
from nodewise_queueing.simulator._events import run_events
from nodewise_queueing.simulator._sampling import law_records
from nodewise_queueing.simulator._state import (
    AT,
    COMPUTE,
    LINK,
    LOCK,
    PLACE,
    RUN,
    SERVER,
    STATION,
    WORKER,
    Records,
    State,
)
from nodewise_queueing.simulator.result import SimulationResult
from nodewise_queueing.simulator.specification import Discipline, SimulationSpec

__all__ = ["BATCHES", "simulate"]

BATCHES: Final = 32
"""Batches for the confidence interval: between the 10 to 30 of B. Schmeiser ("Batch size effects in the analysis of
simulation output", Operations Research 30(3), 1982) and what leaves each of them long against the correlation."""

EVENTS_BETWEEN_LOOKS: Final = 20_000
"""Some ten milliseconds, beside which going in and out of compiled code is nothing."""

_STALENESS_PER_WORKER: Final = 16
"""Histogram bins of staleness, in multiples of the number of workers: its mean is one less than that number."""

_NOWHERE: Final = -1
_NO_SERVER: Final = -1


def simulate(
    spec: SimulationSpec,
    workers: SupportsIndex,
    *,
    seed: int,
    cycles: int,
    warm_up_share: float = 0.1,
    look: Callable[[], None] | None = None,
) -> SimulationResult:
    """Simulate a job from event to event until so many updates, or rounds, are done.

    Parameters
    ----------
    spec : SimulationSpec
        The job.
    workers : int
        Number of workers W, at least 1.
    seed : int
        Of the random numbers, at least 0: the same seed gives the same result.
    cycles : int
        Updates of all workers together (with a barrier: rounds) to simulate, the warm-up's included. The batches of
        the confidence interval should be long: a few hundred updates each.
    warm_up_share : float
        Share of them that is not counted, at least 0 and below 1.
    look : callable or None
        Called every EVENTS_BETWEEN_LOOKS events; may raise to end the simulation.

    Returns
    -------
    SimulationResult
        Means over the cycles after the warm-up.

    Raises
    ------
    ValueError
        An argument is out of its range; or no batch would hold a cycle; or no worker would be waited for.
    """
    count, total = _at_least("workers", workers, 1), _at_least("cycles", cycles, BATCHES)
    means_s = spec.compute_means_s(count)
    if not 0.0 <= warm_up_share < 1.0:
        message = f"warm_up_share must be at least 0 and below 1, got {warm_up_share!r}"
        raise ValueError(message)
    if spec.backup_workers >= count:
        message = f"backup_workers must be fewer than workers, {count}, got {spec.backup_workers!r}"
        raise ValueError(message)
    warm_up = int(total * warm_up_share)
    counted = total - warm_up
    if counted < BATCHES:
        message = f"cycles must leave at least {BATCHES} after the warm-up, one per batch, got {cycles!r}"
        raise ValueError(message)

    state = _state(spec, means_s, np.random.Generator(np.random.PCG64(_at_least("seed", seed, 0))))
    ends = np.arange(1, BATCHES + 1) * counted // BATCHES
    ends_s = np.empty(BATCHES)
    at = np.zeros(1, dtype=AT)
    while not run_events(state, at, EVENTS_BETWEEN_LOOKS, warm_up, ends, ends_s):
        if look is not None:
            look()
    events, begin_s = int(at["events"][0]), float(at["begin_s"][0])

    simulated_s = float(ends_s[-1]) - begin_s
    return SimulationResult(
        workers=count,
        throughput_per_s=counted / simulated_s,
        ln_throughput_error=_ln_error(np.diff(ends_s, prepend=begin_s) / np.diff(ends, prepend=0)),
        batches=BATCHES,
        events=events,
        simulated_s=simulated_s,
        **_worker_means(state, simulated_s),
        **_station_means(state, simulated_s),
    )


def _at_least(name: str, value: SupportsIndex, minimum: int) -> int:
    number = operator.index(value)
    if number < minimum:
        message = f"{name} must be at least {minimum}, got {value!r}"
        raise ValueError(message)
    return number


def _state(spec: SimulationSpec, means_s: tuple[float, ...], random: np.random.Generator) -> State:
    """Lay a run out at time 0."""
    stations, servers = _stations_and_servers(spec)
    room = 2 * len(means_s)  # a worker's upload may begin before its download is complete
    places = np.zeros((len(stations), room + 1), dtype=PLACE)
    places["rate"][:, 1:] = 1.0
    is_link = stations["role"] == LINK
    places["rate"][is_link, 1:] = [spec.link.flow_rate(present) for present in range(1, room + 1)]
    workers = np.zeros(len(means_s), dtype=WORKER)
    workers["compute_s"] = means_s
    if spec.start == "staggered":
        # Over a lone worker's cycle.
        workers["head_start_s"] = workers["compute_s"] + max(
            map(sum, zip(spec.download_s, spec.upload_s, spec.update_s, strict=True))
        )
    run = np.zeros(1, dtype=RUN)
    run["download_hidden"] = spec.download_hidden_s / max(spec.download_s) if spec.download_hidden_s else 0.0
    run["upload_hidden_s"] = spec.upload_hidden_s
    run["awaited"] = len(means_s) - spec.backup_workers if spec.barrier else 0
    return State(
        random=random,
        laws=law_records(spec.compute_law, spec.transfer_law, spec.update_law),
        stations=stations,
        places=places,
        workers=workers,
        servers=servers,
        run=run,
        staleness=np.zeros(_STALENESS_PER_WORKER * len(means_s) + 1, dtype=np.int64),
    )


def _stations_and_servers(spec: SimulationSpec) -> tuple[Records, Records]:
    """(S,) stations, only those with work, and (P,) servers whose own work is known."""
    servers = np.zeros(spec.servers, dtype=SERVER)
    servers["download_s"], servers["upload_s"], servers["update_s"] = spec.download_s, spec.upload_s, spec.update_s
    kinds = [(COMPUTE, _NO_SERVER)]
    for number, server in enumerate(servers):
        server["download_at"] = server["upload_at"] = server["update_at"] = _NOWHERE
        if server["download_s"] > 0.0:
            server["download_at"] = len(kinds)
            kinds.append((LINK, number))
        if server["upload_s"] > 0.0:
            if spec.link.half_duplex and server["download_s"] > 0.0:
                server["upload_at"] = server["download_at"]
            else:
                server["upload_at"] = len(kinds)
                kinds.append((LINK, number))
        if server["update_s"] > 0.0:
            server["update_at"] = len(kinds)
            kinds.append((LOCK, number))
    stations = np.zeros(len(kinds), dtype=STATION)
    stations["role"], stations["server"] = zip(*kinds, strict=True)
    links_in_order = spec.link.discipline is Discipline.FIRST_COME_FIRST_SERVED
    stations["in_order"] = (stations["role"] == LOCK) | ((stations["role"] == LINK) & links_in_order)
    stations["next_s"] = np.inf
    return stations, servers


def _ln_error(seconds_per_cycle: Floats) -> float:
    """Standard error of ln(throughput): that of the mean time per cycle over the batches, relative to it."""
    return float(seconds_per_cycle.std(ddof=1) / seconds_per_cycle.mean() / math.sqrt(seconds_per_cycle.size))


def _worker_means(state: State, simulated_s: float) -> dict[str, Any]:
    """Fields of the result that are sums over workers' cycles."""
    run = state.run[0]
    counted = int(run["counted"])
    phases = ("download_s", "compute_s", "upload_s", "update_s", "barrier_s")
    means_s = {phase: float(run[phase]) / counted for phase in phases}
    return {
        **means_s,
        "cycle_s": sum(means_s.values()),
        "staleness_mean": int(run["stale"]) / counted,
        "staleness_p95": int(np.argmax(np.cumsum(state.staleness) >= 0.95 * counted)),
        "dropped_per_s": int(run["dropped"]) / simulated_s,
    }


def _station_means(state: State, simulated_s: float) -> dict[str, Any]:
    """Fields of the result that are integrals over time."""
    means: dict[str, Any] = {}
    for phase in ("download", "upload", "update"):
        numbers = state.servers[f"{phase}_at"]
        for name, integral in (("utilisation", "busy_s"), ("queue", "present_s")):
            means[f"{phase}_{name}"] = np.where(numbers >= 0, state.stations[integral][numbers], 0.0) / simulated_s
    return means
