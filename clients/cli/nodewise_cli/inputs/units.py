"""Conversion of throughputs in other units to steps per second, with the batch that this needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from nodewise_cli.inputs.columns import BY_WORKER_MODES, OF_STEPS, RATES, RowError

__all__ = ["Rates", "convert_rates", "samples_per_step"]

AGREES: Final = 0.02
"""How far two statements of one throughput may be apart: tables and logs print two or three digits."""
UNIT_STEP_S: Final = 0.1
"""What a step is taken to last where the batch is not known. Only ratios count then; estimators expect a usual step."""
IN_SAMPLES: Final = ("samples_per_s", "images_per_s")
_BATCH: Final = "state batch_per_worker (samples of one worker in a step) or global_batch (of all workers)"

Columns = Mapping[str, Sequence[Any]]
_Cells = Callable[[str], Any]


class Rates(NamedTuple):
    """Columns with every throughput in steps per second, and what jobs of unknown batch count: samples or tokens."""

    columns: Columns
    counts: Mapping[str, str]


def convert_rates(columns: Columns, rows_by_job: Mapping[str, Sequence[int]], *, without_batch: bool) -> Rates:
    """Throughputs as steps per second.

    Parameters
    ----------
    columns : mapping
        Every column by name, those of other units too, with whole batches.
    without_batch : bool
        Whether jobs of which no row says its batch may be told in samples or tokens alone. Their steps are then taken
        to hold the same number on each worker.

    Raises
    ------
    RowError
        Naming the column that is missing, or that disagrees with another.
    """
    new_columns = {name: list(columns[name]) for name in ("steps_per_s", "batch_per_worker", "sequence_length")}
    merged: Columns = {**columns, **new_columns}
    counts = {}
    for job, rows in rows_by_job.items():
        kind = _unit_of(merged, rows) if without_batch else ""
        if kind:
            counts[job] = kind
            batch = _unit_batch(merged, rows)
            for row in rows:
                new_columns["batch_per_worker"][row] = batch
                new_columns["sequence_length"][row] = 1 if kind == "tokens" else new_columns["sequence_length"][row]
    for row in range(len(columns["steps_per_s"])):
        new_columns["steps_per_s"][row] = _steps_per_s(partial(_cell, merged, row), row)
    for rows in (rows_by_job[job] for job, kind in counts.items() if kind == "tokens"):
        for row in rows:
            new_columns["sequence_length"][row] = None
    return Rates({**columns, **{name: tuple(values) for name, values in new_columns.items()}}, counts)


def samples_per_step(cells: _Cells) -> float | None:
    """Samples of one step as `steps_per_s` counts it; None = not known."""
    batch, total = cells("batch_per_worker") or cells("micro_batch"), cells("global_batch")
    by_worker = cells("sync") in BY_WORKER_MODES
    if total is not None and not by_worker:
        return float(total)
    if batch is None:
        return None if total is None else float(total) / _replicas(cells)
    share = float(batch) * (cells("accumulation") or 1)
    return share if by_worker else share * max(_replicas(cells) - (cells("backup_workers") or 0), 1)


def _replicas(cells: _Cells) -> int:
    degrees = math.prod(cells(f"{kind}_parallel") or 1 for kind in ("tensor", "pipeline", "context"))
    return int(cells("data_parallel") or max(cells("workers") // degrees, 1))


def _steps_per_s(cells: _Cells, row: int) -> float | None:
    """The one throughput that a row states."""
    rates = {name: _in_steps(name, value, cells, row) for name in RATES if (value := cells(name)) is not None}
    if not rates:
        return None
    first, rate = next(iter(rates.items()))
    for name, other in rates.items():
        if abs(other - rate) > AGREES * rate:
            text = f"must agree with {first} ({cells(first):g}, which is {rate:.4g} steps/s)"
            raise RowError(row, name, f"{text}, found {cells(name):g}, which is {other:.4g} steps/s")
    return rate


def _in_steps(name: str, value: float, cells: _Cells, row: int) -> float:
    if name in OF_STEPS:
        return value
    if name in ("step_s", "ms_per_step"):
        seconds = value / 1e3 if name == "ms_per_step" else value
        return (_replicas(cells) if cells("sync") in BY_WORKER_MODES else 1) / seconds
    samples = samples_per_step(cells)
    if samples is None:
        raise RowError(row, name, f"cannot be converted to steps without the batch: {_BATCH}")
    if name == "tokens_per_s":
        if cells("sequence_length") is None:
            raise RowError(row, name, "cannot be converted to samples without their length: state sequence_length")
        samples *= cells("sequence_length")
    return value / samples


def _unit_of(columns: Columns, rows: Iterable[int]) -> str:
    """The unit of a job's throughputs if no row states its batch; "" = the batch is known or needed."""
    kinds = set()
    for row in rows:
        cells = partial(_cell, columns, row)
        step_columns = [name for name in (*OF_STEPS, "step_s", "ms_per_step", *_OF_A_STEP) if cells(name) is not None]
        if step_columns or samples_per_step(cells) is not None:
            return ""
        in_samples = any(cells(name) is not None for name in IN_SAMPLES)
        kinds |= {"samples"} if in_samples else set()
        kinds |= {"tokens"} if cells("tokens_per_s") is not None and not in_samples else set()
    if kinds == {"tokens"} and all(columns["sequence_length"][row] is not None for row in rows):
        return "samples"
    return kinds.pop() if len(kinds) == 1 else ""


_OF_A_STEP: Final = (
    *("compute_s", "download_s", "upload_s", "update_s", "exposed_sync_s", "parameter_bytes", "tensors", "layers"),
    *("per_message_s", "round_trip_s"),
)
"""What a step takes or sends whatever its batch is: with it, the length of a step counts."""


def _unit_batch(columns: Columns, rows: Iterable[int]) -> int:
    """Samples, or tokens, that a worker takes in a step of UNIT_STEP_S, by the smallest run."""
    rates_by_size = []
    for row in rows:
        cells = partial(_cell, columns, row)
        of_sequence = cells("sequence_length") or 1
        rate = next((cells(name) for name in IN_SAMPLES if cells(name) is not None), None)
        tokens = cells("tokens_per_s")
        if rate is None and tokens is not None:
            rate = tokens / of_sequence
        if rate is not None:
            rates_by_size.append((int(cells("workers")), float(rate) / _replicas(cells)))
    _, per_replica = min(rates_by_size)
    return max(round(per_replica * UNIT_STEP_S), 1)


def _cell(columns: Columns, row: int, name: str) -> Any:
    return columns[name][row]
