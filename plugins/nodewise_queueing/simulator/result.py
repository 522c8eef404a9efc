"""What a simulation found."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise.plugin import Floats

__all__ = ["SimulationResult"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationResult:
    """Means after the warm-up. P servers; a station that does not exist is never busy.

    Attributes
    ----------
    workers : int
        Number of workers.
    throughput_per_s : float
        Updates of all workers per second; with a barrier, rounds per second.
    ln_throughput_error : float
        Standard error of ln(throughput_per_s) by batch means.
    batches : int
        Batches that it rests on.
    cycle_s : float
        Mean seconds of a worker's cycle, from its download to its next; the sum of the five phases.
    download_s, compute_s, upload_s, update_s, barrier_s : float
        Mean seconds of a cycle that a worker spends in each phase, waiting included; hidden transfers take none.
    download_utilisation, upload_utilisation, update_utilisation : (P,) arrays
        Share of time that each server's station was busy; the same station twice where the link is half duplex.
    download_queue, upload_queue, update_queue : (P,) arrays
        Mean number of transfers or updates at each station, those in service included.
    staleness_mean : float
        Updates by others between the begin of a worker's download and its own update; 0 with a barrier.
    staleness_p95 : int
        Its 95 % quantile.
    dropped_per_s : float
        Gradients per second that came too late for their round.
    events : int
        Completions of transfers, computations and updates, the warm-up's included.
    simulated_s : float
        Simulated seconds after the warm-up.
    """

    workers: int
    throughput_per_s: float
    ln_throughput_error: float
    batches: int
    cycle_s: float
    download_s: float
    compute_s: float
    upload_s: float
    update_s: float
    barrier_s: float
    download_utilisation: Floats
    upload_utilisation: Floats
    update_utilisation: Floats
    download_queue: Floats
    upload_queue: Floats
    update_queue: Floats
    staleness_mean: float
    staleness_p95: int
    dropped_per_s: float
    events: int
    simulated_s: float
