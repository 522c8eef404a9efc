"""What a simulation found, for people, for programs and as files."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Final

from nodewise_cli.console import print_table, say, shown
from nodewise_cli.failures import CommandError, InputError
from nodewise_client import NodePool, SimulationFigure, SimulationResult, SimulationRun, SimulationSettings

__all__ = ["checked_timeline", "document", "run_document", "show", "write_timeline"]

_TIMELINE: Final = ("seed", "job", "pool", "devices", "begin_s", "end_s")
_KEPT: Final = tuple(each.name for each in fields(SimulationRun) if each.name not in ("jobs_finished", "timeline"))
_TOTALS: Final = ("wall_s", "decision_s")


def document(results: Mapping[str, SimulationResult], settings: SimulationSettings) -> dict[str, Any]:
    """The JSON: figures of the first policy (means over its repetitions), and all of every policy."""
    first = next(iter(results.values()))
    return {
        **run_document(first),
        "clock": str(settings.clock),
        "round_s": settings.round_s,
        "load": settings.load,
        "seed": settings.seed,
        "policies": {name: _policy(result) for name, result in results.items()},
    }


def run_document(result: SimulationResult) -> dict[str, Any]:
    """Figures of one policy: means over repetitions where it has several."""
    runs = result.runs
    found: dict[str, Any] = {"policy": result.policy, "policy_version": result.policy_version}
    for name in _KEPT:
        values = [value for run in runs if (value := getattr(run, name)) is not None]
        if name in ("seed", "complete"):
            continue
        if name == "longest_decision_s":
            found[name] = max(values)
        elif name in _TOTALS:
            found[name] = math.fsum(values)
        elif name in result.figures:
            found[name] = result.figures[name].mean
        else:
            found[name] = _mean(values)
    busy_s = math.fsum(run.busy_device_s for run in runs)
    wasted_s = math.fsum(run.restart_device_s + run.lost_device_s for run in runs)
    return {
        **found,
        "wasted_share": wasted_s / busy_s if busy_s > 0 else None,
        "complete": result.complete,
        "repetitions": len(runs),
    }


def _mean(values: Sequence[float]) -> float | int | None:
    if not values:
        return None
    mean = math.fsum(values) / len(values)
    return int(mean) if mean == int(mean) and all(isinstance(value, int) for value in values) else mean


def _policy(result: SimulationResult) -> dict[str, Any]:
    return {
        **run_document(result),
        "confidence": {name: _interval(figure) for name, figure in result.figures.items()},
        "runs": [{name: getattr(run, name) for name in _KEPT} for run in result.runs],
        "estimators": sorted({basis.estimator for basis in result.bases}),
    }


def _interval(figure: SimulationFigure) -> dict[str, float | None]:
    return asdict(figure)


def show(results: Mapping[str, SimulationResult]) -> None:
    """One line per policy, for people."""
    print_table(
        [
            ("policy", False),
            ("finished", True),
            ("mean JCT s", True),
            ("± 95 %", True),
            ("median", True),
            ("p99", True),
            ("makespan s", True),
            ("utilisation", True),
            ("slowdown", True),
            ("worst fairness", True),
            ("restarts/job", True),
            ("wasted", True),
            ("decisions", True),
            ("wall s", True),
        ],
        [[name, *_cells(result)] for name, result in results.items()],
    )
    for name, result in results.items():
        last = result.runs[-1]
        if last.finished < last.jobs and last.complete:
            left = last.jobs - last.finished
            say(f"{name}: {left} of {last.jobs} jobs never finished: they have no curve, or were never given devices.")


def _cells(result: SimulationResult) -> Iterator[str]:
    found = run_document(result)
    figure = result.figures.get("average_jct_s")
    half = None if figure is None or figure.upper is None else figure.upper - figure.mean
    yield f"{found['finished']:,.6g}/{found['jobs']:,}"
    yield shown(found["average_jct_s"], 6)
    yield shown(half)
    for name in ("median_jct_s", "p99_jct_s", "makespan_s"):
        yield shown(found[name], 6)
    for name in ("utilisation", "average_slowdown", "worst_finish_time_fairness", "restarts_per_job", "wasted_share"):
        yield shown(found[name])
    yield f"{found['decisions']:,.6g}"
    yield shown(found["wall_s"])


def checked_timeline(path: Path | None) -> None:
    """Refuse before the work a name that cannot be written.

    Raises
    ------
    InputError
    """
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".json"):
        raise InputError(f"--timeline: must end in .csv or .json, found {str(path)!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise InputError(f"--timeline: must be a file in a directory that exists, found {str(path)!r}")


def write_timeline(path: Path, result: SimulationResult, pools: Sequence[NodePool]) -> None:
    """Who held what from when to when, a row per stretch: CSV, or a JSON list of objects.

    Raises
    ------
    CommandError
        If the file cannot be written.
    """
    rows = [
        (run.seed, held.job_id, pools[held.pool].name, held.devices, held.begin_s, held.end_s)
        for run in result.runs
        for held in run.timeline
    ]
    try:
        with path.open("w", newline="", encoding="utf-8") as stream:
            if path.suffix.lower() == ".json":
                json.dump([dict(zip(_TIMELINE, row)) for row in rows], stream)
            else:
                csv.writer(stream).writerows([_TIMELINE, *rows])
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
