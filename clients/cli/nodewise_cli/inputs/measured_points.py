"""Measured rows of a table that can be compared with a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from nodewise_cli.inputs.columns import BY_WORKER_MODES, PARAMETER_SERVER_MODES
from nodewise_cli.inputs.questions import AskedJob
from nodewise_cli.inputs.units import samples_per_step
from nodewise_client import Prediction

__all__ = ["Point", "at", "measured_points"]

Row: TypeAlias = Mapping[str, Any]
"""A row of a table, by columns."""


@dataclass(frozen=True, slots=True)
class Point:
    """A measured row; its rates as in a prediction."""

    nodes: int
    workers: int
    steps_per_second: float
    samples_per_second: float | None
    train: bool


def measured_points(job: AskedJob, template: Mapping[str, Any], predictions: Sequence[Prediction]) -> list[Point]:
    """The measured rows of a job that match the options and the predicted batch."""
    if job.table is None:
        return []
    rows = [{name: column[row] for name, column in job.table.columns.items()} for row in job.rows]
    query = _query_settings(rows, template)
    as_predicted = _batches_of(predictions)
    return [
        Point(
            nodes=row["nodes"],
            workers=row["workers"],
            steps_per_second=row["steps_per_s"],
            samples_per_second=None if per_step is None else per_step * row["steps_per_s"],
            train=row["split"] == "train",
        )
        for row, per_step in zip(rows, (samples_per_step(row.__getitem__) for row in rows))
        if row["steps_per_s"] is not None
        and not row["groups"]
        and all(_how(row, name) == value for name, value in query.items())
        and as_predicted(row, per_step)
    ]


def at(points: Sequence[Point], prediction: Prediction) -> Point | None:
    """The measured row of a predicted one, preferably one that was not learned from."""
    same = [point for point in points if (point.nodes, point.workers) == (prediction.nodes, prediction.workers)]
    return min(same, key=lambda point: point.train, default=None)


def _batches_of(predictions: Sequence[Prediction]) -> Callable[[Row, float | None], bool]:
    """Whether a row's samples per step are those that were predicted; where none were, any are."""
    totals = {
        prediction.workers: prediction.samples_per_second / prediction.steps_per_second
        for prediction in predictions
        if prediction.samples_per_second is not None and prediction.steps_per_second is not None
    }
    steps = set(map(round, totals.values()))
    # One total on several scales is strong scaling; else each worker keeps its batch.
    strong = len(steps) == 1 and len(totals) > 1
    shares = {round(total / workers, 6) for workers, total in totals.items()}

    def alike(row: Row, per_step: float | None) -> bool:
        if not totals or per_step is None:
            return not totals
        if row["workers"] in totals:
            return round(per_step) == round(totals[row["workers"]])
        if row["sync"] in BY_WORKER_MODES or strong:
            return round(per_step) in steps
        return round(per_step / row["workers"], 6) in shares

    return alike


def _query_settings(rows: Sequence[Row], template: Mapping[str, Any]) -> dict[str, Any]:
    """How the predicted rows run: as the options state, else as all train rows do."""
    train = [row for row in rows if row["split"] == "train"]
    query = {}
    for name in ("device", "sync", "parameter_servers"):
        option = template.get(name)
        values = {_how(row, name) for row in train} if option is None else {option}
        if len(values) == 1:
            query[name] = values.pop()
    for name in ("backup_workers", "hybrid_sync_fraction", "hybrid_switch_s"):
        option = template.get(name)
        if option is not None or train:
            query[name] = option or 0  # the evidence says nothing of it where the question does not
    return query


def _how(row: Row, name: str) -> Any:
    if name == "parameter_servers" and not row[name]:
        return int(row["sync"] in PARAMETER_SERVER_MODES)
    return row[name] or 0 if name.startswith(("backup", "hybrid")) else row[name]
