"""What is wrong in a file, with line and column."""

from __future__ import annotations

import math
from collections.abc import Mapping

__all__ = ["JobsFileError", "Row", "wrong"]


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
    """One line's cells by column name; reads numbers or says where they are wrong."""

    def __init__(self, file: str, line: int, cells: Mapping[str, str]) -> None:
        self._file = file
        self._line = line
        self._cells = cells

    def fault(self, column: str, description: str) -> JobsFileError:
        """A fault in this line."""
        return wrong(self._file, self._line, column, description)

    def has(self, column: str, *, filled: bool = False) -> bool:
        """Whether the line has such a cell, and whether there is anything in it if that matters."""
        return column in self._cells and (not filled or bool(self._cells[column].strip()))

    def text(self, column: str) -> str:
        """The cell, which must not be empty."""
        value = self._cells[column].strip()
        if not value:
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
