"""Decisions: what a policy takes with curves at hand, beside the same rule written plainly.

The greedy rules beside a scan of all jobs and counts for every grant; the linear programme beside Gavel's formulation
of the same instance (cvxpy and ECOS, else SciPy's default on rows built one by one).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from curves import profile
from peers import peers_python
from results import Result
from scipy.optimize import linprog

from nodewise.catalogue.loading import load_catalogue
from nodewise.domain.budget import Budget
from nodewise.domain.columns import Floats, as_floats, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.schedule import ClusterState, Curves, JobState, NodePool
from nodewise.estimation.answer.answers import Answers
from nodewise.hosting.registry import load_registry
from nodewise.plugin import PolicyRecord
from nodewise.scheduling.decide import decide
from nodewise.scheduling.request import JobQuestion, ScheduleQuestion

JOBS, DEVICES = 512, 384
MANY = 10_000
KINDS = 64
"""Kinds of jobs in the programme's instance: Gavel's table holds about as many models with their sizes."""
GREEDY = (
    "fifo",
    "equal-share",
    "srpt",
    "efficiency-srpt-fill",
    "efficiency-capped",
    "marginal-gain",
    "las",
    "goodput",
    "deadline-aware",
)


def instance(jobs: int, pools: Sequence[int], counts: Sequence[int], kinds: int = 0) -> tuple[ClusterState, Curves]:
    """Jobs with curves of falling efficiency and heavy-tailed sizes; pools of nodes of 8, each half as fast again."""
    random = np.random.default_rng(0)
    kind = random.integers(0, kinds, jobs) if kinds else np.arange(jobs)
    speed, loss = random.lognormal(0, 1, max(kinds, jobs)), random.uniform(0.005, 0.05, max(kinds, jobs))
    left, wanted = (
        random.lognormal(8, 1.5, jobs),
        random.choice([1, 2, 4, 8], max(kinds, jobs), p=[0.7, 0.1, 0.15, 0.05]),
    )
    gain = random.uniform(1.1, 4.0, (max(kinds, jobs), len(pools)))
    listed = np.asarray(counts)
    rates = [
        gain[of, pool] * speed[of] * listed / (1 + loss[of] * (listed - 1)) for of in kind for pool in range(len(pools))
    ]
    rows = len(rates) * len(listed)
    devices = as_ints(np.tile(listed, len(rates)))
    curves = Curves(
        offsets=as_ints(np.arange(jobs + 1) * len(listed) * len(pools)),
        pool=as_ints(np.tile(np.repeat(np.arange(len(pools)), len(listed)), jobs)),
        devices=devices,
        nodes=as_ints(-(-devices // 8)),
        samples_per_s=as_floats(np.concatenate(rates)),
        configurations=Configurations.of(rows, workers=devices, global_batch=256),
    )
    states = tuple(
        JobState(
            job_id=f"{number:05d}",
            remaining_samples=float(left[number]),
            submit_time_s=float(number),
            allowed_devices=tuple(counts),
            allowed_pools=tuple(range(len(pools))),
            requested_devices=int(wanted[kind[number]]),
            restart_cost_s=30.0,
        )
        for number in range(jobs)
    )
    nodes = tuple(
        NodePool(name=f"p{number}", device="V100", available_devices=as_ints([8] * (size // 8)))
        for number, size in enumerate(pools)
    )
    return ClusterState(now_s=float(jobs), pools=nodes, jobs=states), curves


def least_s(work: Callable[[], object], repeats: int = 7) -> float:
    """Seconds of the quickest run."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return min(taken)


def decision_s(record: PolicyRecord, state: ClusterState, curves: Curves, repeats: int = 7) -> float:
    """Seconds of one decision of the policy alone."""
    asked = replace(state, parameters={each.name: each.default for each in record.parameters})
    return least_s(lambda: record.policy.decide(asked, curves, Budget()), repeats)


def scanned_s(state: ClusterState, curves: Curves) -> float:
    """Seconds of the efficiency rule when every grant scans all jobs and counts, in plain Python."""
    started = time.perf_counter()
    free = sum(pool.total_devices for pool in state.pools)
    rates = [curves.samples_per_s[curves.rows(job)].tolist() for job in range(len(state.jobs))]
    counts = curves.devices[curves.rows(0)].tolist()
    waiting = set(range(len(state.jobs)))
    while free and waiting:
        found = min(
            (state.jobs[job].remaining_samples * count * rates[job][0] / rates[job][place] ** 2, job, count)
            for job in waiting
            for place, count in enumerate(counts)
            if count <= free
        )
        free -= found[2]
        waiting.remove(found[1])
    return time.perf_counter() - started


