"""The result of a simulation, for people, for programs and as files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from nodewise_cli.console import say
from nodewise_cli.outputs import writing
from nodewise_cli.views.numbers import format_count, format_number
from nodewise_cli.views.plain import fields_of, plain, short
from nodewise_cli.views.table import figures, print_columns, words
from nodewise_client import NodePool, SimulationAnswer, SimulationMeasure, SimulationRun, SimulationSettings
from nodewise_job_traces import LeftOut

__all__ = ["MEASURES", "document", "headline", "left_out_document", "show", "show_left_out", "write_timeline"]

_TIMELINE: Final = ("seed", "job", "pool", "devices", "begin_s", "end_s")
MEASURES: Final = {
    short(each.name): each.name for each in fields(SimulationRun) if each.name not in ("seed", "complete")
}
"""Fields of a run that are figures, by their names in JSON and CSV."""
_TOTALS: Final = ("wall_s", "decision_s")
_MEASURES_OF_TABLE: Final = {
    "median": ("median_jct_s", 6),
    "p99": ("p99_jct_s", 6),
    "makespan s": ("makespan_s", 6),
    "utilisation": ("utilisation", 4),
    "slowdown": ("average_slowdown", 4),
    "worst fairness": ("worst_finish_time_fairness", 4),
    "restarts/job": ("restarts_per_job", 4),
    "wasted": ("wasted_share", 4),
}
"""Measures that people are shown besides, by heading, and their digits."""


def document(
    results: Mapping[str, SimulationAnswer], settings: SimulationSettings, left_out: LeftOut
) -> dict[str, Any]:
    """The JSON: figures of the first policy (means over its repetitions), and all of every policy."""
    first = next(iter(results.values()))
    return {
        **_run_document(first),
        "clock": str(settings.clock).replace("_", "-"),
        "round_s": settings.round_seconds,
        "load": settings.load_factor,
        "seed": settings.seed,
        **left_out_document(left_out),
        "policies": {name: _policy(result) for name, result in results.items()},
    }


def left_out_document(left_out: LeftOut) -> dict[str, Any]:
    """Jobs of the file that are not simulated, by reason."""
    return {"left_out": dict(left_out.counts)} | (
        {"first_unreadable": left_out.first_fault} if left_out.first_fault else {}
    )


def show_left_out(left_out: LeftOut) -> None:
    """How many jobs of the file are not simulated, for people."""
    if left_out.total:
        say(f"Jobs of the file left out because they cannot be simulated: {left_out.summary}.")


def _run_document(result: SimulationAnswer) -> dict[str, Any]:
    """Figures of one policy: means over repetitions where it has several."""
    runs = result.runs
    document_of_run: dict[str, Any] = {"policy": result.policy, "policy_version": result.policy_version}
    means = {short(figure.measure or ""): figure.mean for figure in result.figures}
    for name, field in MEASURES.items():
        values = [value for run in runs if (value := getattr(run, field)) is not None]
        if name == "longest_decision_s":
            document_of_run[name] = max(values)
        elif name in _TOTALS:
            document_of_run[name] = math.fsum(values)
        else:
            document_of_run[name] = means[name] if name in means else _mean(values)
    busy_s = math.fsum(run.busy_device_seconds for run in runs)
    wasted_s = math.fsum(run.restart_device_seconds + run.lost_device_seconds for run in runs)
    return {
        **document_of_run,
        "wasted_share": wasted_s / busy_s if busy_s > 0 else None,
        "complete": result.complete,
        "repetitions": len(runs),
    }


def _mean(values: Sequence[float]) -> float | int | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return int(mean) if mean == int(mean) and all(isinstance(value, int) for value in values) else mean


def _policy(result: SimulationAnswer) -> dict[str, Any]:
    return {
        **_run_document(result),
        "confidence": {short(figure.measure or ""): fields_of(figure, "measure") for figure in result.figures},
        "runs": [plain(run) for run in result.runs],
        "estimators": sorted({basis.estimator for basis in result.bases}),
    }


def headline(results: Mapping[str, SimulationAnswer]) -> str:
    """The comparison in one sentence."""
    means = {name: _run_document(result)["average_jct_s"] for name, result in results.items()}
    finished = {name: mean for name, mean in means.items() if mean is not None}
    if not finished:
        return "No job finished under any policy."
    best = min(finished, key=lambda name: finished[name])
    of_all = f" of {len(results)} policies" if len(results) > 1 else ""
    return f"{best} has the least mean response time{of_all}: {finished[best]:,.0f} s."


def show(results: Mapping[str, SimulationAnswer], left_out: LeftOut) -> None:
    """One line per policy, for people."""
    documents = [_run_document(result) for result in results.values()]
    print_columns(
        (words("policy"), list(results)),
        (figures("finished"), [f"{format_count(each['finished'])}/{each['jobs']:,}" for each in documents]),
        (figures("mean JCT s"), [format_number(each["average_jct_s"], 6) for each in documents]),
        (figures("± 95 %"), [format_number(_half(result)) for result in results.values()]),
        *(
            (figures(heading), [format_number(each[name], digits) for each in documents])
            for heading, (name, digits) in _MEASURES_OF_TABLE.items()
        ),
        (figures("decisions"), [format_count(each["decisions"]) for each in documents]),
        (figures("wall s"), [format_number(each["wall_s"]) for each in documents]),
    )
    show_left_out(left_out)
    for name, result in results.items():
        last = result.runs[-1]
        jobs, left = last.jobs_count, last.jobs_count - last.finished_count
        if left and last.complete:
            say(f"{name}: {left} of {jobs} jobs never finished: they have no curve, or never got devices.")


def _half(result: SimulationAnswer) -> float | None:
    """Of the mean response time's confidence interval."""
    of_mean = (each for each in result.figures if each.measure is SimulationMeasure.AVERAGE_JCT_SECONDS)
    return next((each.upper - each.mean for each in of_mean if each.upper is not None), None)


def write_timeline(path: Path, result: SimulationAnswer, pools: Sequence[NodePool]) -> None:
    """Write the devices of each job over time, a row per stretch: CSV, or a JSON list of objects.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    rows = [
        (
            seed,
            devices.job_id,
            pools[devices.pool_index].name,
            devices.devices_count,
            devices.begin_seconds,
            devices.end_seconds,
        )
        for seed, timeline in result.timelines.items()
        for devices in timeline
    ]
    with writing(path), path.open("w", newline="", encoding="utf-8") as stream:
        if path.suffix.lower() == ".json":
            json.dump([dict(zip(_TIMELINE, row)) for row in rows], stream)
        else:
            csv.writer(stream).writerows([_TIMELINE, *rows])
