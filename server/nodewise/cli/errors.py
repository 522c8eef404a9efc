"""Errors of the service as exit statuses and lines for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from nodewise.cli.failures import CommandError, ExitStatus, InputError
from nodewise.cli.tables import Table
from nodewise_client import (
    FieldViolation,
    InvalidArgumentError,
    NodewiseError,
    NotFoundError,
    RefusedError,
)

__all__ = ["explained", "in_table", "status_of"]

_ROW: Final = re.compile(r"(\w+)\[(\d+)\]$")


def status_of(error: NodewiseError) -> ExitStatus:
    """The exit status that says what kind of failure it was."""
    if isinstance(error, RefusedError):
        return ExitStatus.REFUSED
    if isinstance(error, InvalidArgumentError | NotFoundError):
        return ExitStatus.BAD_INPUT
    return ExitStatus.FAILURE


def explained(error: NodewiseError) -> str:
    """One line: the reason, what is wrong, where, and what would be right."""
    text = str(error)
    if isinstance(error, RefusedError):
        missing = [field for field in error.missing_fields if field not in text]
        if missing:
            text += f"; missing: {', '.join(missing)}"
    return text


def in_table(error: NodewiseError, table: Table, rows: Sequence[int], path: str) -> CommandError | None:
    """The error with the file's line, where it is about a row that came from a table.

    Parameters
    ----------
    rows : sequence of int
        The table's row of each row that was sent.
    path : str
        Fields below this one hold these rows.
    """
    for violation in error.violations:
        row = _row(violation, path)
        if row is not None and row < len(rows):
            return InputError(f"{table.path}:{table.lines[rows[row]]}: {violation.field}: {violation.description}")
    return None


def _row(violation: FieldViolation, path: str) -> int | None:
    match = _ROW.search(violation.field)
    return int(match[2]) if match is not None and violation.field.startswith(path) else None
