"""Errors of the service about rows that came from a table, with the file's line."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Sequence
from typing import Final

from nodewise_cli.failures import CommandError, InputError
from nodewise_cli.inputs.table_content import timed_rows
from nodewise_cli.inputs.tables import Table
from nodewise_client import FieldViolation, NodewiseError
from nodewise_values.facts import CONFIGURATIONS, NETWORK, OBSERVATIONS, PHASE_TIMINGS, TRANSFORMER, WORKLOAD

__all__ = ["in_rows", "in_table"]

_ROW: Final = re.compile(r"(\w+)\[(\d+)\]$")


def in_table(error: NodewiseError, table: Table, rows: Sequence[int], path: str) -> CommandError | None:
    """The error with the line of the file, if it is about a row of a table.

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
            place, column = f"{table.path}:{table.lines[rows[row]]}", table.heading(_column(violation.field))
            return InputError(
                f"{place}: column {column}: {violation.description}",
                code=error.code,
                reason=error.reason,
                violations=[(f"{place}: {column}", violation.description)],
            )
    return None


def in_rows(
    error: NodewiseError, table: Table, rows: Sequence[int], path: str, runs: str = ".observations"
) -> CommandError | None:
    """The same where rows were sent as ``runs`` below the path, and those with phase timings beside them."""
    error_in_phases = in_table(error, table, timed_rows(table, rows), f"{path}.phase_timings")
    return error_in_phases or in_table(error, table, rows, f"{path}{runs}")


def _column(field: str) -> str:
    """The field as the reader of a table knows it."""
    last = field.rsplit(".", 1)[-1].split("[", 1)[0]
    runs = PHASE_TIMINGS if "phase_timings." in field else OBSERVATIONS
    fact = ChainMap(*map(dict, (runs, CONFIGURATIONS, WORKLOAD, NETWORK, TRANSFORMER))).get(last)
    return (fact and fact.csv) or {"group_compute_factors": "groups"}.get(last, last)


def _row(violation: FieldViolation, path: str) -> int | None:
    match = _ROW.search(violation.field)
    return int(match[2]) if match is not None and violation.field.startswith(path) else None
