"""What a sweep found: a row per simulation, a comparison over seeds, and a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from nodewise.runtime.embedded import Estimate, SweepUnit, estimated
from nodewise_cli.outputs import writing
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.plain import short
from nodewise_cli.views.table import figures, print_table, words
from nodewise_client import SimulationRun

__all__ = ["SweepRow", "compared", "document", "show", "write_csv"]

_METRICS: Final = {
    short(each.name): each.name for each in fields(SimulationRun) if each.name not in ("seed", "complete")
}
WALL: Final = ("decision_s", "longest_decision_s", "wall_s")
"""Metrics that measure this machine; all others are the same in every run of the same sweep."""
_COMPARED: Final = tuple(name for name in _METRICS if name not in (*WALL, "jobs", "deadlines"))


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One simulation: what it was, and its figures or why there are none."""

    unit: SweepUnit
    metrics: dict[str, Any]
    fault: str

    @classmethod
    def of(cls, unit: SweepUnit, run: SimulationRun | None, fault: str) -> SweepRow:
        """The row of what became of a unit."""
        return cls(unit, {} if run is None else {name: getattr(run, field) for name, field in _METRICS.items()}, fault)

    @property
    def group(self) -> tuple[str, float, float, float]:
        """What it shares with the same simulation under other seeds."""
        unit = self.unit
        return unit.label, unit.load, unit.job_sigma, unit.row_sigma

    @property
    def what(self) -> str:
        """In one line."""
        unit = self.unit
        error = f", errors {unit.job_sigma:g} and {unit.row_sigma:g}" if unit.job_sigma or unit.row_sigma else ""
        return f"{unit.label}, load {unit.load:g}{error}, seed {unit.seed}"


def compared(rows: Sequence[SweepRow]) -> dict[tuple[str, float, float, float], dict[str, Estimate]]:
    """Means over seeds with 95 % confidence, by what differs besides."""
    groups: dict[tuple[str, float, float, float], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    found: dict[tuple[str, float, float, float], dict[str, Estimate]] = {}
    for group, members in groups.items():
        found[group] = {}
        for name in _COMPARED:
            values = [row.metrics[name] for row in members if row.metrics.get(name) is not None]
            if values:
                found[group][name] = estimated(values)
    return found


def document(rows: Sequence[SweepRow]) -> dict[str, Any]:
    """The JSON: every simulation, and the comparison."""
    return {
        "simulations": [{**_unit(row), **row.metrics} for row in rows if not row.fault],
        "failed": [{**_unit(row), "fault": row.fault} for row in rows if row.fault],
        "table": [
            {
                "policy": label,
                "load": load,
                "job_sigma": job_sigma,
                "row_sigma": row_sigma,
                **{name: asdict(estimate) for name, estimate in estimates.items()},
            }
            for (label, load, job_sigma, row_sigma), estimates in compared(rows).items()
        ],
    }


def _unit(row: SweepRow) -> dict[str, Any]:
    unit = row.unit
    return {
        "policy": unit.label,
        "load": unit.load,
        "job_sigma": unit.job_sigma,
        "row_sigma": unit.row_sigma,
        "seed": unit.seed,
    }


def show(rows: Sequence[SweepRow]) -> None:
    """The comparison, for people: a line per policy, load and prediction error."""
    with_errors = any(row.unit.job_sigma or row.unit.row_sigma for row in rows)
    errors = [figures("job σ"), figures("row σ")] if with_errors else []
    headings = [words("policy"), figures("load"), *errors, figures("seeds"), figures("mean JCT s"), figures("± 95 %")]
    names = ("median_jct_s", "p99_jct_s", "makespan_s", "utilisation", "average_slowdown", "restarts_per_job")
    more = ("median", "p99", "makespan s", "utilisation", "slowdown", "restarts/job")
    lines = []
    for (label, load, job_sigma, row_sigma), estimates in compared(rows).items():
        mean = estimates.get("average_jct_s")
        half = None if mean is None or mean.upper is None else mean.upper - mean.mean
        sigmas = [f"{job_sigma:g}", f"{row_sigma:g}"] if with_errors else []
        lines.append(
            [
                label,
                f"{load:g}",
                *sigmas,
                str(0 if mean is None else mean.repetitions),
                shown(None if mean is None else mean.mean, 6),
                shown(half),
                *(
                    shown(estimates[name].mean, 6 if name.endswith("_s") else 4) if name in estimates else "-"
                    for name in names
                ),
            ]
        )
    print_table([*headings, *(figures(name) for name in more)], lines)


def write_csv(path: Path, rows: Sequence[SweepRow]) -> None:
    """A row per simulation.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    with writing(path), path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ["policy", "load", "job_sigma", "row_sigma", "seed", *_METRICS, "fault"])
        writer.writeheader()
        writer.writerows({**_unit(row), **row.metrics, "fault": row.fault} for row in rows)
