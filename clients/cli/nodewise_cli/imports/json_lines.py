"""JSON lines: objects that state a step, or one run each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nodewise_cli.failures import InputError, text_of
from nodewise_cli.imports.logged_runs import STEP_NAMES, LoggedRun, Options, flat, number_of, runs_of_rows

__all__ = ["object_rows", "read_json_lines"]


def read_json_lines(path: Path, _options: Options) -> Iterator[LoggedRun]:
    """One run of the lines that state a step, and one of each other line that states a number."""
    rows = list(object_rows(path))
    steps = [row for _, row in rows if any(name in row for name in STEP_NAMES)]
    others = [(line, row) for line, row in rows if not any(name in row for name in STEP_NAMES)]
    if steps:
        # What is logged once, such as a first line of settings, belongs to the steps.
        run = LoggedRun(str(path), path.stem, {name: value for _, row in others for name, value in row.items()})
        yield runs_of_rows(run, steps)
        return
    for line, row in others:
        totals = {name: number for name, value in row.items() if (number := number_of(value)) is not None}
        yield LoggedRun(f"{path}:{line}", str(row.get("job", path.stem)), dict(row), totals=totals)


def object_rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Objects with their lines, flat; a file may also be one list of objects."""
    text = text_of(path, "JSON lines")
    whole = text.lstrip().startswith("[")
    for number, line in enumerate([text] if whole else text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}:{number}: is not JSON: {error}") from None
        for each in value if whole and isinstance(value, list) else [value]:
            if not isinstance(each, dict):
                raise InputError(f"{path}:{number}: must be a JSON object")
            yield number, flat(each)
