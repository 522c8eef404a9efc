"""MLflow: a directory of its file store (`mlruns`), or a table of runs (`mlflow experiments csv`)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from nodewise_cli.failures import InputError, text_of
from nodewise_cli.imports.logged_runs import LoggedRun, Options, number_of

__all__ = ["read_mlflow"]

_NAME = re.compile(r"^(?:run_)?name: (.*)$", re.MULTILINE)


def read_mlflow(path: Path, _options: Options) -> Iterator[LoggedRun]:
    """The runs of a store, an experiment or a run's directory, or of a table."""
    if not path.is_dir():
        yield from _runs_of_table(path)
        return
    folders = [meta.parent for meta in sorted(path.rglob("meta.yaml")) if (meta.parent / "metrics").is_dir()]
    if not folders:
        raise InputError(f"{path}: holds no run of MLflow's file store (a directory with meta.yaml and metrics)")
    for folder in folders:
        run = LoggedRun(f"{path}: {_name(folder)}", _name(folder.parent))
        for file in _files(folder / "params"):
            run.settings[_key(file, folder / "params")] = text_of(file, "a parameter of MLflow").strip()
        for file in _files(folder / "metrics"):
            _add_metric(file, _key(file, folder / "metrics"), run)
        yield run


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _key(file: Path, folder: Path) -> str:
    return file.relative_to(folder).as_posix()


def _name(folder: Path) -> str:
    meta = folder / "meta.yaml"
    match = _NAME.search(text_of(meta, "YAML")) if meta.is_file() else None
    return match[1].strip("'\" ") if match else folder.name


def _add_metric(file: Path, name: str, run: LoggedRun) -> None:
    for number, line in enumerate(text_of(file, "a metric of MLflow").splitlines(), 1):
        cells = [number_of(cell) for cell in line.split()[:3]]
        if len(cells) < 2 or cells[0] is None:
            raise InputError(f"{file}:{number}: must be a time in ms, a value and a step, found {line!r}")
        time_ms, value, step = (*cells, 0.0)[:3]
        if value is not None:
            run.add(name, step or 0.0, time_ms / 1e3 if time_ms else None, value)


def _runs_of_table(path: Path) -> Iterator[LoggedRun]:
    rows = list(csv.DictReader(text_of(path, "CSV").splitlines()))
    if not rows or "run_id" not in rows[0]:
        raise InputError(f"{path}: must have a column run_id, as `mlflow experiments csv` writes it")
    for row in rows:
        run = LoggedRun(f"{path}: {row.get('tags.mlflow.runName') or row['run_id']}", path.stem)
        for name, cell in row.items():
            kind, _, key = name.partition(".")
            if kind == "params" and cell:
                run.settings[key] = cell
            elif kind == "metrics" and (value := number_of(cell)) is not None:
                run.totals[key] = value
        yield run
