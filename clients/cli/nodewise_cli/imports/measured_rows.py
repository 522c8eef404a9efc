"""A logged run as a row of a measurements table: how it ran, and its steady throughput."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

from nodewise_cli.imports.logged_runs import LoggedRun, Point
from nodewise_cli.inputs.aliases import column_named
from nodewise_cli.inputs.columns import COLUMNS, RATES, READ, CellError
from nodewise_cli.inputs.configurations import FACTS

__all__ = ["SETTINGS", "MeasuredRow", "measured_row"]

SETTINGS: Final = frozenset(FACTS) - {"placement", "groups"} | {"gpus_per_node", "micro_batch", "sequence_length"}
"""Columns that are taken from what a run states of itself."""
LEAST_POINTS: Final = 3
"""Below this a median says little."""
_RATES_BY_NAME: Final = {
    "iteration-time": "step_s",  # Megatron-LM
    "time_metrics/end_to_end(s)": "step_s",  # torchtitan
    "throughput(tps)": "tokens_per_s",  # the same, of one device
}
_PER_WORKER: Final = re.compile(r"throughput\(tps\)$|(?:^|/)device/")
_OTHER_WORK: Final = re.compile(r"(?:^|[/._])(?:eval|val|valid|validation|test|system)(?:[/._]|$)", re.IGNORECASE)
_SAMPLES_AXIS: Final = "Train/Samples/"
"""DeepSpeed logs by samples, not by steps."""
_TIMES_OF: Final = "times of "
_BY_SAMPLES: Final = f"{_TIMES_OF}{_SAMPLES_AXIS}"
_NO_DEVICE: Final = re.compile(r"(?:cuda|cpu|auto|gpu|mps|xpu)(?::\d+)?", re.IGNORECASE)
_PRECISIONS: Final = ("bf16", "fp16")


@dataclass(slots=True)
class MeasuredRow:
    """A run's row.

    Attributes
    ----------
    cells : dict
        Values by columns of a table.
    metric : str
        What the throughput was computed from.
    points, left_out : int
        Logged values that count, and those of warm-ups.
    problem : str
        Why there is no row; empty = there is one.
    ignored : list of str
        Names of settings whose values no column takes.
    """

    run: LoggedRun
    cells: dict[str, Any] = field(default_factory=dict)
    metric: str = ""
    points: int = 0
    left_out: int = 0
    problem: str = ""
    ignored: list[str] = field(default_factory=list)


def measured_row(run: LoggedRun, stated: Mapping[str, Any], metric: str | None, warm_up_steps: int) -> MeasuredRow:
    """The row of a run; ``stated`` are columns that the user states of every run, which hold."""
    row = MeasuredRow(run)
    row.cells = {"job": run.job or "run", **_settings(run, row), **stated}
    for column, name, points, per_worker in _series(run, metric):
        unit = points[1].step - points[0].step if name.startswith(_BY_SAMPLES) and len(points) > 1 else 1.0
        steady, row.left_out = _steady(points, warm_up_steps * unit)
        if len(steady) >= LEAST_POINTS:
            factor: int | None = row.cells.get("workers") or _workers(row.cells) if per_worker else 1
            if factor is None:
                row.problem = f"{name} counts one worker, and workers is not stated"
                return row
            row.metric, row.points = name, len(steady)
            row.cells[column] = factor * statistics.median(point.value for point in steady if point.value)
            row.cells["steps"] = row.cells.get("steps") or _steps(steady)
            times = [time_s for _, time_s, _ in steady if time_s is not None and time_s > 1e9]
            row.cells["measured_at"] = max(times, default=None)
            return row
    _add_total(run, row, metric)
    return row


def _settings(run: LoggedRun, row: MeasuredRow) -> dict[str, Any]:
    """Columns that a run states, of nested names the outermost."""
    cells: dict[str, Any] = {}
    for key in sorted(run.settings, key=lambda key: (key.count("."), key.count("/"))):
        value = run.settings[key]
        name = re.split(r"[./]", key)[-1]
        if name in _PRECISIONS:
            if str(value).lower() == "true":
                cells.setdefault("precision", name)
            continue
        column = column_named(name, READ)
        text = "" if value is None else str(value).strip()
        if column not in SETTINGS or column in cells or not text or (column == "device" and _NO_DEVICE.fullmatch(text)):
            continue
        try:
            cells[column] = READ[column](text)
        except CellError:
            row.ignored.append(key)
    return cells


def _series(run: LoggedRun, metric: str | None) -> Iterator[tuple[str, str, Sequence[Point], bool]]:
    """Candidates for the throughput, best first: column, name, values, whether they count one worker."""
    names = [name for name in run.series if (metric is None or name == metric) and not _OTHER_WORK.search(name)]
    rates = [(column, name) for name in names if (column := _rate_column(name))]
    for column, name in sorted(rates, key=lambda each: RATES.index(each[0])):
        per_worker = name in run.per_worker or _PER_WORKER.search(name) is not None
        yield column, name, run.series[name], per_worker
    # Without a rate, the times at which steps were logged.
    for name in sorted(names, key=lambda name: -len(run.series[name])):
        by_samples = name.startswith(_SAMPLES_AXIS)
        label = f"{_TIMES_OF}{name or 'steps'}"
        yield "samples_per_s" if by_samples else "steps_per_s", label, _speeds(run.series[name]), False


def _rate_column(name: str) -> str | None:
    """The column of throughput that a metric's name means, as a whole or by its last part."""
    for word in (name, name.rsplit("/", 1)[-1]):
        column = _RATES_BY_NAME.get(word) or column_named(word, READ)
        if column in RATES:
            return column
    return None


