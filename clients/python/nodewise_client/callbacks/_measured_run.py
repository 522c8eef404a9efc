"""One row of measurement: as a line of a table, as a JSON line, and as an observation."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from nodewise_client._columns import observations
from nodewise_client._configurations import configurations
from nodewise_values import Observations
from nodewise_values.fact import by_csv
from nodewise_values.facts import CONFIGURATIONS

SETTINGS: Final = frozenset(by_csv(CONFIGURATIONS)) - {"placement", "groups"} | {"framework", "sequence_length"}
"""How a job runs, by columns of a measurements table."""
SUFFIXES: Final = (".csv", ".jsonl")
_ALWAYS: Final = (
    *("job", "device", "nodes", "workers", "batch_per_worker", "accumulation", "precision", "framework"),
    *("steps_per_s", "steps", "step_cv", "measured_at"),
)
"""Columns that every table has, so that rows of several runs fit into one."""

Row = Mapping[str, Any]
"""Values by columns of a measurements table; None = not known."""


def append_row(path: Path, row: Row) -> None:
    """Add a row to a file, which is made if it is not there.

    Raises
    ------
    OSError
        The file cannot be written.
    ValueError
        It is a table without a column that the row has.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    values = {name: _cell(name, value) for name, value in row.items() if value is not None}
    if path.suffix == ".jsonl":
        _append(path, json.dumps(values) + "\n")
        return
    header = [*_ALWAYS, *(name for name in values if name not in _ALWAYS)]
    try:
        with path.open("x", encoding="utf-8", newline="") as new:
            new.write(_line(header) + _line([values.get(name, "") for name in header]))
    except FileExistsError:
        with path.open(encoding="utf-8-sig", newline="") as table:
            header = next(csv.reader(table), [])
        if missing := values.keys() - set(header):
            raise ValueError(f"{path} has no column {', '.join(sorted(missing))}: name another file") from None
        _append(path, _line([values.get(name, "") for name in header]))


def observation_of(row: Row) -> Observations:
    """The row as an observation."""
    facts = by_csv(CONFIGURATIONS)
    columns = {facts[name].field: value for name, value in row.items() if name in facts and value is not None}
    devices = columns.pop("device_names", None)
    return observations(
        configurations=configurations(devices=devices, **{"sync_modes": "allreduce", **columns}),
        steps_per_second=row["steps_per_s"],
        measured_at_unix_seconds=row["measured_at"],
        steps_counts=row["steps"],
        step_variation=row["step_cv"],
    )


def _cell(name: str, value: Any) -> Any:
    """A value as the file has it: the moment as text, and no digits that nobody measured."""
    if name == "measured_at":
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    return float(f"{value:.7g}") if isinstance(value, float) else value


def _line(cells: list[Any]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()


def _append(path: Path, line: str) -> None:
    # One write at the end of the file: two jobs that end together do not mix their lines.
    with path.open("ab", buffering=0) as file:
        file.write(line.encode())
