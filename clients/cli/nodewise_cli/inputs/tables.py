"""Measurements tables: a CSV file read into typed columns, or an error with file, line and column."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from nodewise_cli.failures import InputError
from nodewise_cli.inputs.aliases import column_named, suggest_column
from nodewise_cli.inputs.columns import (
    COLUMNS,
    DEFAULTS,
    INSTEAD_OF_RATES,
    RATES,
    READ,
    REQUIRED,
    CellError,
    RowError,
)
from nodewise_cli.inputs.csv_tables import CsvTable, open_table
from nodewise_cli.inputs.node_counts import node_counts
from nodewise_cli.inputs.shared_samples import whole_batches
from nodewise_cli.inputs.table_checks import contradictions
from nodewise_cli.inputs.units import convert_rates

__all__ = ["Table", "read_table", "table_of_cells"]

_INSTEAD: Final = {
    "nodes": "or state gpus_per_node instead of nodes",
    "device": "device names the accelerator, such as A100",
    "steps_per_s": f"or the throughput in another unit: {', '.join(RATES[1:])}",
}
"""What else may be given for a required column, or what it holds."""


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
    written : mapping
        Columns by their names in the file, where these are others.
    counts : mapping
        Jobs of unknown batch, and what their throughputs count: "samples" or "tokens". Their steps are no real ones.
    """

    path: Path
    lines: tuple[int, ...]
    columns: Mapping[str, tuple[Any, ...]]
    rows_by_job: Mapping[str, tuple[int, ...]]
    written: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)

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

    def heading(self, name: str) -> str:
        """A column as the file names it."""
        return self.written.get(name, name)

    def error(self, row: int, message: str) -> InputError:
        """An error in a row."""
        return InputError(f"{self.path}:{self.lines[row]}: {message}")


def read_table(path: Path, *, predicted: bool = False, without_batch: bool = False) -> Table:
    """Read a table.

    Parameters
    ----------
    predicted : bool
        Whether rows may be there to be predicted alone, so that no throughput need be in the table.
    without_batch : bool
        Whether throughputs in samples or tokens will do where no row of a job says its batch.

    Raises
    ------
    InputError
        Naming the file, and where there is one the line and the column, and what would be right.
    """
    read = open_table(path, (*REQUIRED, "steps_per_s", "..."))
    names = _names(read, predicted=predicted)
    lines, columns = _read_rows(read, names)
    if not lines:
        raise InputError(f"{path}: has no rows below the header")
    written = {name: heading for heading, name in zip(read.header, names, strict=True) if heading != name}
    try:
        table = table_of_cells(path, lines, columns, without_batch=without_batch)
    except RowError as error:
        column = written.get(error.column, error.column)
        raise InputError(f"{path}:{lines[error.row]}: column {column}: {error}") from None
    return replace(table, written=written)


def table_of_cells(
    path: Path, lines: Sequence[int], cells: Mapping[str, Sequence[Any]], *, without_batch: bool
) -> Table:
    """A table of columns whose cells were read one by one; ``without_batch`` as of :func:`read_table`.

    Raises
    ------
    RowError
        Naming the row and the column of what contradicts itself, and what would be right.
    """
    filled_columns: dict[str, tuple[Any, ...]] = {
        name: tuple(cells.get(name) or [DEFAULTS.get(name)] * len(lines)) for name in READ
    }
    rates = zip(*(filled_columns[name] for name in RATES), strict=True)
    filled_columns["split"] = tuple(
        split or ("test" if all(rate is None for rate in rates_of_row) else "train")
        for split, rates_of_row in zip(filled_columns["split"], rates, strict=True)
    )
    by_job: dict[str, list[int]] = {}
    for row, job in enumerate(filled_columns["job"]):
        by_job.setdefault(job, []).append(row)
    rows_by_job = {job: tuple(rows_of_job) for job, rows_of_job in by_job.items()}
    filled_columns |= node_counts(filled_columns)
    for row, name, message in contradictions(filled_columns, lines):
        raise RowError(row, name, message)
    columns, counts = convert_rates(whole_batches(filled_columns), rows_by_job, without_batch=without_batch)
    return Table(path, tuple(lines), {name: tuple(columns[name]) for name in COLUMNS}, rows_by_job, counts=counts)


def _names(read: CsvTable, *, predicted: bool) -> tuple[str, ...]:
    """The columns that a header names, in its order."""
    where = f"{read.path}:{read.header_line}"
    columns_by_heading = {heading: column_named(heading, READ) for heading in read.header}
    unknown = {heading: suggest_column(heading, READ) for heading, name in columns_by_heading.items() if name is None}
    if unknown:
        plural = "column" if len(unknown) == 1 else "columns"
        names_text = ", ".join(f"{heading!r}{hint}" for heading, hint in unknown.items())
        raise InputError(
            f"{where}: unknown {plural} {names_text}; columns are: {', '.join(READ)}",
            violations=[(f"{where}: {heading}", f"is unknown{hint}") for heading, hint in unknown.items()],
        )
    read.refuse_twice()
    names: dict[str, str] = {}
    for heading, name in columns_by_heading.items():
        if name in names:
            raise read.error(f"columns {names[name]} and {heading} both state {name}: keep one of them")
        names[str(name)] = heading
    _refuse_missing(read, names, predicted=predicted)
    return tuple(names)


def _refuse_missing(read: CsvTable, names: Container[str], *, predicted: bool) -> None:
    missing = [name for name in REQUIRED if name not in names]
    has_counts = "gpus_per_node" in names and not {"nodes", "workers"} <= {*missing}
    missing = [name for name in missing if not has_counts or name not in ("nodes", "workers")]
    if not predicted and not any(name in names for name in (*RATES, *INSTEAD_OF_RATES)):
        missing.append("steps_per_s")
    if not missing:
        return
    plural = "column" if len(missing) == 1 else "columns"
    more = [hint for name, hint in _INSTEAD.items() if name in missing]
    raise read.error("; ".join([f"the required {plural} {', '.join(missing)} must be given", *more]))


def _read_rows(read: CsvTable, names: Sequence[str]) -> tuple[list[int], dict[str, list[Any]]]:
    lines: list[int] = []
    columns: dict[str, list[Any]] = {name: [] for name in names}
    # Tables repeat few distinct cells, so each is read once.
    cache: dict[str, dict[str, Any]] = {name: {} for name in names}
    for line, cells in read.rows:
        for name, heading, cell in zip(names, read.header, cells, strict=True):
            values = cache[name]
            if cell not in values:
                try:
                    values[cell] = _value(name, cell.strip(), by_alias=name != heading)
                except CellError as error:
                    raise InputError(
                        f"{read.path}:{line}: column {heading}: {error}, found {_show_cell(cell)}"
                    ) from None
            columns[name].append(values[cell])
        lines.append(line)
    return lines, columns


def _value(name: str, cell: str, *, by_alias: bool) -> Any:
    if by_alias and name == "device" and cell.isdigit():
        raise CellError("must name the accelerator, such as A100 (their number is the column workers or gpus)")
    if cell:
        return READ[name](cell)
    if name in ("job", "device"):
        raise CellError("must be given")
    return DEFAULTS.get(name)


def _show_cell(cell: str) -> str:
    text = cell.strip()
    return repr(text if len(text) <= 60 else text[:57] + "...") if text else "nothing"
