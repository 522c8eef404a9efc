"""Rows of files, and what is wrong in them, with line and column."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TextIO, TypeVar

__all__ = ["JobsFileError", "Row", "readable", "rows_of", "wrong"]

RowT = TypeVar("RowT", bound="Row")
FoundT = TypeVar("FoundT")


class JobsFileError(Exception):
    """What is given cannot be read.

    Attributes
    ----------
    field : str
        Where: a parameter, or file, line (from 1) and column.
    """

    def __init__(self, field: str, description: str) -> None:
        super().__init__(f"{field}: {description}")
        self.field = field


def wrong(file: str, line: int, column: str, description: str) -> JobsFileError:
    """A fault in a file; lines count from 1."""
    return JobsFileError(f"{file}:{line}:{column}", description)


class Row:
    """The cells of a line by column name; reads numbers, or reports the faulty cell."""

    def __init__(self, file: str, line: int, cells: Mapping[str, str], misfit: str = "") -> None:
        self._file = file
        self._cells = cells
        self.line = line
        self.misfit: Final = misfit
        """What is wrong where the line has more or fewer cells than the header; empty = nothing."""

    def fault(self, column: str, description: str) -> JobsFileError:
        """A fault in this line."""
        return wrong(self._file, self.line, column, description)

    def has(self, column: str, *, filled: bool = False) -> bool:
        """Whether the line has such a cell; with ``filled``, whether it is not empty."""
        return column in self._cells and (not filled or bool(self._cells[column].strip()))

    def text(self, column: str, default: str | None = None) -> str:
        """The cell, which must not be empty unless there is a default."""
        value = self._cells.get(column, "").strip() or default
        if value is None:
            raise self.fault(column, "must not be empty")
        return value

    def number(self, column: str, least: float = 0.0, default: float | None = None, *, above: bool = False) -> float:
        """A finite number of at least (or ``above``) ``least``; an empty cell is ``default``, if there is one."""
        cell = self._cells.get(column, "").strip()
        if not cell and default is not None:
            return default
        try:
            value = float(cell)
        except ValueError:
            raise self.fault(column, f"must be a number, found {cell!r}") from None
        if not math.isfinite(value) or value < least or (above and value == least):
            raise self.fault(column, f"must be {'above' if above else 'at least'} {least:g}, found {cell}")
        return value

    def whole(self, column: str, least: int = 0, default: int | None = None) -> int:
        """A whole number."""
        value = self.number(column, least, default)
        if value != int(value):
            raise self.fault(column, f"must be a whole number, found {self._cells[column].strip()}")
        return int(value)


def rows_of(
    stream: TextIO,
    file: str,
    required: Sequence[str],
    optional: Sequence[str] | None = None,
    *,
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    any_case: bool = False,
) -> Iterator[Row]:
    """Rows of a CSV file whose header has the required columns, and no others than optional ones; None = any others.

    Parameters
    ----------
    names : sequence of str or None
        Columns of a file without a header.
    any_case : bool
        Names in the header may be written in any case; rows have them in lower case.

    Raises
    ------
    JobsFileError
        A fault of the header, or a row with more cells than it where all columns are known.
    """
    # Only commas need quotes; a name that sacct prints may hold one that nothing closes.
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    reader = csv.DictReader(stream, names, delimiter=delimiter, quoting=quoting)
    header = reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
    if any_case:
        header = reader.fieldnames = [name.lower() for name in header]
    for name in required:
        if name not in header:
            raise wrong(file, 1, name, "is missing in the header row")
    columns = header if optional is None else [*required, *optional]
    for name in header:
        if name not in columns:
            raise wrong(file, 1, name, f"is unknown; columns are: {', '.join(columns)}")
    return _rows(reader, file, header, strict=optional is not None)


def _rows(reader: csv.DictReader[str], file: str, header: Sequence[str], *, strict: bool) -> Iterator[Row]:
    for cells in reader:
        cells_by_column = {name: text or "" for name, text in cells.items() if name is not None}
        fits = None not in cells and None not in cells.values()
        misfit = "" if fits else f"must have {len(header)} cells, as the header has"
        row = Row(file, reader.line_num, cells_by_column, misfit)
        if None in cells and strict:
            raise row.fault(str(len(header) + 1), f"is one cell too many; the header has {len(header)}")
        yield row


def readable(read: Callable[[RowT], FoundT], rows: Iterable[RowT]) -> Iterator[FoundT | JobsFileError]:
    """The result of each row, or its fault: a faulty row does not affect the others."""
    for row in rows:
        try:
            if row.misfit:
                raise row.fault("cells", row.misfit)
            yield read(row)
        except JobsFileError as fault:
            yield fault