def published_s(state: ClusterState, curves: Curves) -> float:
    """Seconds of Gavel's programme as it is published, of the same instance."""
    at = curves.at_requests(state)
    sizes = np.array([pool.total_devices for pool in state.pools], dtype=float)
    values = at.samples_per_s * at.devices / (at.samples_per_s @ (sizes / sizes.sum()))[:, np.newaxis]
    taken = at.devices.astype(float)
    python = peers_python()
    if python is None:
        return least_s(lambda: by_rows(values, taken, sizes))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "instance.npz")
        np.savez(place, values=values, taken=taken, sizes=sizes)
        command = [str(python), str(Path(__file__).with_name("gavel_programme.py")), str(place), "5"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    return float(json.loads(done.stdout.splitlines()[-1])["seconds"])


def by_rows(values: Floats, taken: Floats, sizes: Floats) -> float:
    """The programme as dense rows, one after the other, solved by SciPy's default."""
    jobs, pools = values.shape
    variables = jobs * pools + 1
    rows, bounds = [], []
    for job in range(jobs):
        worth, time_ = np.zeros(variables), np.zeros(variables)
        worth[job * pools : (job + 1) * pools], worth[-1] = -values[job], 1.0
        time_[job * pools : (job + 1) * pools] = 1.0
        rows += [worth, time_]
        bounds += [0.0, 1.0]
    for pool in range(pools):
        row = np.zeros(variables)
        row[pool:-1:pools] = taken[:, pool]
        rows.append(row)
        bounds.append(sizes[pool])
    objective = np.zeros(variables)
    objective[-1] = -1.0
    return -float(linprog(objective, A_ub=np.array(rows), b_ub=bounds).fun)


def question() -> ScheduleQuestion:
    """As many jobs, each with a profile of its own, on the same cluster."""
    settings = Configurations.of(1, sync_mode=SyncMode.ASYNC, parameter_servers=1, batch_per_worker=32)
    return ScheduleQuestion(
        now_s=0.0,
        pools=(NodePool(name="p", device="V100", available_devices=as_ints([8] * (DEVICES // 8))),),
        jobs=tuple(
            JobQuestion(
                job_id=f"{number:05d}",
                profile=profile(number),
                remaining_samples=1e6 + number,
                max_devices=64,
                settings=settings,
            )
            for number in range(JOBS)
        ),
    )


def run() -> Iterator[Result]:
    """One core."""
    registry = load_registry(safe_mode=True)
    policies = {name: loaded.record for name, loaded in registry.policies.items()}
    size = f"{JOBS}_jobs_{DEVICES}_devices"
    state, curves = instance(JOBS, [DEVICES], range(1, DEVICES + 1))
    plain_s = scanned_s(state, curves)
    for name in GREEDY:
        yield Result(f"decide_{name}_{size}", 1e3 * decision_s(policies[name], state, curves), "ms", 1e3 * plain_s)
    state, curves = instance(JOBS, [DEVICES // 3] * 3, (1, 2, 4, 8), KINDS)
    peer_s = published_s(state, curves)
    for name in ("max-min-fairness-aware", "max-min-fairness", "min-makespan-aware"):
        yield Result(f"decide_{name}_{size}", 1e3 * decision_s(policies[name], state, curves), "ms", 1e3 * peer_s)
    state, curves = instance(MANY, [MANY], (1, 2, 4, 8, 16, 32, 64))
    plain_s = scanned_s(state, curves)
    for name in GREEDY:
        taken_s = decision_s(policies[name], state, curves, 2)
        yield Result(f"decide_{name}_{MANY}_jobs_{MANY}_devices", taken_s, "s", plain_s)
    engine = Answers(registry, catalogue=load_catalogue())
    asked = question()
    started = time.perf_counter()
    decide(asked, registry.policies["efficiency-capped"], engine.answer, Budget())
    first_s = time.perf_counter() - started
    again_s = least_s(lambda: decide(asked, registry.policies["efficiency-capped"], engine.answer, Budget()))
    yield Result(f"schedule_again_{size}", 1e3 * again_s, "ms", 1e3 * first_s)
