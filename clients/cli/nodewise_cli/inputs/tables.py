"""Measurements tables: a CSV file read into typed columns, or the file, line and column of what is wrong."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.columns import COLUMNS, DEFAULTS, INSTEAD_OF_RATES, REQUIRED, CellError
from nodewise_cli.inputs.csv_tables import CsvTable, opened
from nodewise_cli.inputs.shared_samples import whole_batches
from nodewise_cli.inputs.table_checks import contradictions

__all__ = ["Table", "read_table"]

_ALIASES: Final = {
    "job": ("model", "name", "workload"),
    "device": ("gpu", "accelerator", "device_type", "gpu_type"),
    "workers": ("gpus", "num_gpus", "n_gpus", "ranks", "world_size"),
    "nodes": ("hosts", "machines", "num_nodes"),
    "steps_per_s": ("throughput",),
    "batch_per_worker": ("batch_size", "local_batch_size"),
    "global_batch": ("global_batch_size",),
    "sequence_length": ("seq_len",),
    "kv_heads": ("key_value_heads", "num_key_value_heads", "query_groups", "num_query_groups"),
    "feed_forward_size": ("intermediate_size", "ffn_hidden_size"),
    "head_size": ("head_dim", "kv_channels"),
    "experts": ("num_experts", "num_local_experts"),
    "experts_per_token": ("num_experts_per_tok", "top_k", "moe_router_topk"),
    "untied_output": ("untied_embeddings", "untied"),
    "gated": ("swiglu", "glu", "gated_feed_forward"),
    **{f"{word}_parallel": (f"{word[0]}p",) for word in ("tensor", "pipeline", "data", "expert", "context")},
}
_MEANT: Final = {alias: name for name, aliases in _ALIASES.items() for alias in aliases}
"""Columns by what other tables call them."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table of measurements.

    Attributes
    ----------
    lines : tuple of int
        The line of the file that each row begins in.
    columns : mapping
        Every column of the schema by name, one value per row; None = not known.
    rows_by_job : mapping
        Rows of each job in the table's order, jobs in the order of their first rows.
    """

    path: Path
    lines: tuple[int, ...]
    columns: Mapping[str, tuple[Any, ...]]
    rows_by_job: Mapping[str, tuple[int, ...]]

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def jobs(self) -> tuple[str, ...]:
        """Jobs in the order of their first rows."""
        return tuple(self.rows_by_job)

    @property
    def train(self) -> tuple[bool, ...]:
        """Whether an estimator may see each row."""
        return tuple(word == "train" for word in self.columns["split"])

    def error(self, row: int, message: str) -> InputError:
        """An error in a row."""
        return InputError(f"{self.path}:{self.lines[row]}: {message}")


def read_table(path: Path) -> Table:
    """Read a table.

    Raises
    ------
    InputError
        Naming the file, and where there is one the line and the column, and what would be right.
    """
    read = opened(path, (*REQUIRED, "..."))
    _check_header(read)
    lines, columns = _read_rows(read)
    if not lines:
        raise InputError(f"{path}: has no rows below its header")
    filled = {name: tuple(columns.get(name) or [DEFAULTS.get(name)] * len(lines)) for name in COLUMNS}
    splits = zip(filled["split"], filled["steps_per_s"], strict=True)
    filled["split"] = tuple(split or ("test" if rate is None else "train") for split, rate in splits)
    by_job: dict[str, list[int]] = {}
    for row, job in enumerate(filled["job"]):
        by_job.setdefault(job, []).append(row)
    table = Table(path, tuple(lines), filled, {job: tuple(found) for job, found in by_job.items()})
    for row, name, message in contradictions(table.columns, table.lines):
        raise table.error(row, f"column {name}: {message}")
    return replace(table, columns=whole_batches(table.columns))


def _check_header(read: CsvTable) -> None:
    header, where = read.header, f"{read.path}:{read.header_line}"
    unknown = {name: _suggestion(name) for name in header if name not in COLUMNS}
    if unknown:
        plural = "column" if len(unknown) == 1 else "columns"
        said = ", ".join(f"{name!r}{meant}" for name, meant in unknown.items())
        raise InputError(
            f"{where}: unknown {plural} {said}; known are: {', '.join(COLUMNS)}",
            violations=[(f"{where}: {name}", f"is unknown{meant}") for name, meant in unknown.items()],
        )
    read.refuse_twice()
    enough = any(name in header for name in INSTEAD_OF_RATES)
    missing = [name for name in REQUIRED if name not in header and not (enough and name == "steps_per_s")]
    if missing:
        plural = "column" if len(missing) == 1 else "columns"
        raise read.error(f"the required {plural} {', '.join(missing)} must be there")


def _suggestion(name: str) -> str:
    """What an unknown column may have meant."""
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    meant = _MEANT.get(word) or next(iter(difflib.get_close_matches(word, COLUMNS, n=1, cutoff=0.7)), None)
    return "" if meant is None else f" (did you mean {meant}?)"


def _read_rows(read: CsvTable) -> tuple[list[int], dict[str, list[Any]]]:
    lines: list[int] = []
    columns: dict[str, list[Any]] = {name: [] for name in read.header}
    # Tables repeat few distinct cells, so each is read once.
    known: dict[str, dict[str, Any]] = {name: {} for name in read.header}
    for line, cells in read.rows:
        for name, cell in zip(read.header, cells, strict=True):
            values = known[name]
            if cell not in values:
                try:
                    values[cell] = _value(name, cell.strip())
                except CellError as error:
                    raise InputError(f"{read.path}:{line}: column {name}: {error}, found {_shown(cell)}") from None
            columns[name].append(values[cell])
        lines.append(line)
    return lines, columns


def _value(name: str, cell: str) -> Any:
    if cell:
        return COLUMNS[name](cell)
    if name in REQUIRED and name != "steps_per_s":
        raise CellError("must be given")
    return DEFAULTS.get(name)


def _shown(cell: str) -> str:
    stripped = cell.strip()
    return repr(stripped if len(stripped) <= 60 else stripped[:57] + "...") if stripped else "nothing"
