"""W&B: a run's own file (`run-*.wandb`), or an export of a history or of a table of runs (CSV, JSON)."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from nodewise_cli.failures import InputError, text_of, unreadable
from nodewise_cli.imports.json_lines import object_rows
from nodewise_cli.imports.logged_runs import LoggedRun, Options, flat, number_of, runs_of_rows
from nodewise_cli.imports.wire import fields_of, first, log_records

__all__ = ["read_wandb"]

# Fields of wandb_internal.Record, RunRecord, HistoryRecord, ConfigRecord and their items.
_HISTORY, _CONFIG, _RUN = 2, 5, 17
_PROJECT, _RUN_CONFIG, _DISPLAY_NAME = 3, 4, 8
_ITEMS, _STEP = 1, 2
_KEY, _NESTED_KEY, _VALUE = 1, 2, 16
_MAGIC = b":W&B"


def read_wandb(path: Path, _options: Options) -> Iterator[LoggedRun]:
    """The runs below a directory of W&B, or of one file."""
    files = sorted(path.rglob("*.wandb")) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path}: holds no run of W&B (run-*.wandb)")
    for file in files:
        if file.suffix == ".csv":
            yield from _runs_of_table(file)
        elif file.suffix in (".json", ".jsonl"):
            yield runs_of_rows(LoggedRun(str(file), file.stem), (row for _, row in object_rows(file)))
        else:
            yield _run_of_file(file)


def _run_of_file(file: Path) -> LoggedRun:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise unreadable(file, error) from None
    if not data.startswith(_MAGIC):
        raise InputError(f"{file}: is not a file of W&B (run-*.wandb), nor .csv, .json or .jsonl")
    run, history = LoggedRun(str(file)), list[dict[str, Any]]()
    try:
        for record in map(fields_of, log_records(data)):
            if _RUN in record:
                start = fields_of(record[_RUN][-1])
                run.job = first(start, _PROJECT, b"").decode() or run.job
                run.source = f"{file}: {first(start, _DISPLAY_NAME, b'').decode() or file.stem}"
                run.settings |= _items(first(start, _RUN_CONFIG, b""))
            elif _CONFIG in record:
                run.settings |= _items(record[_CONFIG][-1])
            elif _HISTORY in record:
                history.append(_items(record[_HISTORY][-1]))
    except (ValueError, UnicodeDecodeError):
        raise InputError(f"{file}: cannot be read as a file of W&B; it may be of another version") from None
    environment = run.settings.get("_wandb", {})
    run.settings = flat({name: value for name, value in run.settings.items() if name != "_wandb"})
    _add_machine(environment, file, run)
    return runs_of_rows(run, history)


def _items(message: bytes) -> dict[str, Any]:
    """Items of a history or a configuration, by name."""
    result: dict[str, Any] = {}
    for item in map(fields_of, fields_of(message).get(_ITEMS, ())):
        key = first(item, _KEY, b"") or b".".join(item.get(_NESTED_KEY, ()))
        with suppress(ValueError):
            result[key.decode()] = json.loads(first(item, _VALUE, b"null"))
    return result


def _add_machine(environment: Any, file: Path, run: LoggedRun) -> None:
    """The device that W&B notes of the machine."""
    metadata = file.parent / "files" / "wandb-metadata.json"
    notes = [environment] if isinstance(environment, dict) else []
    if metadata.is_file():
        with suppress(ValueError):
            notes.append(json.loads(text_of(metadata, "JSON")))
    for note in notes:
        if isinstance(note.get("gpu"), str):
            run.settings.setdefault("gpu", note["gpu"])


def _runs_of_table(path: Path) -> Iterator[LoggedRun]:
    rows = list(csv.DictReader(text_of(path, "CSV").splitlines()))
    header = list(rows[0]) if rows else []
    if "_step" in header or "_timestamp" in header:
        yield runs_of_rows(LoggedRun(str(path), path.stem), rows)
    elif "Name" in header:
        for row in rows:
            run = LoggedRun(f"{path}: {row['Name']}", path.stem, {name: cell for name, cell in row.items() if cell})
            run.totals = {name: number for name, cell in row.items() if (number := number_of(cell)) is not None}
            yield run
    elif header and any(" - " in name for name in header):
        yield from _runs_of_panel(path, header, rows)
    else:
        raise InputError(
            f"{path}: must be a history (columns _step, _timestamp), runs (Name) or a panel (RUN - METRIC)"
        )


def _runs_of_panel(path: Path, header: list[str], rows: list[dict[str, str]]) -> Iterator[LoggedRun]:
    """A panel's export: a column for each run's metric, besides the axis, and columns of its least and most."""
    columns = [name for name in header[1:] if " - " in name and not name.endswith(("__MIN", "__MAX"))]
    for name in columns:
        title, _, metric = name.rpartition(" - ")
        run = LoggedRun(f"{path}: {title}", path.stem)
        for row in rows:
            step, value = number_of(row[header[0]]), number_of(row[name])
            if step is not None and value is not None:
                run.add(metric, step, None, value)
        yield run
