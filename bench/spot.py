"""Runs of a job on spot machines per second: the compiled simulation beside an event queue in plain Python."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator

import numpy as np
from results import Result

from nodewise_transient.job import Group, Job
from nodewise_transient.lifetimes import weibull
from nodewise_transient.provenance import Provenance
from nodewise_transient.simulation import simulate

WORKERS = 16
DELAY_S = 165.0
LAW = weibull(20 * 3600.0, 0.55, cap_s=86_400.0, provenance=Provenance(data_set="stated"))
RUNS = 100_000
PLAIN_RUNS = 1_000
OFFERS = 128


def job_of(workers: int) -> Job:
    """Eight hours of asynchronous work, replacements after some minutes."""
    groups = (Group(count=workers, lifetime=LAW, replacement_s=(DELAY_S,), price_per_h=1.0),)
    return Job(steps=workers * 28_800.0, groups=groups, speeds=np.arange(workers + 1.0))


def plain_end_s(rng: np.random.Generator) -> float:
    """One run by an event queue."""
    lives = LAW.remaining_s(rng.random(WORKERS)).tolist()
    events = [(life, True) for life in lives]
    heapq.heapify(events)
    now_s, alive, left = 0.0, WORKERS, WORKERS * 28_800.0
    while True:
        time_s, is_loss = heapq.heappop(events)
        if alive and left <= alive * (time_s - now_s):
            return now_s + left / alive
        left -= alive * (time_s - now_s)
        now_s = time_s
        if is_loss:
            alive -= 1
            heapq.heappush(events, (now_s + DELAY_S, False))
        else:
            alive += 1
            heapq.heappush(events, (now_s + float(LAW.remaining_s(rng.random())), True))


def run() -> Iterator[Result]:
    """Runs per second, and offers per second of 2,000 runs each."""
    job = job_of(WORKERS)
    simulate(job, runs=10)
    started = time.perf_counter()
    outcome = simulate(job, runs=RUNS)
    fast = RUNS / (time.perf_counter() - started)
    rng = np.random.default_rng(0)
    started = time.perf_counter()
    plain = np.array([plain_end_s(rng) for _ in range(PLAIN_RUNS)])
    slow = PLAIN_RUNS / (time.perf_counter() - started)
    assert abs(plain.mean() / outcome.time_s.mean - 1.0) < 0.002
    yield Result("spot_runs_16_workers", fast, "runs/s", slow)
    jobs = [job_of(1 + at % WORKERS) for at in range(OFFERS)]
    started = time.perf_counter()
    for each in jobs:
        simulate(each, runs=2_000)
    yield Result("spot_offers", OFFERS / (time.perf_counter() - started), "offers/s", slow / 2_000)
