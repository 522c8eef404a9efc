"""Tables of a pipelined job's operations: which rank ran what, from when to when."""

from __future__ import annotations

import csv
import importlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nodewise_job_traces.faults import JobsFileError

__all__ = [
    "ACROSS_DATA",
    "BACKWARD",
    "BY_MEDIAN",
    "CLIP",
    "EMBEDDING",
    "FORWARD",
    "GATHER",
    "KINDS",
    "LAYER_NORM",
    "MESSAGES",
    "REDUCE",
    "SEPARATE",
    "Floats",
    "Operations",
    "Place",
    "is_operation_table",
    "read_operations",
]

Floats: TypeAlias = NDArray[np.float64]
Place: TypeAlias = tuple[str, int, int]
"""An operation of a pipeline's step: its kind, its ordinal on its stage from 0, and the stage."""

COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "step": ("step",),
    "rank": ("rank",),
    "stage": ("stage",),
    "data_parallel": ("data_parallel_index", "data_parallel_rank", "dp_rank", "dp"),
    "operation": ("operation", "optype", "op"),
    "start": ("start", "start_ts", "start_seconds"),
}
"""Columns that a table must have, by the names that each may bear."""
END: Final = ("end", "end_ts", "end_seconds")
DURATION: Final = ("duration", "duration_seconds")
CHUNK: Final = ("mc", "model_chunk")
FORWARD: Final = "forward-compute"
BACKWARD: Final = "backward-compute"
SAME: Final = {"forward": FORWARD, "backward": BACKWARD}
MESSAGES: Final = ("forward-send", "forward-recv", "backward-send", "backward-recv")
EMBEDDING: Final = "embedding-grads-all-reduce"
GATHER: Final = "params-all-gather"
REDUCE: Final = "grads-reduce-scatter"
SEPARATE: Final = "separate-grads-all-reduce"
CLIP: Final = "optimizer-clip-main-grad"
LAYER_NORM: Final = "layernorm-grads-all-reduce"
ACROSS_DATA: Final = frozenset({GATHER, REDUCE, SEPARATE, CLIP})
"""Operations that end together on all data-parallel indices."""
BY_MEDIAN: Final = ACROSS_DATA | {*MESSAGES, EMBEDDING, LAYER_NORM}
"""Exchanges: their ideal is the median, as a few are far longer; that of computation is the mean."""
KINDS: Final = BY_MEDIAN | {FORWARD, BACKWARD, "gc", "optimizer"}


@dataclass(frozen=True, slots=True)
class Operations:
    """Every operation of the steps that are complete: seconds by place, each an array [step, data-parallel index]."""

    start: dict[Place, Floats]
    end: dict[Place, Floats]
    ranks: dict[tuple[int, int], int]
    """By data-parallel index and stage."""
    steps_left_out: int

    @property
    def stages(self) -> int:
        """Stages of the pipeline."""
        return 1 + max(stage for _, _, stage in self.start)

    def of(self, kind: str, stage: int) -> list[Place]:
        """Places of a kind on a stage, in order."""
        return sorted(place for place in self.start if place[0] == kind and place[2] == stage)


def is_operation_table(path: Path) -> bool:
    """Whether a file is a table of operations, by its columns."""
    if not path.is_file() or path.suffix.lower() not in {".csv", ".parquet"}:
        return False
    if path.suffix.lower() == ".parquet":
        return True
    try:
        with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
            names = next(csv.reader(file), [])
    except (OSError, csv.Error):
        return False
    return all(_column(names, among) for among in COLUMNS.values())


