"""Score policies on Pollux' workloads: ``score_policies.py DATA [POLICY...]`` prints tables of policies.

DATA holds ``measurements`` and ``jobs/pollux_workloads``. Jobs of applications without measured curves are left out.
Nodes of four T4, rounds of 60 s, 30 s for every start and change. Curves are measured ones; "predicted" is what
``nodewise backtest --estimator auto`` says of 8 measured points per application, and the jobs still run as measured.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import as_ints
from nodewise.domain.schedule import NodePool
from nodewise.hosting.registry import LoadedPlugin, load_registry
from nodewise.plugin import PolicyRecord
from nodewise.scheduling.simulation.core import simulate
from nodewise.scheduling.simulation.jobs import JobCurve, SimulatedJob
from nodewise.scheduling.simulation.repeating import Estimate, estimate_mean
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import Checkpoints, Clock, EarlyStops, NodeFailures, SimulationSettings
from nodewise_job_traces import Curve
from nodewise_job_traces.pollux import (
    APPLICATIONS,
    SETTINGS,
    StepTime,
    pollux_curves,
    read_pollux_workload,
    read_step_times,
)

WORKLOADS: Final = range(1, 7)
DEVICES_PER_NODE: Final = 4
NODES: Final = (8, 4)
LOADS: Final = (0.5, 0.8, 1.1)
FAILURES: Final = NodeFailures(mean_time_between_failures_s=7200.0, mean_repair_s=600.0)
SAVES: Final = Checkpoints(interval_s=300.0, cost_s=10.0)
SUITABLE: Final = (
    *("fifo", "equal-share", "las", "srpt", "marginal-gain", "efficiency-srpt", "efficiency-srpt-fill"),
    *("efficiency-capped", "goodput"),
)
"""Policies whose answer differs from the others' here: no deadlines, one kind of device."""

Curves = Mapping[tuple[str, int], Curve]
USUAL: Final = SimulationSettings(**{**SETTINGS, "clock": Clock(SETTINGS["clock"])})


class Asked:
    """A step time that only writes down what it is asked for."""

    def __init__(self) -> None:
        self.rows: set[tuple[int, int]] = set()

    def __call__(self, devices: int, batch: int) -> float:
        self.rows.add((devices, batch))
        return 1.0


def measured(data: Path) -> dict[str, StepTime]:
    """Step times by application, as measured in one cloud."""
    with (data / "measurements" / "sia_t4_2_to_16_nodes.csv").open() as stream:
        return {job.removesuffix("/aws"): steps for job, steps in read_step_times(stream, DEVICES_PER_NODE).items()}


def predicted(data: Path, devices: int) -> dict[str, StepTime]:
    """Step times by application, as predicted from the 8 points that the table trains on."""
    asked = {name: Asked() for name in APPLICATIONS}
    pollux_curves(asked, devices)
    with (data / "measurements" / "sia_8_points_2_to_16_nodes.csv").open() as stream:
        reader = csv.DictReader(stream)
        names = list(reader.fieldnames or ())
        train = [row for row in reader if row["split"] == "train" and row["job"] in {f"{a}/aws" for a in asked}]
    tests: list[dict[str, Any]] = [
        {
            **dict.fromkeys(names, ""),
            "job": f"{name}/aws",
            "device": "T4",
            "sync": "allreduce",
            "nodes": -(-count // DEVICES_PER_NODE),
            "workers": count,
            "parameter_servers": 0,
            "batch_per_worker": batch,
            "split": "test",
        }
        for name, each in asked.items()
        for count, batch in sorted(each.rows)
    ]
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder) / "table.csv", Path(folder) / "predictions.csv"
        with table.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, names)
            writer.writeheader()
            writer.writerows([*train, *tests])
        command = [sys.executable, "-m", "nodewise", "backtest", str(table), "--estimator", "auto"]
        subprocess.run([*command, "--predictions", str(out)], check=True, stdout=subprocess.DEVNULL)
        with out.open() as stream:
            answers = {int(row["row"]) - len(train): row for row in csv.DictReader(stream)}
    found: dict[str, dict[tuple[int, int], float]] = {name: {} for name in asked}
    for index, row in enumerate(tests):
        answer = answers[index]
        if not answer["steps_per_s"]:
            raise SystemExit(f"{row['job']} on {row['workers']} workers was not predicted: {answer['status']}")
        name = str(row["job"]).removesuffix("/aws")
        found[name][int(row["workers"]), int(row["batch_per_worker"])] = 1.0 / float(answer["steps_per_s"])
    return {name: _lookup(rows) for name, rows in found.items()}


def _lookup(rows: Mapping[tuple[int, int], float]) -> StepTime:
    return lambda devices, batch: rows[devices, batch]


def run(
    data: Path,
    workload: int,
    nodes: int,
    policy: LoadedPlugin[PolicyRecord],
    curves: tuple[Curves, Curves | None],
    device_hours: float | None = None,
    **changes: object,
) -> SimulationResult:
    """One workload under one policy; ``curves`` are the true ones and what the policy sees (None = the same).

    ``device_hours`` between failures are what the policy knows of them.
    """
    with (data / "jobs" / "pollux_workloads" / f"workload-{workload}.csv").open() as stream:
        read = read_pollux_workload(stream, curves[0], predicted=curves[1], only=APPLICATIONS)
    jobs = [
        SimulatedJob(
            job_id=job.job_id,
            arrival_s=job.arrival_s,
            samples=job.samples,
            curve=_packed(job.curve),
            predicted=None if job.predicted is None else _packed(job.predicted),
            requested_devices=job.requested_devices,
            rigid=job.rigid,
        )
        for job in read
    ]
    pool = NodePool(
        name="t4",
        device="T4",
        available_devices=as_ints([DEVICES_PER_NODE] * nodes),
        device_hours=device_hours,
        restart_s=USUAL.restart_cost_s,
    )
    return simulate(jobs, [pool], policy, replace(USUAL, **changes))  # type: ignore[arg-type]


