"""Score `nodewise_sharing` on measured pairs: `NODEWISE_DATA=... score_sharing.py`.

Whole models are left out: no pair of theirs is seen, their solo facts are. Errors are in points of share of solo speed;
"own" counts the left-out model's side alone, "both" its partner's as well. Beside it the median of the partner's other
pairs. `completed` leaves out every fifth pair, of jobs that have others. `before pairs` is the answer from solo facts.
"""

from __future__ import annotations

import ast
import csv
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from nodewise.plugin import Floats, PairRun, SoloJob
from nodewise_sharing.modes import turn_shares
from nodewise_sharing.shares import FEATURES, fit_shares

PEAK_TFLOPS: Final = {"k80": 4.113, "p100": 9.526, "v100": 15.7}
"""fp32, of one device: NVIDIA's data sheets (K80: one of its two processors)."""

Predicted = tuple[Floats, Floats, Floats]
"""Middles and ends of ranges, (pairs, 2)."""
Rule = Callable[[Sequence[PairRun], Sequence[PairRun]], Predicted]


def lucid_runs(folder: Path) -> list[PairRun]:
    """Pairs of colocation/, with utilisation, memory and steps of the jobs alone."""
    keys = ("model", "dataset", "batch", "amp")
    jobs = {}
    with (folder / "alone.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            key = tuple(row[name] for name in keys)
            jobs[key] = SoloJob(
                "|".join(key),
                row["model"],
                float(row["device_utilisation_pct"]) / 100,
                float(row["memory_utilisation_pct"]) / 100,
                float(row["memory_mib"]) * 2**20,
                float(row["batch"]) / float(row["solo_speed"]),
            )
    with (folder / "pairs.csv").open(newline="") as file:
        return [
            PairRun(
                (jobs[tuple(row[f"{name}_a"] for name in keys)], jobs[tuple(row[f"{name}_b"] for name in keys)]),
                (float(row["share_of_solo_speed_a"]), float(row["share_of_solo_speed_b"])),
            )
            for row in csv.DictReader(file)
        ]


def gavel_runs(path: Path, device: str) -> list[PairRun]:
    """Pairs of Gavel's table on one device, with steps alone there and elsewhere; pairs out of memory are none."""
    tables = json.loads(path.read_text())
    alone = {
        name: {ast.literal_eval(key)[0]: row["null"] for key, row in tables[name].items() if key.endswith(", 1)")}
        for name in PEAK_TFLOPS
    }
    jobs = {
        name: SoloJob(
            name,
            name.split(" (")[0],
            step_seconds=1 / speed,
            elsewhere={
                other: (1 / alone[other][name], PEAK_TFLOPS[other] / PEAK_TFLOPS[device])
                for other in PEAK_TFLOPS
                if other != device and alone[other][name] > 0
            },
        )
        for name, speed in alone[device].items()
        if speed > 0
    }
    runs: dict[frozenset[str], PairRun] = {}
    for key, row in tables[device].items():
        (one, workers) = ast.literal_eval(key)
        for partner, speeds in row.items():
            if workers != 1 or partner == "null" or ast.literal_eval(partner)[1] != 1 or min(speeds) <= 0:
                continue
            other = ast.literal_eval(partner)[0]
            shares = speeds[0] / alone[device][one], speeds[1] / alone[device][other]
            runs.setdefault(frozenset((one, other)), PairRun((jobs[one], jobs[other]), shares))
    return list(runs.values())


def models_out(runs: Sequence[PairRun], rule: Rule) -> dict[str, float]:
    """Errors and coverage over all folds, each without one model."""
    parts = []
    for model in sorted({job.family for run in runs for job in run.jobs}):
        out = [model in (run.jobs[0].family, run.jobs[1].family) for run in runs]
        left = [run for run, is_out in zip(runs, out, strict=True) if is_out]
        own = np.array([[job.family == model for job in run.jobs] for run in left])
        shares = np.array([run.shares for run in left])
        kept = [run for run, is_out in zip(runs, out, strict=True) if not is_out]
        parts.append([part.ravel() for part in (*rule(kept, left), shares, own)])
    middle, low, high, shares, own = (np.concatenate(part) for part in zip(*parts, strict=True))
    error, held = np.abs(middle - shares), (shares >= low) & (shares <= high)
    return {
        "own": 100 * float(error[own].mean()),
        "both": 100 * float(error.mean()),
        "coverage": 100 * float(held.mean()),
        "width": 100 * float((high - low).mean()),
        "sides": shares.size,
    }


def learned(kept: Sequence[PairRun], left: Sequence[PairRun]) -> Predicted:
    """What is delivered."""
    shares = fit_shares(kept).predict([run.jobs for run in left])
    return shares.middle, shares.low, shares.high


def partners_median(kept: Sequence[PairRun], left: Sequence[PairRun]) -> Predicted:
    """The median of what the partner's other pairs showed; of all pairs, where it has none."""
    beside: dict[str, list[float]] = {}
    of: dict[str, list[float]] = {}
    for run in kept:
        for (victim, aggressor), share in zip((run.jobs, run.jobs[::-1]), run.shares, strict=True):
            beside.setdefault(aggressor.name, []).append(share)
            of.setdefault(victim.name, []).append(share)
    usual = float(np.median([share for run in kept for share in run.shares]))
    rows = []
    for run in left:
        for victim, aggressor in (run.jobs, run.jobs[::-1]):
            known = beside.get(aggressor.name) or of.get(victim.name) or [usual]
            rows.append(float(np.median(known)))
    middle = np.array(rows).reshape(-1, 2)
    return middle, middle, middle


def completed(runs: Sequence[PairRun], rule: Rule) -> float:
    """Error over pairs of jobs that have other pairs: every fifth is left out, in turn."""
    errors = []
    for fold in range(5):
        left = runs[fold::5]
        kept = [run for index, run in enumerate(runs) if index % 5 != fold]
        errors.append(np.abs(rule(kept, left)[0] - [run.shares for run in left]).ravel())
    return 100 * float(np.concatenate(errors).mean())


def _bare(job: SoloJob) -> SoloJob:
    """The job without what other devices tell."""
    return replace(job, elsewhere={})


def main() -> None:
    """Print one table."""
    data = Path(os.environ["NODEWISE_DATA"])
    tables = {"colocation": lucid_runs(data / "colocation")}
    for device in PEAK_TFLOPS:
        tables[f"gavel {device}"] = gavel_runs(data / "gavel" / "simulation_throughputs.json", device)
    names = (
        "pairs",
        "median own",
        "median both",
        "own",
        "both",
        "coverage",
        "width",
        "before pairs",
        "completed",
        "median",
    )
    print("table".ljust(12), *(name.rjust(12) for name in names))
    held = sides = 0.0
    for table, runs in tables.items():
        rule, model = models_out(runs, partners_median), models_out(runs, learned)
        middle, _, _ = learned([], runs)
        cold = 100 * float(np.abs(middle - [run.shares for run in runs]).mean())
        row = (
            len(runs),
            rule["own"],
            rule["both"],
            *(model[name] for name in ("own", "both", "coverage", "width")),
            cold,
        )
        row = *row, completed(runs, learned), completed(runs, partners_median)
        print(table.ljust(12), *(f"{value:12.1f}" for value in row))
        held, sides = held + model["coverage"] * model["sides"], sides + model["sides"]
    print(f"pooled coverage {held / sides:.1f} %")
    measured = np.array([run.shares for run in tables["colocation"]])
    error = np.array([turn_shares(run.jobs) for run in tables["colocation"]]) - measured
    print(f"colocation, turns alone: {100 * np.abs(error).mean():.1f} points, {100 * error.mean():.1f} on average")
    with (data / "colocation" / "pairs.csv").open(newline="") as file:
        together = [2**20 * float(row["memory_mib"]) for row in csv.DictReader(file)]
    alone_bytes = [sum(job.memory_bytes or 0.0 for job in run.jobs) for run in tables["colocation"]]
    more = (np.array(together) - alone_bytes) / 2**20
    print(f"memory of a pair over both alone: median {np.median(more):.0f} MiB, p95 {np.percentile(more, 95):.0f} MiB")
    for table, runs in tables.items():
        if table.startswith("gavel"):
            alone = [PairRun((_bare(run.jobs[0]), _bare(run.jobs[1])), run.shares) for run in runs]
            ratio = fit_shares(alone).effects.mean[FEATURES.index("step_ratio")]
            print(f"{table}: a job of e times the other's step keeps {100 * ratio:.1f} points more")


if __name__ == "__main__":
    main()