def read_operations(path: Path) -> Operations:
    """The operations of a CSV or, where pyarrow is installed, Parquet table, whose times are in seconds.

    Raises
    ------
    JobsFileError
        If the table cannot be read, lacks a column or has no complete step.
    """
    columns = _read_columns(path)
    columns_by_role = {what: _column(columns, among) for what, among in COLUMNS.items()}
    end, duration = _column(columns, END), _column(columns, DURATION)
    missing = [COLUMNS[what][0] for what, name in columns_by_role.items() if name is None]
    if missing or not (end or duration):
        raise JobsFileError(str(path), f"has no column {', '.join(missing) or 'end or duration'}")
    try:
        step, rank, stage, data = (
            np.asarray(columns[str(columns_by_role[what])], np.float64).astype(np.int64)
            for what in ("step", "rank", "stage", "data_parallel")
        )
        start = np.asarray(columns[str(columns_by_role["start"])], np.float64)
        stop = np.asarray(columns[end], np.float64) if end else start + np.asarray(columns[str(duration)], np.float64)
        chunk = _column(columns, CHUNK)
        chunks = np.asarray(columns[chunk], np.float64) if chunk else np.zeros(1)
    except (TypeError, ValueError) as error:
        raise JobsFileError(str(path), f"a cell that must be a number is not: {error}") from None
    kinds = [SAME.get(str(each), str(each)) for each in columns[str(columns_by_role["operation"])]]
    if unknown := sorted(set(kinds) - KINDS):
        raise JobsFileError(
            str(path), f"unknown operations {', '.join(unknown[:5])}; known: {', '.join(sorted(KINDS))}"
        )
    if not kinds or not (np.isfinite(start).all() and np.isfinite(stop).all() and (stop >= start).all()):
        raise JobsFileError(str(path), "times of operations must be numbers, and an operation must end after its start")
    if min(stage.min(), data.min()) < 0 or chunks.max(initial=0) > 0:
        raise JobsFileError(
            str(path), "stages and data-parallel indices must count from 0, with one chunk in each stage"
        )
    return _arrange(path, kinds, step, rank, stage, data, start, stop)


def _read_columns(path: Path) -> dict[str, Sequence[Any]]:
    try:
        if path.suffix.lower() == ".parquet":
            try:
                parquet = importlib.import_module("pyarrow.parquet")
            except ImportError:
                raise JobsFileError(str(path), "Parquet needs pyarrow; install it, or write the table as CSV") from None
            columns: dict[str, Sequence[Any]] = parquet.read_table(path).to_pydict()
            return columns
        with path.open(newline="", encoding="utf-8-sig") as file:
            names, *rows = list(csv.reader(file)) or [[]]
        return dict(zip(names, zip(*(row for row in rows if row), strict=True), strict=True))
    except (OSError, ValueError, csv.Error) as error:
        raise JobsFileError(str(path), f"cannot be read as a table: {error}") from None


def _column(names: Iterable[str], among: Sequence[str]) -> str | None:
    return next((name for name in names if name.strip().lower() in among), None)


def _arrange(
    path: Path,
    kinds: Sequence[str],
    step: NDArray[np.int64],
    rank: NDArray[np.int64],
    stage: NDArray[np.int64],
    data: NDArray[np.int64],
    start: Floats,
    stop: Floats,
) -> Operations:
    """Operations by place; the ordinal of each is its order in time, as exchanges bear no micro-batch."""
    cells: dict[tuple[int, int], dict[Place, int]] = defaultdict(dict)
    counts: dict[tuple[int, int, str, int], int] = defaultdict(int)
    for row in np.lexsort((stop, start)).tolist():
        where = (int(step[row]), int(data[row]), kinds[row], int(stage[row]))
        cells[where[:2]][kinds[row], counts[where], where[3]] = row
        counts[where] += 1
    ranks = dict(zip(zip(data.tolist(), stage.tolist(), strict=True), rank.tolist(), strict=True))
    if len(set(zip(rank.tolist(), data.tolist(), stage.tolist(), strict=True))) != len(ranks):
        raise JobsFileError(str(path), "several ranks have the same stage and data-parallel index; keep one of them")
    indices = range(1 + int(data.max()))
    usual = max((frozenset(each) for each in cells.values()), key=lambda one: (len(one), sorted(one)))
    steps = sorted({number for number, _ in cells})
    whole = [one for one in steps if all(frozenset(cells.get((one, index), ())) == usual for index in indices)]
    if not whole or len(ranks) != len(indices) * (1 + int(stage.max())):
        raise JobsFileError(str(path), "no step has the same operations on all data-parallel indices and stages")
    rows = {place: np.array([[cells[one, index][place] for index in indices] for one in whole]) for place in usual}
    first = {one: min(float(start[list(cells[one, index].values())].min()) for index in indices) for one in whole}
    origin = np.array([first[one] for one in whole])[:, None]
    return Operations(
        {place: start[at] - origin for place, at in rows.items()},
        {place: stop[at] - origin for place, at in rows.items()},
        ranks,
        len(steps) - len(whole),
    )