def _packed(curve: Curve) -> JobCurve:
    return JobCurve.of(curve.rates, (DEVICES_PER_NODE,))


def means(results: Sequence[SimulationResult]) -> list[float]:
    """Average response time (s) of every run."""
    return [float(result.per_job.response_s.mean()) for result in results]


def interval(estimate: Estimate) -> str:
    """Mean and half of the 95 % interval."""
    half = 0.0 if estimate.upper is None else estimate.upper - estimate.mean
    return f"{estimate.mean:,.0f} ± {half:,.0f}"


def percentile(results: Sequence[SimulationResult], share: float) -> float:
    """Mean over the runs of a percentile of response times."""
    return float(np.mean([np.percentile(result.per_job.response_s, share) for result in results]))


def tables(data: Path, policies: Sequence[LoadedPlugin[PolicyRecord]], nodes: int, seeds: int) -> None:
    """Print both tables of one cluster size."""
    devices = nodes * DEVICES_PER_NODE
    true = pollux_curves(measured(data), devices)
    guessed = pollux_curves(predicted(data, devices), devices)
    print(f"\n### {nodes} nodes of {DEVICES_PER_NODE}: measured curves\n")
    print("| policy | mean s | median s | p99 s | restarts per job | mean s of workloads 1 to 6 |")
    print("|---|---|---|---|---|---|")
    runs = {
        each.record.name: [run(data, number, nodes, each, (true, None)) for number in WORKLOADS] for each in policies
    }
    for name, results in runs.items():
        restarts = np.mean([result.per_job.restarts.mean() for result in results])
        single = ", ".join(f"{value:,.0f}" for value in means(results))
        print(
            f"| `{name}` | {np.mean(means(results)):,.0f} | {percentile(results, 50):,.0f} | "
            f"{percentile(results, 99):,.0f} | {restarts:.2f} | {single} |"
        )
    print(f"\n### {nodes} nodes of {DEVICES_PER_NODE}: what else may happen (mean s)\n")
    heads = [*(f"load {load:g}" for load in LOADS), "30 % stop early", "predicted from 8 points", "loss"]
    print(f"| policy | {' | '.join(heads)} |")
    print("|" + "---|" * (len(heads) + 1))
    for each in policies:
        cells = [
            interval(
                estimate_mean(means([run(data, number, nodes, each, (true, None), load=load) for number in WORKLOADS]))
            )
            for load in LOADS
        ]
        stops = EarlyStops(probability=0.3)
        by_seed = [
            float(
                np.mean(
                    means(
                        [
                            run(data, number, nodes, each, (true, None), early_stops=stops, seed=seed)
                            for number in WORKLOADS
                        ]
                    )
                )
            )
            for seed in range(seeds)
        ]
        cells.append(interval(estimate_mean(by_seed)))
        seen = means([run(data, number, nodes, each, (true, guessed)) for number in WORKLOADS])
        cells.append(interval(estimate_mean(seen)))
        cells.append(f"{np.mean(seen) / np.mean(means(runs[each.record.name])) - 1:+.1%}")
        print(f"| `{each.record.name}` | {' | '.join(cells)} |", flush=True)


def failing(data: Path, policies: Sequence[LoadedPlugin[PolicyRecord]], nodes: int, seeds: int) -> None:
    """Print the table of nodes that fail: failures unknown to the policy, and stated to it."""
    true = pollux_curves(measured(data), nodes * DEVICES_PER_NODE)

    def mean_s(policy: LoadedPlugin[PolicyRecord], saves: Checkpoints | None, device_hours: float | None) -> float:
        changes = {"failures": FAILURES, "checkpoints": saves}
        every = [(number, seed) for number in WORKLOADS for seed in range(seeds)]
        results = [
            run(data, each, nodes, policy, (true, None), device_hours, seed=seed, **changes) for each, seed in every
        ]
        return float(np.mean(means(results)))

    print(f"\n### {nodes} nodes of {DEVICES_PER_NODE} that fail (mean s)\n")
    print("| policy | no checkpoints | failures stated | checkpoints | failures stated |\n|---|---|---|---|---|")
    hours = FAILURES.mean_time_between_failures_s / 3600.0
    for each in policies:
        cells = []
        for saves in (None, SAVES):
            unknown, stated = mean_s(each, saves, None), mean_s(each, saves, hours * DEVICES_PER_NODE)
            cells += [f"{unknown:,.0f}", f"{stated:,.0f} ({stated / unknown - 1:+.1%})"]
        print(f"| `{each.record.name}` | {' | '.join(cells)} |", flush=True)


def main() -> int:
    """Print Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with measurements and jobs")
    parser.add_argument("policies", nargs="*", default=SUITABLE, help="names; default: those that differ here")
    parser.add_argument("--seeds", type=int, default=5, help="repetitions with early stops or failures")
    asked = parser.parse_args()
    known = load_registry(safe_mode=True).policies
    policies = [known[name] for name in asked.policies]
    print("± is half of the 95 % interval: over the six workloads; for early stops over seeds.")
    for nodes in NODES:
        tables(asked.data, policies, nodes, asked.seeds)
    failing(asked.data, policies, NODES[0], asked.seeds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
