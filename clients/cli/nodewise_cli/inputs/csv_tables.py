"""Tables in CSV files: the header and the rows below it, or an error with the file and the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodewise_cli.failures import InputError, unreadable
from nodewise_cli.inputs.foreign_files import refuse_foreign

__all__ = ["CsvTable", "open_table"]

_ENCODING: Final = "utf-8-sig"
"""UTF-8, with or without the mark that spreadsheets put in front."""


@dataclass(frozen=True, slots=True, eq=False)
class CsvTable:
    """A table as text.

    Attributes
    ----------
    header_line : int
        The line of the file that the header begins in.
    header : tuple of str
        Names of columns.
    rows : iterator of (int, list of str)
        Rows that are not blank, as long as the header, each with the line that it begins in; raises InputError.
    """

    path: Path
    header_line: int
    header: tuple[str, ...]
    rows: Iterator[tuple[int, list[str]]]

    def error(self, message: str) -> InputError:
        """An error in the header."""
        return InputError(f"{self.path}:{self.header_line}: {message}")

    def refuse_twice(self) -> None:
        """Raise InputError where a column is there more than once."""
        for name in self.header:
            if self.header.count(name) > 1:
                raise self.error(f"column {name} is there {self.header.count(name)} times in the header; keep one")


def open_table(path: Path, columns: Collection[str]) -> CsvTable:
    """Open a table; ``columns`` are named in the error for an empty file.

    Raises
    ------
    InputError
        Naming the file, and where there is one the line, and what would be right.
    """
    text = _text(path)
    rows = _rows(path, text)
    try:
        line, cells = next(rows, (0, []))
    except InputError:
        refuse_foreign(path, text)
        raise
    if not cells:
        raise InputError(f"{path}: is empty; the first line must name the columns, such as {', '.join(columns)}")
    header = tuple(cell.strip() for cell in cells)
    if not set(header) & set(columns):
        refuse_foreign(path, text)
    if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
        raise InputError(f"{path}:{line}: the columns must be separated by commas, found {header[0]!r}")
    return CsvTable(path, line, header, _as_long_as(path, header, rows))


def _as_long_as(
    path: Path, header: tuple[str, ...], rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    for line, cells in rows:
        if len(cells) != len(header):
            raise InputError(f"{path}:{line}: has {len(cells)} cells, but the header has {len(header)}")
        yield line, cells


def _text(path: Path) -> str:
    """What the file holds."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from None
    try:
        text = data.decode(_ENCODING)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{path}:{line}: byte {data[error.start]:#04x} is not UTF-8; save the table as CSV in UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{path}:{line}: contains a NUL byte; save the table as CSV in UTF-8")
    return text


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line that it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(f"{path}:{line}: is not valid CSV: {error}") from None
        if any(cell.strip() for cell in cells):
            yield line, cells
