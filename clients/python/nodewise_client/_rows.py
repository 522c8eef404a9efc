"""Rows over columns: answers come as columns, and are read row by row. Nothing is copied until it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice, repeat
from operator import eq
from typing import Any, Final, Generic, TypeVar, overload

SHOWN_ROWS: Final = 10
"""Rows that a table prints: the first ones and the last."""
_DIGITS: Final = 5


class Part:
    """Rows of columns, from one to another. What a column says of them is made out once, when it is first read.

    Attributes
    ----------
    columns : Value
        Of all rows.
    begin, end : int
        The rows that are meant.
    """

    __slots__ = ("_finished", "_kind", "begin", "columns", "end")

    def __init__(self, kind: type[Row], columns: Any, begin: int, end: int) -> None:
        self.columns = columns
        self.begin = begin
        self.end = end
        self._kind = kind
        self._finished: dict[str, Sequence[Any]] = {}

    def __getitem__(self, column: str) -> Sequence[Any]:
        """What a column says of each of these rows; None = nothing."""
        found = self._finished.get(column)
        if found is None:
            found = self._finished[column] = self._kind._column(self, column)  # noqa: SLF001  # its rows
        return found

    def held(self, column: str) -> Sequence[Any]:
        """The entries of these rows; empty where the column is."""
        held: Sequence[Any] = getattr(self.columns, column)
        return held[self.begin : self.end]

    def __len__(self) -> int:
        return self.end - self.begin


class Row:
    """One row of a value made of columns. Its names are those of the columns, in the singular where they are plural."""

    __slots__ = ("_part", "_place")

    def __init__(self, part: Part, place: int) -> None:
        self._part = part
        self._place = place

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # a copy asks before it has columns
        kind: Any = type(self._columns)
        column = column_name(kind, name)
        if column is None:
            raise AttributeError(f"a row of {kind.__name__} has no {name!r}")
        # From now on it is found at once: rows of a class are always of the same columns.
        reading = self._reading(column)
        setattr(type(self), name, property(reading))
        return reading(self)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self._columns).__dataclass_fields__]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other):
            return NotImplemented
        return self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]  # like the columns, which may be lists

    def __repr__(self) -> str:
        told = (f"{name}={_cell(getattr(self, name))}" for name in self._shown())
        return f"{type(self).__name__}({', '.join(told)})"

    @property
    def _columns(self) -> Any:
        return self._part.columns

    @property
    def _index(self) -> int:
        """Among all rows."""
        return self._part.begin + self._place

    @classmethod
    def _reading(cls, column: str) -> Callable[[Any], Any]:
        """What reads a row's entry of a column."""
        return lambda row: row._part[column][row._place]  # noqa: SLF001  # its own

    @classmethod
    def _column(cls, part: Part, column: str) -> Sequence[Any]:
        """What a column says of each row."""
        return part.held(column) or (None,) * len(part)

    def _said(self) -> dict[str, Any]:
        """What the row says, by the columns that hold it."""
        return {name: getattr(self, name) for name in self._names()}

    def _names(self) -> Sequence[str]:
        """Columns that have an entry for every row."""
        names = type(self._columns).__dataclass_fields__
        return [name for name in names if isinstance(getattr(self._columns, name), tuple | list)]

    def _shown(self) -> Sequence[str]:
        """Names that are printed."""
        return self._names()


RowT = TypeVar("RowT", bound=Row)


class Rows(Sequence[RowT], Generic[RowT]):
    """The rows of a value made of columns."""

    __slots__ = ("_kind", "_part")

    def __init__(self, kind: type[RowT], columns: Any, begin: int, end: int) -> None:
        self._kind = kind
        self._part = Part(kind, columns, begin, end)

    def __len__(self) -> int:
        return len(self._part)

    def __iter__(self) -> Iterator[RowT]:
        return map(self._kind, repeat(self._part), range(len(self._part)))

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowT, ...]: ...
    def __getitem__(self, index: int | slice) -> RowT | tuple[RowT, ...]:
        places = range(len(self._part))[index]
        if isinstance(places, int):
            return self._kind(self._part, places)
        return tuple(self._kind(self._part, place) for place in places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as its rows

    def __repr__(self) -> str:
        return table(self)


@cache
def column_name(kind: Any, name: str) -> str | None:
    """The column of a value's class that a name of a row stands for; None = none."""
    known = kind.__dataclass_fields__
    return next((each for each in (name, f"{name}s", f"{name}es") if each in known), None)


def table(rows: Sequence[Row]) -> str:
    """Rows as a small table for people: never more than a screen, however many there are."""
    if not rows:
        return "no rows"
    head = rows if len(rows) <= SHOWN_ROWS else [*islice(rows, SHOWN_ROWS - 1), rows[-1]]
    names = [name for name in head[0]._shown() if any(getattr(row, name) is not None for row in head)]  # noqa: SLF001  # its own
    lines = [["", *names]]
    lines += [[str(number), *(_cell(getattr(row, name)) for name in names)] for number, row in enumerate(head)]
    if len(rows) > len(head):
        lines[-1][0] = str(len(rows) - 1)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    printed = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    if len(rows) > len(head):
        printed.insert(-1, f"... {len(rows) - len(head)} more rows ...")
    return "\n".join(printed)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)
