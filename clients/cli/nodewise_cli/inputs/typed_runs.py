"""Measured runs on the command line, as ``--measured 1=19800,2=38100``: a table without a file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.aliases import column_named, suggest_column
from nodewise_cli.inputs.columns import RATES, READ, CellError, RowError
from nodewise_cli.inputs.tables import Table, table_of_cells

__all__ = ["typed_table"]

_RUN: Final = re.compile(r"\s*(\d{1,9})\s*=\s*(\S+)\s*", re.ASCII)
_FORM: Final = "must be NODES=THROUGHPUT pairs, such as 1=19800,2=38100,4=72400"
_NAME: Final = "measured"


class RunOptions(Protocol):
    """The options about measured runs."""

    @property
    def measured_runs(self) -> str | None: ...
    @property
    def job(self) -> str | None: ...
    @property
    def unit(self) -> str: ...
    @property
    def gpus_per_node(self) -> int | None: ...
    @property
    def sequence_length(self) -> int | None: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...


def typed_table(options: RunOptions, *, without_batch: bool) -> Table:
    """The table of one job that the options state: how its runs ran is as they ask; ``without_batch`` as of read_table.

    Raises
    ------
    InputError
        Naming the option and what would be right.
    """
    unit = column_named(options.unit, RATES)
    if unit not in RATES:
        units = f"{', '.join(RATES[:-1])} or {RATES[-1]}"
        raise InputError(f"--unit: must be {units}, found {options.unit!r}{suggest_column(options.unit, RATES)}")
    runs = [_parse_run(part, unit) for part in (options.measured_runs or "").split(",")]
    settings = {name: value for name, value in options.settings.items() if name in READ}
    row = {"job": options.job or _NAME, "device": "", "sequence_length": options.sequence_length, **settings}
    cells = {name: [value] * len(runs) for name, value in row.items()}
    cells["nodes"] = [nodes for nodes, _ in runs]
    cells["workers"] = [nodes * (options.gpus_per_node or 1) for nodes, _ in runs]
    cells[unit] = [rate for _, rate in runs]
    try:
        return table_of_cells(Path("--measured"), range(1, len(runs) + 1), cells, without_batch=without_batch)
    except RowError as error:
        option = "measured" if error.column in RATES else error.column.replace("_", "-")
        raise InputError(f"--{option}: {error}") from None


def _parse_run(part: str, unit: str) -> tuple[int, float]:
    """Nodes, and the throughput on them."""
    match = _RUN.fullmatch(part)
    if match is None or not int(match[1]):
        raise InputError(f"--measured: {_FORM}, found {part.strip()!r}")
    try:
        return int(match[1]), READ[unit](match[2])
    except CellError as error:
        raise InputError(f"--measured: the throughput on {match[1]} nodes {error}, found {match[2]!r}") from None
