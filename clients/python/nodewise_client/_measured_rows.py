"""Rows that were measured, observations and timed phases alike: cut into pieces, gathered, and as values again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from nodewise_client._columns import leaves_rows_open, read, write_columns
from nodewise_client._configurations import Columns, configurations, count_rows, row_columns, stated_columns
from nodewise_values import Configurations, Observations, PhaseTimings
from nodewise_values.fact import Fact
from nodewise_values.facts import OBSERVATIONS, PHASE_TIMINGS

Measured: TypeAlias = Observations | PhaseTimings
MeasuredT = TypeVar("MeasuredT", Observations, PhaseTimings)

FACTS: Final[Mapping[type[Measured], Mapping[str, Fact]]] = {Observations: OBSERVATIONS, PhaseTimings: PHASE_TIMINGS}
# Rows that differ in any other column cannot share a batch: there, absence means "as in the job's evidence", which no
# value of a row says.
_OPEN: Final = frozenset(
    name for kind, facts in FACTS.items() for name, fact in facts.items() if leaves_rows_open(kind, fact)
)


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows that go into one batch together, as columns with those of their configurations; None = not known."""

    kind: type[Measured]
    columns: Columns
    begin: int
    end: int


def pieces(measured_rows: Measured, most: int, *, numbered: bool = False) -> Iterator[Piece]:
    """Rows cut so that no piece has more than so many. `numbered` keeps the numbers that the server gave them."""
    kind = type(measured_rows)
    names = (*FACTS[kind], "numbers") if numbered else tuple(FACTS[kind])
    ran = stated_columns(measured_rows.configurations or Configurations())
    rows = max(count_rows(ran), *(len(getattr(measured_rows, name)) for name in names))
    columns = row_columns(ran, rows) | {
        name: column for name in names if (column := read(kind, measured_rows, name, rows))
    }
    for begin in range(0, rows, most):
        yield Piece(kind, columns, begin, min(rows, begin + most))


@dataclass(slots=True)
class GatheredRows:
    """Rows of many pieces by columns, None where a row states nothing."""

    count: int = 0
    columns: dict[str, list[Any]] = field(default_factory=dict)

    def fits(self, piece: Piece) -> bool:
        """Whether the rows of a piece may stand beside these: all state the same, but for what a row may leave open."""
        return not self.count or self.columns.keys() - _OPEN == piece.columns.keys() - _OPEN

    def add(self, piece: Piece, begin: int, end: int) -> None:
        """Add rows of a piece."""
        for name, column in piece.columns.items():
            entries = self.columns.get(name)
            if entries is None:
                entries = self.columns[name] = [None] * self.count
            entries += column[begin:end]
        for name in self.columns.keys() - piece.columns.keys():
            self.columns[name] += [None] * (end - begin)
        self.count += end - begin

    def value(self, kind: type[MeasuredT]) -> MeasuredT | None:
        """The rows as a value; None = there are none."""
        if not self.count:
            return None
        columns = {name: tuple(column) for name, column in self.columns.items() if name in kind.__dataclass_fields__}
        ran = {name: column for name, column in self.columns.items() if name not in columns}
        return kind(configurations=configurations(**ran), **write_columns(kind, FACTS[kind], columns))


def gathered_rows(kind: type[MeasuredT], values: Iterable[MeasuredT]) -> MeasuredT | None:
    """Several values with their numbers as one; None = there are no rows."""
    rows = GatheredRows()
    for value in values:
        for piece in pieces(value, most=1 << 31, numbered=True):
            rows.add(piece, piece.begin, piece.end)
    return rows.value(kind)
