"""Rows that were measured, observations and timed phases alike: cut into pieces, gathered, and as values again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from nodewise_client._columns import leaves_rows_open, read, written
from nodewise_client._configurations import Columns, configurations, count_rows, row_columns
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
    """Rows that go into one batch together, as columns; None = not known."""

    kind: type[Measured]
    configurations: Columns
    measured: Columns
    begin: int
    end: int


def pieces(given: Measured, most: int, *, numbered: bool = False) -> Iterator[Piece]:
    """Rows cut so that no piece has more than so many. `numbered` keeps the numbers that the server gave them."""
    kind = type(given)
    ran = given.configurations or Configurations()
    names = (*FACTS[kind], "numbers") if numbered else tuple(FACTS[kind])
    rows = max(count_rows(ran), *(len(getattr(given, name)) for name in names))
    configured = row_columns(ran, rows)
    measured = {name: column for name in names if (column := read(kind, given, name, rows))}
    for begin in range(0, rows, most):
        yield Piece(kind, configured, measured, begin, min(rows, begin + most))


@dataclass(slots=True)
class GatheredRows:
    """Rows of many pieces by columns, None where a row states nothing."""

    count: int = 0
    configurations: dict[str, list[Any]] = field(default_factory=dict)
    measured: dict[str, list[Any]] = field(default_factory=dict)

    def fits(self, piece: Piece) -> bool:
        """Whether the rows of a piece may stand beside these: all state the same, but for what a row may leave open."""
        return not self.count or (
            self.configurations.keys() == piece.configurations.keys()
            and self.measured.keys() - _OPEN == piece.measured.keys() - _OPEN
        )

    def add(self, piece: Piece, begin: int, end: int) -> None:
        """Add rows of a piece."""
        for held, columns in ((self.configurations, piece.configurations), (self.measured, piece.measured)):
            for name in held.keys() | columns.keys():
                column = held.setdefault(name, [None] * self.count)
                column.extend(columns[name][begin:end] if name in columns else [None] * (end - begin))
        self.count += end - begin

    def value(self, kind: type[MeasuredT]) -> MeasuredT:
        """The rows as a value."""
        columns = {name: tuple(column) for name, column in self.measured.items()}
        return kind(configurations=configurations(**self.configurations), **written(kind, FACTS[kind], columns))


def gathered_rows(kind: type[MeasuredT], values: Iterable[MeasuredT]) -> MeasuredT:
    """Several values with their numbers as one."""
    rows = GatheredRows()
    for value in values:
        for piece in pieces(value, most=1 << 31, numbered=True):
            rows.add(piece, piece.begin, piece.end)
    return rows.value(kind)
