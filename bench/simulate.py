"""Simulations, beside a plain loop that builds what the policy sees anew for each decision, on the same jobs."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from results import Result

from nodewise.domain.budget import Budget
from nodewise.domain.columns import as_floats, as_ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.schedule import Allocation, ClusterState, CurrentAllocation, Curves, JobState, NodePool
from nodewise.hosting.registry import LoadedPlugin, load_registry
from nodewise.plugin import PolicyRecord
from nodewise.scheduling.placement import PlacementRequest, choose_nodes
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import Clock, SimulationSettings
from nodewise_job_traces import Curve, Job
from nodewise_job_traces.gavel import SETTINGS as GAVEL_SETTINGS
from nodewise_job_traces.gavel import read_gavel_table, read_gavel_trace
from nodewise_job_traces.generators import diurnal, generate_jobs, log_normal
from nodewise_job_traces.logs import LeftOut, jobs_of_log
from nodewise_job_traces.philly import read_philly
from nodewise_job_traces.pollux import pollux_curves, read_pollux_workload, read_step_times

DATA = os.environ.get("NODEWISE_DATA")
REPEATS = 3
GAVEL_S = {"fifo": 2.8, "max-min-fairness": 5.6, "max-min-fairness-aware": 3.0}
"""Published elsewhere for Gavel's own simulator on this trace (two cores); it is not run here."""
PHILLY_NODES, PHILLY_NODE_DEVICES, PHILLY_ROUND_S = 312, 8, 360.0
"""The published size of that cluster (2,490 GPUs)."""
PHILLY_HEAD = 3_000
STATED = [field.name for field in fields(Job) if field.name not in {"curve", "predicted"}]
stated_of = attrgetter(*STATED)


def pool(name: str, sizes: Sequence[int]) -> NodePool:
    return NodePool(name=name, device=name, available_devices=as_ints(sizes))


def as_simulated(jobs: Iterable[Job], devices_per_node: Sequence[int] = ()) -> Iterator[SimulatedJob]:
    """Jobs of a file or a law as the simulation has them."""
    curves: dict[Curve, JobCurve] = {}
    for job in jobs:
        if job.curve not in curves:
            curves[job.curve] = JobCurve.of(job.curve.rates, devices_per_node)
        stated: dict[str, Any] = dict(zip(STATED, stated_of(job)))
        yield SimulatedJob(**stated, curve=curves[job.curve])


def plain(jobs: Sequence[SimulatedJob], pools: Sequence[NodePool], policy: PolicyRecord, round_s: float) -> float:
    """Mean response time by a straightforward loop over fixed rounds; no costs, no chances."""
    waiting = sorted(jobs, key=lambda job: (job.arrival_s, job.job_id))
    left: dict[str, float] = {}
    held: dict[str, CurrentAllocation] = {}
    active: list[SimulatedJob] = []
    responses: list[float] = []
    now_s = math.ceil(waiting[0].arrival_s / round_s) * round_s
    while waiting or active:
        while waiting and waiting[0].arrival_s <= now_s:
            job = waiting.pop(0)
            active.append(job)
            left[job.job_id] = job.samples
        states = tuple(
            JobState(
                job_id=job.job_id,
                remaining_samples=left[job.job_id],
                submit_time_s=job.arrival_s,
                allowed_devices=job.curve.counts,
                allowed_pools=job.curve.pools,
                requested_devices=job.requested_devices,
                queue=job.queue,
                current=held.get(job.job_id),
            )
            for job in active
        )
        curves = [job.curve for job in active]
        devices = as_ints(np.concatenate([np.zeros(0, dtype=np.int64), *(curve.devices for curve in curves)]))
        seen = Curves(
            offsets=as_ints(np.cumsum([0, *(len(curve) for curve in curves)])),
            pool=as_ints(np.concatenate([np.zeros(0, dtype=np.int64), *(curve.pool for curve in curves)])),
            devices=devices,
            nodes=as_ints(np.concatenate([np.zeros(0, dtype=np.int64), *(curve.nodes for curve in curves)])),
            samples_per_s=as_floats(np.concatenate([np.zeros(0), *(curve.samples_per_s for curve in curves)])),
            configurations=Configurations.of(len(devices), workers=devices),
        )
        parameters = {each.name: each.default for each in policy.parameters}
        state = ClusterState(now_s=now_s, pools=tuple(pools), jobs=states, parameters=parameters)
        decided = policy.policy.decide(state, seen, Budget())
        assert isinstance(decided, Allocation)
        granted = [(job, grant) for job, grant in zip(active, decided.grants) if grant.devices]
        wanted = []
        for job, grant in granted:
            current = held.get(job.job_id)
            stays = current is not None and (current.pool, current.devices) == (grant.pool, grant.devices)
            keep = current.placement if current is not None and stays else None
            wanted.append(PlacementRequest(pool=grant.pool, devices=grant.devices, keep=keep))
        held = {
            job.job_id: CurrentAllocation(pool=grant.pool, placement=places)
            for (job, grant), places in zip(granted, choose_nodes(pools, wanted))
        }
        for job, grant in granted:
            rate = job.curve.rates[grant.pool, grant.devices]
            if left[job.job_id] <= rate * round_s:
                responses.append(now_s + left[job.job_id] / rate - job.arrival_s)
                active.remove(job)
                del held[job.job_id]
            left[job.job_id] -= rate * round_s
        now_s += round_s
        if not active and waiting:
            now_s = max(now_s, math.ceil(waiting[0].arrival_s / round_s) * round_s)
    return float(np.mean(responses))


