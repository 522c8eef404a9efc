"""What packing is worth on Gavel's jobs: `NODEWISE_DATA=... score_packing.py [JOBS]`.

Jobs of one device of the 26 types of Gavel's table, on 8 V100, 8 P100 and 8 K80, under the policy `packing` with its
switch off and on. They arrive by a Poisson process; a job takes 10^x minutes on a V100, x uniform over 1.5 to 3 for
four of five jobs and over 3 to 4 for the others, as Gavel's generator draws it. They run at the throughputs of the
table, alone and in pairs; pairs that are out of memory there are no pairs. What the policy knows of pairs is what
differs: every one measured, every fifth (the others completed from those), or none (what holds before any pair ran).
`surely` packs where the whole range of the total is above 1 alone, not its middle.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import as_ints, freeze
from nodewise.domain.schedule import NodePool
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Floats, PairRun
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.settings import SimulatedSharing, SimulationSettings
from nodewise_policies.plugin import nodewise_policies
from nodewise_sharing.shares import fit_shares
from score_sharing import gavel_runs

CLUSTER: Final = {"v100": 8, "p100": 8, "k80": 8}
PER_HOUR: Final = (0.5, 1.0, 2.0)
"""Arrivals. The cluster alone keeps up with a little less than 1.0."""
SEEDS: Final = (0, 1, 2)
RESTART_S: Final = 30.0


def rates_alone(tables: dict[str, Any]) -> dict[str, list[float]]:
    """Steps/s by type and pool, of types that run on one device of each pool."""
    names = [ast.literal_eval(key) for key in tables["v100"]]
    found = {
        name: [tables[pool][f"('{name}', 1)"]["null"] for pool in CLUSTER] for name, workers in names if workers == 1
    }
    return {name: rates for name, rates in found.items() if min(rates) > 0}


def arrivals(rates: dict[str, list[float]], count: int, per_hour: float, seed: int) -> list[SimulatedJob]:
    """Jobs of one device by arrival."""
    draw, names = np.random.default_rng(seed), list(rates)
    curves = [JobCurve.of({(pool, 1): rate for pool, rate in enumerate(rates[name])}) for name in names]
    jobs, now_s = [], 0.0
    for number in range(count):
        kind = int(draw.integers(len(names)))
        exponent = draw.uniform(1.5, 3.0) if draw.random() < 0.8 else draw.uniform(3.0, 4.0)
        jobs.append(
            SimulatedJob(
                job_id=f"{number:05d}",
                arrival_s=now_s,
                samples=60.0 * 10.0**exponent * rates[names[kind]][0],
                curve=curves[kind],
                rigid=True,
                kind=kind,
            )
        )
        now_s += draw.exponential(3600.0 / per_hour)
    return jobs


def table_of(names: Sequence[str], shares: dict[tuple[str, str], tuple[float, float]]) -> Floats:
    """Shares by type of job, row beside column."""
    places, found = {name: place for place, name in enumerate(names)}, np.zeros((len(names), len(names)))
    for (one, other), (share, others) in shares.items():
        found[places[one], places[other]], found[places[other], places[one]] = share, others
    return freeze(found)


def known(names: Sequence[str], runs: Sequence[PairRun], measured: Sequence[PairRun], *, surely: bool) -> Floats:
    """What the policy sees of all pairs where some were measured: middles; 0 where sharing is not worth it surely."""
    told = fit_shares(measured).predict([run.jobs for run in runs])
    return table_of(
        names,
        {
            (run.jobs[0].name, run.jobs[1].name): (float(one), float(other))
            for run, (one, other), low in zip(runs, told.middle, told.total_low, strict=True)
            if not surely or low > 1.0
        },
    )


def main() -> None:
    """Print one table."""
    path = Path(os.environ["NODEWISE_DATA"]) / "gavel" / "simulation_throughputs.json"
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    rates = rates_alone(json.loads(path.read_text()))
    names = list(rates)
    runs = [[run for run in gavel_runs(path, pool) if all(job.name in rates for job in run.jobs)] for pool in CLUSTER]
    true = tuple(
        table_of(names, {(run.jobs[0].name, run.jobs[1].name): run.shares for run in of_pool}) for of_pool in runs
    )
    seen: dict[str, Callable[[Sequence[PairRun]], Floats]] = {
        "every pair measured": lambda of: known(names, of, of, surely=False),
        "every fifth, completed": lambda of: known(names, of, of[::5], surely=False),
        "every fifth, surely": lambda of: known(names, of, of[::5], surely=True),
        "none": lambda of: known(names, of, [], surely=False),
        "none, surely": lambda of: known(names, of, [], surely=True),
    }
    rules: dict[str, tuple[SimulatedSharing, dict[str, float]]] = {
        "alone": (SimulatedSharing(shares=true, predicted=true), {"pack": 0.0})
    }
    for name, of in seen.items():
        rules[name] = SimulatedSharing(shares=true, predicted=tuple(of(of_pool) for of_pool in runs)), {}
    rules["measured, total 1.2"] = SimulatedSharing(shares=true, predicted=true), {"least_total": 1.2}
    policy = next(LoadedPlugin(each, "research", "inline") for each in nodewise_policies() if each.name == "packing")
    pools = [NodePool(name=name, device=name, available_devices=as_ints([size])) for name, size in CLUSTER.items()]
    print("jobs/h".rjust(6), "pairs known".ljust(24), "mean h".rjust(8), "p99 h".rjust(8), "mean / alone".rjust(12))
    for per_hour in PER_HOUR:
        alone_s = 0.0
        for name, (sharing, parameters) in rules.items():
            found = []
            for seed in SEEDS:
                settings = SimulationSettings(sharing=sharing, parameters=parameters, restart_cost_s=RESTART_S)
                result = simulate(arrivals(rates, count, per_hour, seed), pools, policy, settings)
                found.append(result.summary())
            mean_s = float(np.mean([each["average_jct_s"] for each in found]))
            p99_s = float(np.mean([each["p99_jct_s"] for each in found]))
            alone_s = alone_s or mean_s
            print(f"{per_hour:6.1f} {name:24} {mean_s / 3600:8.1f} {p99_s / 3600:8.1f} {mean_s / alone_s:12.2f}")


if __name__ == "__main__":
    main()
