"""Measured pairs from a CSV file: two jobs and the share of its solo speed that each kept."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Final

from nodewise_cli.failures import InputError, text_of
from nodewise_client import SharedRun

__all__ = ["read_pairs"]

COLUMNS: Final = ("first_job", "second_job", "first_share", "second_share")


def read_pairs(path: Path) -> tuple[SharedRun, ...]:
    """Pairs that ran, one a row. Further columns are left alone.

    Raises
    ------
    InputError
        Naming the file, the line and what would be right.
    """
    reader = csv.DictReader(io.StringIO(text_of(path, "CSV")))
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{path}: must have the columns {', '.join(COLUMNS)}; missing: {', '.join(missing)}")
    return tuple(
        SharedRun(
            first_job=row["first_job"] or "",
            second_job=row["second_job"] or "",
            first_share=_share(path, reader.line_num, "first_share", row["first_share"]),
            second_share=_share(path, reader.line_num, "second_share", row["second_share"]),
        )
        for row in reader
    )


def _share(path: Path, line: int, name: str, text: str | None) -> float:
    try:
        return float(text or "")
    except ValueError:
        raise InputError(f"{path}:{line}: {name}: must be a number such as 0.62, found {text!r}") from None