def _speeds(points: Sequence[Point]) -> list[Point]:
    """Steps per second between logged steps, at the later one; 0 where the steps go back, as after a restart."""
    speeds = []
    for before, after in pairwise(points):
        if before.time_s is not None and after.time_s is not None:
            steps, seconds = after.step - before.step, after.time_s - before.time_s
            speeds.append(Point(after.step, after.time_s, steps / seconds if steps > 0 and seconds > 0 else 0.0))
    return speeds


def _steady(points: Sequence[Point], warm_up: float) -> tuple[list[Point], int]:
    """Values behind the warm-up of the run and of each restart, and how many others there are.

    Parameters
    ----------
    warm_up : float
        Its length on the axis of the points.
    """
    steady: list[Point] = []
    begin, before = points[0].step if points else 0.0, -math.inf
    for index, point in enumerate(points):
        if point.step < before:
            begin = point.step
        before = point.step
        if index and point.step - begin >= warm_up and point.value:
            steady.append(point)
    return steady, len(points) - len(steady)


def _steps(points: Sequence[Point]) -> int | None:
    return max(1, round(max(point.step for point in points) - min(point.step for point in points)))


def _workers(cells: Mapping[str, Any]) -> int | None:
    nodes, per_node = cells.get("nodes"), cells.get("gpus_per_node")
    return nodes * per_node if nodes and per_node else None


def _add_total(run: LoggedRun, row: MeasuredRow, metric: str | None) -> None:
    """The throughput of a run that states it once, or of its duration and steps."""
    for name, value in run.totals.items():
        if (metric is None or name == metric) and (column := _rate_column(name.removeprefix("train_"))) and value > 0:
            row.cells[column], row.metric, row.points = value, name, 1
            for known in ("steps", "step_cv"):
                if (number := run.totals.get(known)) is not None:
                    row.cells[known] = COLUMNS[known](f"{number:g}")
            return
    if run.elapsed_s and row.cells.get("steps"):
        row.cells["steps_per_s"], row.metric, row.points = row.cells["steps"] / run.elapsed_s, "duration and steps", 1
        return
    if run.elapsed_s:
        row.problem = "the duration alone is known: state --set steps=N, the steps that each run took"
        return
    names = ", ".join(filter(None, run.series)) or "none"
    if metric is not None and metric not in run.series:
        row.problem = f"it has no metric {metric!r}; it has: {names}"
    else:
        row.problem = f"no metric has {LEAST_POINTS} values behind the warm-up; it has: {names}"
