"""Learns what the rules of one line hold: the usual fixed part of a step, and how their errors grow with the distance.

``python research/learn_simple_rules.py TABLE.csv...`` reads tables in the schema of ``nodewise backtest``, train and
test rows of all-reduce jobs. A source is a table, its device, and in tables of several organisations (job names
``model/organisation/device/...``) each of them; sources weigh alike.

- The fixed part: ``c`` of ``T = c + s m``, ``c, s >= 0``, by relative least squares over all rows of a job with two
  batches per worker; a power of its shortest evidence. From MLPerf's table alone: on slow networks ``c`` is exchange.
- Spreads: of every rule, with the train rows and with the largest of them alone as evidence, the test rows' errors and
  reaches; constants with the least interval score at 90 % (T. Gneiting and A. Raftery, J. Am. Stat. Assoc. 102(477),
  2007). Coverage is of each source under the constants of all others.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import nnls

from nodewise.plugin import Floats
from nodewise_simple.evidence import Points, Rows
from nodewise_simple.evidence import near as lying
from nodewise_simple.rules import RULES
from nodewise_simple.spread import Spread

LEVEL: Final = 0.9
NOMINAL: Final = 1.6449
"""Deviations of a normal variable within which LEVEL of it lies."""

MEDIAN_TO_DEVIATION: Final = 1.4826
"""Standard deviation of a normal variable over the median of its absolute value."""

NEAR: Final = np.round(np.arange(0.04, 0.41, 0.02), 2)
PER_REACH: Final = np.round(np.arange(0.02, 0.61, 0.02), 2)

ORGANISATIONS: Final = 4
"""Parts of a job's name where the second is who ran it."""


@dataclass(frozen=True)
class Job:
    """Runs of a job: workers, nodes, micro-steps, samples, seconds; and which of them are evidence."""

    source: str
    runs: Floats
    train: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]

    def points(self, rows: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Points:
        """Runs averaged by configuration."""
        keys, inverse = np.unique(self.runs[rows][:, :4], axis=0, return_inverse=True)
        step_s = np.bincount(inverse.ravel(), self.runs[rows][:, 4]) / np.bincount(inverse.ravel())
        return Points(Rows(*keys.T), step_s)


def jobs_of(path: Path) -> list[Job]:
    """All-reduce jobs of a table."""
    found = defaultdict(list)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (row.get("sync") or "allreduce") == "allreduce" and row["steps_per_s"]:
                found[row["job"], row["device"]].append(row)

    def number(row: dict[str, str], name: str, default: float) -> float:
        return float(row.get(name) or default)

    jobs = []
    for (job, device), rows in found.items():
        runs = []
        for row in rows:
            workers, again = float(row["workers"]), number(row, "accumulation", 1.0)
            replicas = workers / (number(row, "tensor_parallel", 1.0) * number(row, "pipeline_parallel", 1.0))
            samples = number(row, "global_batch", number(row, "batch_per_worker", 0.0) * replicas * again)
            runs.append((workers, float(row["nodes"]), again, samples, 1.0 / float(row["steps_per_s"])))
        parts = job.split("/")
        owner = parts[1] if len(parts) >= ORGANISATIONS else path.stem.partition("_")[0]
        train = np.array([row["split"] == "train" for row in rows])
        jobs.append(Job(f"{owner}/{device}", np.array(runs), train))
    return jobs


def fixed_parts(jobs: Iterable[Job]) -> dict[str, Floats]:
    """(jobs, 2) ln of the shortest step of the evidence, and of the seconds that no batch changes, by source."""
    found = defaultdict(list)
    for job in jobs:
        samples, step_s = job.runs[:, 3] / job.runs[:, 0], job.runs[:, 4]
        if samples.min() < samples.max() and job.train.any():
            fixed = nnls(np.stack([1.0 / step_s, samples / step_s], axis=1), np.ones(len(step_s)))[0][0]
            if fixed > 0.0:
                found[job.source].append((np.log(step_s[job.train].min()), np.log(fixed)))
    return {source: np.array(parts) for source, parts in found.items()}


def fixed_law(sources: Sequence[Floats]) -> tuple[float, float, float]:
    """Constants of ``c = a T^b`` with the least absolute errors of ln, and their deviation."""
    steps, fixed = np.concatenate(sources).T
    alike = np.concatenate([np.full(len(each), 1.0 / len(each)) for each in sources])
    terms, weights = np.stack([np.ones(len(steps)), steps], axis=1), alike
    error, law = np.zeros(len(steps)), np.zeros(2)
    for _ in range(50):
        law = np.linalg.lstsq(terms * np.sqrt(weights)[:, None], fixed * np.sqrt(weights), rcond=None)[0]
        error = np.abs(fixed - terms @ law)
        weights = alike / np.maximum(error, 0.05)
    return float(np.exp(law[0])), float(law[1]), float(MEDIAN_TO_DEVIATION * np.median(error))


def errors_of(rule: str, jobs: Iterable[Job]) -> dict[str, Floats]:
    """(rows, 2) absolute ln errors and reaches of test rows, by source."""
    found = defaultdict(list)
    for job in jobs:
        largest = job.runs[:, 0] == np.max(job.runs[job.train, 0], initial=0.0)
        for shown in (job.train, job.train & largest):
            if not shown.any() or job.train.all():
                continue
            points, asked = job.points(shown), job.points(~job.train)
            curve = RULES[rule](points)
            if not isinstance(curve, str):
                errors = np.abs(np.log(np.maximum(curve(asked.rows), 1e-9) / asked.step_s))
                found[job.source].append(np.stack([errors, np.maximum(lying(points, asked.rows).reach, 0.0)], axis=1))
    return {source: np.concatenate(parts) for source, parts in found.items()}


def learned(sources: Sequence[Floats]) -> Spread:
    """Constants of the least mean interval score."""
    best = (np.inf, Spread(0.0, 0.0))
    for near in NEAR.tolist():
        for slope in PER_REACH.tolist():
            spread = Spread(near, slope)
            scores = []
            for rows in sources:
                half = NOMINAL * spread.at(rows[:, 1])
                missed = np.maximum(rows[:, 0] - half, 0.0)
                scores.append(np.mean(2.0 * half + 2.0 / (1.0 - LEVEL) * missed))
            best = min(best, (float(np.mean(scores)), spread), key=lambda each: each[0])
    return best[1]


def main() -> None:
    """Print all of it."""
    jobs = [job for path in sys.argv[1:] for job in jobs_of(Path(path))]
    parts = fixed_parts(jobs)
    for left_out in ("", *sorted(parts)):
        law = fixed_law([each for source, each in parts.items() if source != left_out])
        print("fixed part {:.3f} s T^{:.2f}, deviation {:.2f}".format(*law), f"without {left_out}" if left_out else "")
    for rule in RULES:
        errors = errors_of(rule, jobs)
        spread = learned(list(errors.values()))
        print(f"{rule}: {spread}")
        for source, rows in sorted(errors.items()):
            others = learned([each for name, each in errors.items() if name != source])
            covered = np.mean(rows[:, 0] <= NOMINAL * others.at(rows[:, 1]))
            print(f"    {source:32s} {len(rows):5d} rows, mean |ln| {rows[:, 0].mean():.3f}, {covered:.0%} within 90 %")


if __name__ == "__main__":
    main()
