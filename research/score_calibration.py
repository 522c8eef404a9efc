"""Score what rows of other jobs of an installation add to facts alone: `score_calibration.py [TABLE...]`.

The jobs of each table are split in two halves, alternately; each half is predicted from facts alone ("alone"), and with
all rows of the other half as calibration ("other half"). A second splitting alternates models, so that no model is in
both halves. Told for each half: mean and median of |predicted / measured - 1| of step time over the same rows, and the
share of rows within the 90 % interval. ``--rows`` prints ln(predicted / measured) of every row in both.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")  # small matrices; before NumPy is loaded

import numpy as np

from accuracy.predicting import answers_of
from accuracy.tables import table_of
from nodewise.domain.columns import as_ints, freeze
from nodewise.domain.measurements import MeasurementTable
from nodewise.estimation.answer.answers import Answers
from nodewise.evaluation.backtest import run_backtest
from nodewise.evaluation.results import RowPredictions

TABLES: Final = (
    *(f"abroad/{name}_dev" for name in ("dgxc", "bridge", "torchtitan", "fms", "maxtext", "dlperf_gpt")),
    *(f"partitioning_modern/{name}" for name in ("bigscience", "bigscience_v100", "foundry")),
    "vtrain_a100_multi_node",
    "vtrain_a100_single_node",
)
SPLITTINGS: Final = ("jobs", "models")
ESTIMATOR: Final = "partitioning"


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Of the rows of one half that are answered both ways."""

    alone: np.ndarray
    calibrated: np.ndarray
    covered: tuple[float, float]
    jobs: Sequence[str]


def halves_of(table: MeasurementTable, splitting: str) -> np.ndarray:
    """Of each row the half, 0 or 1: jobs or models alternate in the table's order."""
    if splitting == "jobs":
        keys: Sequence[object] = table.jobs
    else:
        keys = [workload.transformer for workload in table.workloads]
    order = [keys[job] for job in dict.fromkeys(table.job_index.tolist())]
    number = {key: place % 2 for place, key in enumerate(dict.fromkeys(order))}
    return np.array([number[key] for key in keys])[table.job_index]


def scores_of(answers: Answers, table: MeasurementTable, half: np.ndarray) -> Iterator[Scores]:
    """Predict each half alone, and with the other half known."""
    for own in (0, 1):
        asked = table.take(as_ints(np.flatnonzero(half == own)))
        others = table.take(as_ints(np.flatnonzero(half != own)))
        hidden = replace(asked, train=freeze(np.zeros(len(asked), dtype=bool)))
        shown = replace(others, train=freeze((others.steps_per_s > 0.0) | (others.measured_memory_bytes > 0.0)))
        if not len(asked) or not len(others):
            continue
        sources = [""] * len(table.jobs)  # of each other, the asked jobs teach nothing
        found = [
            run_backtest(answers, hidden, calibration=each, estimators=(ESTIMATOR,), sources=sources)
            .evaluations[0]
            .predictions
            for each in (None, shown)
        ]
        measured = hidden.steps_per_s
        both = (measured > 0.0) & (found[0].steps_per_s > 0.0) & (found[1].steps_per_s > 0.0)
        logs = [np.log(measured[both] / each.steps_per_s[both]) for each in found]
        covered = [_coverage(each, measured, both) for each in found]
        jobs = [hidden.jobs[job] for job in hidden.job_index[both].tolist()]
        yield Scores(logs[0], logs[1], (covered[0], covered[1]), jobs)


def _coverage(found: RowPredictions, measured: np.ndarray, rows: np.ndarray) -> float:
    inside = (found.lower_steps_per_s <= measured) & (measured <= found.upper_steps_per_s)
    return float(inside[rows].mean())


def _line(scores: Scores) -> str:
    cells = [f"{len(scores.alone):4d} rows"]
    for logs, covered in zip((scores.alone, scores.calibrated), scores.covered, strict=True):
        errors = 100.0 * np.abs(np.expm1(logs))
        cells.append(f"{errors.mean():6.1f} {np.median(errors):6.1f} {covered:5.2f} {logs.mean():+6.3f}")
    return "  |  ".join(cells)


def main() -> int:
    """Score all tables and splittings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("tables", nargs="*", help="below NODEWISE_DATA's measurements, without .csv; default: all")
    parser.add_argument("--rows", action="store_true", help="print ln(predicted / measured) of every row, both ways")
    arguments = parser.parse_args()
    data = os.environ.get("NODEWISE_DATA")
    if not data:
        print("NODEWISE_DATA does not say where the measurements are", file=sys.stderr)
        return 2
    answers = answers_of()
    print("step time: mean and median error %, coverage, mean ln(predicted / measured): alone | other half known")
    for name in arguments.tables or TABLES:
        table = table_of((Path(data) / "measurements" / f"{name}.csv",))
        for splitting in SPLITTINGS:
            for number, scores in enumerate(scores_of(answers, table, halves_of(table, splitting)), 1):
                print(f"{name.split('/')[-1]:24} {splitting} {number}  {_line(scores)}", flush=True)
                if arguments.rows:
                    for job, *logs in zip(scores.jobs, scores.alone, scores.calibrated, strict=True):
                        print(f"    {job:60} {logs[0]:+.3f} {logs[1]:+.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
