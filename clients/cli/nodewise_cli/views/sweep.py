"""The result of a sweep: a row per simulation, a comparison over seeds, and a file."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from nodewise.runtime.engine_runs import Estimate, SweepUnit, estimate_mean
from nodewise_cli.outputs import writing
from nodewise_cli.views.numbers import format_number
from nodewise_cli.views.simulation import MEASURES, left_out_document, show_left_out
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import SimulationRun
from nodewise_job_traces import LeftOut

__all__ = ["Comparison", "Row", "compare_rows", "document", "headline", "show", "sweep_row", "what_failed", "write_csv"]

Row: TypeAlias = dict[str, Any]
"""A simulation as JSON and CSV have it."""
GROUP: Final = ("policy", "load", "job_sigma", "row_sigma")
"""What simulations share that differ in their seed alone."""
WALL: Final = ("decision_s", "longest_decision_s", "wall_s")
"""Metrics that measure this machine; all others are the same in every run of the same sweep."""
_COMPARISON_MEASURES: Final = tuple(name for name in MEASURES if name not in (*WALL, "jobs", "deadlines"))


_MEASURES_OF_TABLE: Final = {
    "median": "median_jct_s",
    "p99": "p99_jct_s",
    "makespan s": "makespan_s",
    "utilisation": "utilisation",
    "slowdown": "average_slowdown",
    "restarts/job": "restarts_per_job",
}


def sweep_row(unit: SweepUnit, run: SimulationRun | None, fault: str = "") -> Row:
    """A row of a simulation: its parameters, and its figures or its fault."""
    group = (unit.label, unit.load, unit.job_sigma, unit.row_sigma)
    figures = {"fault": fault} if run is None else {name: getattr(run, field) for name, field in MEASURES.items()}
    return dict(zip(GROUP, group)) | {"seed": unit.seed} | figures


def what_failed(rows: Sequence[Row]) -> list[str]:
    """A line for every simulation that failed."""
    failures = []
    for row in (row for row in rows if "fault" in row):
        sigmas = f", errors {row['job_sigma']:g} and {row['row_sigma']:g}" if _wrong(row) else ""
        failures.append(f"{row['policy']}, load {row['load']:g}{sigmas}, seed {row['seed']}: {row['fault']}")
    return failures


def _wrong(row: Row) -> bool:
    """Whether predictions were made wrong on purpose."""
    return bool(row["job_sigma"] or row["row_sigma"])


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


def compare_rows(rows: Sequence[Row]) -> list[Comparison]:
    """All that differs in more than its seed, in order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in GROUP), []).append(row)
    return [Comparison(dict(zip(GROUP, group)), _estimates(members)) for group, members in groups.items()]


def _estimates(rows: Sequence[Row]) -> dict[str, Estimate]:
    values = {name: [row[name] for row in rows if row.get(name) is not None] for name in _COMPARISON_MEASURES}
    return {name: estimate_mean(samples) for name, samples in values.items() if samples}


def document(rows: Sequence[Row], left_out: LeftOut) -> dict[str, Any]:
    """The JSON: every simulation, and the comparison."""
    return {
        "simulations": [row for row in rows if "fault" not in row],
        "failed": [row for row in rows if "fault" in row],
        **left_out_document(left_out),
        "table": [
            each.group | {name: asdict(estimate) for name, estimate in each.estimates.items()}
            for each in compare_rows(rows)
        ],
    }


def headline(rows: Sequence[Row]) -> str:
    """The comparison in one sentence."""
    policies, loads = ({row[name] for row in rows} for name in ("policy", "load"))
    finished = [each for each in compare_rows(rows) if "average_jct_s" in each.estimates]
    wins = Counter(
        min(
            (each for each in finished if each.group["load"] == load),
            key=lambda each: each.estimates["average_jct_s"].mean,
        ).group["policy"]
        for load in {each.group["load"] for each in finished}
    )
    if not wins:
        return "No simulation of the sweep finished a job."
    ((best, count),) = wins.most_common(1)
    return (
        f"{best} has the least mean response time of {len(policies)} policies at {count} of {len(loads)} "
        f"{'load' if len(loads) == 1 else 'loads'}."
    )


def show(rows: Sequence[Row], left_out: LeftOut) -> None:
    """The comparison, for people: a line per policy, load and prediction error."""
    comparisons = compare_rows(rows)
    errors = [
        (figures(heading), [f"{each.group[name]:g}" for each in comparisons])
        for heading, name in (("job σ", "job_sigma"), ("row σ", "row_sigma"))
    ]
    means = [each.estimates.get("average_jct_s") for each in comparisons]
    print_columns(
        (words("policy"), [each.group["policy"] for each in comparisons]),
        (figures("load"), [f"{each.group['load']:g}" for each in comparisons]),
        *(errors if any(map(_wrong, rows)) else ()),
        (figures("seeds"), [str(0 if mean is None else mean.repetitions) for mean in means]),
        (figures("mean JCT s"), [_mean(each, "average_jct_s") for each in comparisons]),
        (figures("± 95 %"), [format_number(each.jct_half_s) for each in comparisons]),
        *(
            (figures(heading), [_mean(each, name) for each in comparisons])
            for heading, name in _MEASURES_OF_TABLE.items()
        ),
    )
    show_left_out(left_out)


def _mean(comparison: Comparison, name: str) -> str:
    return (
        format_number(comparison.estimates[name].mean, 6 if name.endswith("_s") else 4)
        if name in comparison.estimates
        else "-"
    )


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """A row per simulation.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    with writing(path), path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*GROUP, "seed", *MEASURES, "fault"])
        writer.writeheader()
        writer.writerows(rows)
