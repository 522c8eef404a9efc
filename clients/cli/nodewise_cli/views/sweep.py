"""What a sweep found: a row per simulation, a comparison over seeds, and a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from nodewise.runtime.embedded import Estimate, SweepUnit, estimated
from nodewise_cli.outputs import writing
from nodewise_cli.views.numbers import shown
from nodewise_cli.views.simulation import MEASURES
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import SimulationRun

__all__ = ["Comparison", "SweepRow", "compared", "document", "show", "write_csv"]

WALL: Final = ("decision_s", "longest_decision_s", "wall_s")
"""Metrics that measure this machine; all others are the same in every run of the same sweep."""
_COMPARED: Final = tuple(name for name in MEASURES if name not in (*WALL, "jobs", "deadlines"))


_SHOWN: Final = {
    "median": "median_jct_s",
    "p99": "p99_jct_s",
    "makespan s": "makespan_s",
    "utilisation": "utilisation",
    "slowdown": "average_slowdown",
    "restarts/job": "restarts_per_job",
}


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One simulation: what it was, and its figures or why there are none."""

    unit: SweepUnit
    metrics: dict[str, Any]
    fault: str

    @classmethod
    def of(cls, unit: SweepUnit, run: SimulationRun | None, fault: str) -> SweepRow:
        """The row of what became of a unit."""
        return cls(unit, {} if run is None else {name: getattr(run, field) for name, field in MEASURES.items()}, fault)

    @property
    def group(self) -> dict[str, Any]:
        """What it shares with the same simulation under other seeds."""
        unit = self.unit
        sigmas = {"job_sigma": unit.job_sigma, "row_sigma": unit.row_sigma}
        return {"policy": unit.label, "load": unit.load, **sigmas}

    @property
    def told(self) -> dict[str, Any]:
        """What it was, for programs."""
        return self.group | {"seed": self.unit.seed}

    @property
    def what(self) -> str:
        """In one line."""
        unit = self.unit
        error = f", errors {unit.job_sigma:g} and {unit.row_sigma:g}" if unit.job_sigma or unit.row_sigma else ""
        return f"{unit.label}, load {unit.load:g}{error}, seed {unit.seed}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What simulations share that differ in their seed alone, and their means with 95 % confidence."""

    group: dict[str, Any]
    estimates: dict[str, Estimate]

    @property
    def jct_half_s(self) -> float | None:
        """Half of the confidence interval of the mean response time; of one seed there is none."""
        mean = self.estimates.get("average_jct_s")
        return None if mean is None or mean.upper is None else mean.upper - mean.mean


def compared(rows: Sequence[SweepRow]) -> list[Comparison]:
    """All that differs in more than its seed, in order."""
    groups: dict[tuple[Any, ...], list[SweepRow]] = {}
    for row in rows:
        groups.setdefault(tuple(row.group.values()), []).append(row)
    return [Comparison(members[0].group, _estimates(members)) for members in groups.values()]


def _estimates(rows: Sequence[SweepRow]) -> dict[str, Estimate]:
    values = {name: [row.metrics[name] for row in rows if row.metrics.get(name) is not None] for name in _COMPARED}
    return {name: estimated(found) for name, found in values.items() if found}


def document(rows: Sequence[SweepRow]) -> dict[str, Any]:
    """The JSON: every simulation, and the comparison."""
    return {
        "simulations": [row.told | row.metrics for row in rows if not row.fault],
        "failed": [row.told | {"fault": row.fault} for row in rows if row.fault],
        "table": [
            each.group | {name: asdict(estimate) for name, estimate in each.estimates.items()}
            for each in compared(rows)
        ],
    }


def show(rows: Sequence[SweepRow]) -> None:
    """The comparison, for people: a line per policy, load and prediction error."""
    found = compared(rows)
    errors = [
        (figures(heading), [f"{each.group[name]:g}" for each in found])
        for heading, name in (("job σ", "job_sigma"), ("row σ", "row_sigma"))
    ]
    means = [each.estimates.get("average_jct_s") for each in found]
    print_columns(
        (words("policy"), [each.group["policy"] for each in found]),
        (figures("load"), [f"{each.group['load']:g}" for each in found]),
        *(errors if any(row.unit.job_sigma or row.unit.row_sigma for row in rows) else ()),
        (figures("seeds"), [str(0 if mean is None else mean.repetitions) for mean in means]),
        (figures("mean JCT s"), [_mean(each, "average_jct_s") for each in found]),
        (figures("± 95 %"), [shown(each.jct_half_s) for each in found]),
        *((figures(heading), [_mean(each, name) for each in found]) for heading, name in _SHOWN.items()),
    )


def _mean(found: Comparison, name: str) -> str:
    return shown(found.estimates[name].mean, 6 if name.endswith("_s") else 4) if name in found.estimates else "-"


def write_csv(path: Path, rows: Sequence[SweepRow]) -> None:
    """A row per simulation.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    with writing(path), path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0].told, *MEASURES, "fault"])
        writer.writeheader()
        writer.writerows(row.told | row.metrics | {"fault": row.fault} for row in rows)