def timed(run: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the quickest of some runs."""
    best = math.inf
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - started)
    return best


def made_up(policies: Mapping[str, LoadedPlugin[PolicyRecord]]) -> Iterator[Result]:
    """2,000 elastic jobs of three curves over days and nights on 64 devices."""
    curves = [Curve.of({(0, n): n / (1 + drag * (n - 1)) for n in (1, 2, 4, 8, 16, 32)}) for drag in (0.02, 0.1, 0.3)]
    laws = (diurnal(60.0), log_normal(1_200.0, 1.2))
    jobs = list(as_simulated(generate_jobs(*laws, curves, jobs=2_000, requested=(1, 2, 4), seed=1), (8,)))
    cluster = [pool("gpu", [8] * 8)]
    for name in ("fifo", "equal-share", "efficiency-capped"):

        def run(name: str = name) -> SimulationResult:
            settings = SimulationSettings(clock=Clock.FIXED_ROUNDS, round_s=60.0)
            return simulate(jobs, cluster, policies[name], settings)

        same = plain(jobs, cluster, policies[name].record, 60.0)
        assert abs(run().per_job.response_s.mean() / same - 1) < 1e-9
        seconds = timed(run)
        yield Result(
            f"simulate_2000_elastic_jobs_{name}",
            seconds,
            "s",
            timed(lambda n=name: plain(jobs, cluster, policies[n].record, 60.0), 1),
        )


def gavel(data: Path, policies: Mapping[str, LoadedPlugin[PolicyRecord]]) -> Iterator[Result]:
    counts = {"v100": 8, "p100": 16, "k80": 24}
    table = read_gavel_table((data / "gavel" / "simulation_throughputs.json").open())
    trace = (data / "gavel" / "physical_cluster" / "max_min_fairness.trace").open()
    jobs = list(as_simulated(read_gavel_trace(trace, table, list(counts))))
    cluster = [pool(name, [1] * count) for name, count in counts.items()]
    settings = SimulationSettings(**{**GAVEL_SETTINGS, "clock": Clock(GAVEL_SETTINGS["clock"])})
    for name, published_s in GAVEL_S.items():
        seconds = timed(lambda n=name: simulate(jobs, cluster, policies[n], settings))
        yield Result(f"simulate_96_jobs_{name}_beside_gavels_published_time", seconds, "s", published_s)


def pollux(data: Path, policies: Mapping[str, LoadedPlugin[PolicyRecord]]) -> Iterator[Result]:
    times = read_step_times((data / "measurements" / "sia_t4_2_to_16_nodes.csv").open())
    curves = pollux_curves({job.removesuffix("/aws"): steps for job, steps in times.items()}, 32)
    workload = (data / "jobs" / "pollux_workloads" / "workload-6.csv").open()
    jobs = list(as_simulated(read_pollux_workload(workload, curves, only=("bert", "cifar10", "ncf")), (4,)))
    cluster = [pool("t4", [4] * 8)]
    settings = SimulationSettings(clock=Clock.FIXED_ROUNDS, round_s=60.0)
    for name in ("efficiency-srpt", "efficiency-capped"):
        seconds = timed(lambda n=name: simulate(jobs, cluster, policies[n], settings))
        beside = timed(lambda n=name: plain(jobs, cluster, policies[n].record, 60.0), 1)
        yield Result(f"simulate_136_jobs_of_8_hours_{name}", seconds, "s", beside)


def philly(data: Path, policies: Mapping[str, LoadedPlugin[PolicyRecord]]) -> Iterator[Result]:
    """All jobs once; the plain loop is timed on the first of them.

    Jobs are rigid here, and the work left of those that run only falls: who runs stays ahead by either rule until a job
    comes or goes, so that asking only then changes nothing.
    """
    cluster = [pool("gpu", [PHILLY_NODE_DEVICES] * PHILLY_NODES)]
    path = data / "jobs" / "philly_pollux_extract.csv"
    settings = SimulationSettings(clock=Clock.FIXED_ROUNDS, round_s=PHILLY_ROUND_S, on_changes_only=True)
    log = read_philly(path.open())
    jobs = list(as_simulated(jobs_of_log(log, LeftOut(), pool_devices=[PHILLY_NODES * PHILLY_NODE_DEVICES])))
    head = jobs[:PHILLY_HEAD]
    for name in ("fifo", "efficiency-srpt"):
        started = time.perf_counter()
        result = simulate(jobs, cluster, policies[name], settings)
        seconds = time.perf_counter() - started
        assert result.finished == result.jobs
        beside = len(head) / timed(lambda n=name: plain(head, cluster, policies[n].record, PHILLY_ROUND_S), 1)
        yield Result(f"simulate_{result.jobs}_philly_jobs_{name}", seconds, "s", result.jobs / beside)


def run() -> Iterator[Result]:
    """One core. What needs data from outside the repository runs where ``NODEWISE_DATA`` names it."""
    policies = load_registry(safe_mode=True).policies
    yield from made_up(policies)
    if DATA:
        yield from gavel(Path(DATA), policies)
        yield from pollux(Path(DATA), policies)
        yield from philly(Path(DATA), policies)
