"""Measured rows of a table that can be compared with a prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodewise_cli.inputs.columns import BY_WORKER_MODES, PARAMETER_SERVER_MODES
from nodewise_cli.inputs.questions import AskedJob
from nodewise_cli.inputs.tables import Table
from nodewise_client import Prediction

__all__ = ["Point", "at", "measured_points"]


@dataclass(frozen=True, slots=True)
class Point:
    """A measured row; its rates as in a prediction."""

    nodes: int
    workers: int
    steps_per_second: float
    samples_per_second: float | None
    train: bool


def measured_points(asked: AskedJob, template: Mapping[str, Any], answered: Sequence[Prediction]) -> list[Point]:
    """The measured rows of a job that run as was asked: what the options state, and the batch that was predicted."""
    table = asked.table
    if table is None:
        return []
    wanted = _wanted(asked, template)
    batches = _Batches(answered)
    points = []
    for row in asked.rows:
        steps_per_s = table.columns["steps_per_s"][row]
        if steps_per_s is None or table.columns["groups"][row] or not _as_wanted(table, row, wanted):
            continue
        per_step = _samples_per_step(table, row)
        if not batches.alike(table, row, per_step):
            continue
        points.append(
            Point(
                nodes=table.columns["nodes"][row],
                workers=table.columns["workers"][row],
                steps_per_second=steps_per_s,
                samples_per_second=None if per_step is None else per_step * steps_per_s,
                train=table.columns["split"][row] == "train",
            )
        )
    return points


def at(points: Sequence[Point], found: Prediction) -> Point | None:
    """The measured row of a predicted one, preferably one that was not learned from."""
    same = [point for point in points if (point.nodes, point.workers) == (found.nodes, found.workers)]
    return min(same, key=lambda point: point.train, default=None)


class _Batches:
    """Samples per step of what was predicted, by scale."""

    def __init__(self, answered: Sequence[Prediction]) -> None:
        self._by_workers: dict[int, float] = {}
        for found in answered:
            if found.samples_per_second is not None and found.steps_per_second is not None:
                self._by_workers[found.workers] = found.samples_per_second / found.steps_per_second
        totals = set(map(round, self._by_workers.values()))
        # One total on several scales is strong scaling; else each worker keeps its batch.
        self._strong = totals if len(totals) == 1 and len(self._by_workers) > 1 else None
        self._shares = {round(total / workers, 6) for workers, total in self._by_workers.items()}

    def alike(self, table: Table, row: int, per_step: int | None) -> bool:
        """Whether a row's batch is the one that was predicted; where none was, any is."""
        if not self._by_workers:
            return True
        if per_step is None:
            return False
        workers = table.columns["workers"][row]
        if workers in self._by_workers:
            return per_step == round(self._by_workers[workers])
        if table.columns["sync"][row] in BY_WORKER_MODES or self._strong is not None:
            return per_step in set(map(round, self._by_workers.values()))
        return round(per_step / workers, 6) in self._shares


def _wanted(asked: AskedJob, template: Mapping[str, Any]) -> dict[str, Any]:
    """How the predicted rows run: as the options state, else as all train rows do."""
    table = asked.table
    assert table is not None
    train = [row for row in asked.rows if table.columns["split"][row] == "train"]
    wanted = {}
    for name in ("device", "sync", "parameter_servers"):
        stated = template.get(name)
        seen = {_how(table, name, row) for row in train} if stated is None else {stated}
        if len(seen) == 1:
            wanted[name] = seen.pop()
    for name in ("backup_workers", "hybrid_sync_fraction", "hybrid_switch_s"):
        stated = template.get(name)
        if stated is not None or train:
            wanted[name] = stated or 0  # the evidence says nothing of it where the question does not
    return wanted


def _as_wanted(table: Table, row: int, wanted: Mapping[str, Any]) -> bool:
    return all(_how(table, name, row) == value for name, value in wanted.items())


def _how(table: Table, name: str, row: int) -> Any:
    value = table.columns[name][row]
    if name == "parameter_servers" and not value:
        return int(table.columns["sync"][row] in PARAMETER_SERVER_MODES)
    return value or 0 if name.startswith(("backup", "hybrid")) else value


def _samples_per_step(table: Table, row: int) -> int | None:
    """Samples of one step as `steps_per_s` counts it; None = not known."""

    def value(name: str) -> int | None:
        found: int | None = table.columns[name][row]
        return found

    total = value("global_batch")
    if total is not None:
        return total
    batch = value("batch_per_worker") or value("micro_batch")
    if batch is None:
        return None
    share = batch * (value("accumulation") or 1)
    if table.columns["sync"][row] in BY_WORKER_MODES:
        return share
    degrees = 1
    for name in ("tensor_parallel", "pipeline_parallel", "context_parallel"):
        degrees *= value(name) or 1
    return share * (value("data_parallel") or (value("workers") or 1) // degrees)
