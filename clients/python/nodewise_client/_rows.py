"""Rows over columns: answers come as columns, and are read row by row. Nothing is copied until it is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache, lru_cache
from itertools import chain, islice, repeat
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, TypeVar, overload

from google.protobuf.message import Message

from nodewise_values.value import source_of

SHOWN_ROWS: Final = 10
"""Rows that a table prints: the first ones and the last."""
_DIGITS: Final = 5
_CHUNK_ROWS: Final = 256
"""Rows that are made at once where many are read."""
_FIRST_CHUNKS_ROWS: Final = (1, 15)
"""Before it has shown what is read of each."""
_FEW_ROWS: Final = 32
"""Rows of an answer of which it is cheaper to make what is mostly read than to find out what is read."""


class Part:
    """Columns as their rows read them. What a column says of them is made out once, when it is first read.

    Attributes
    ----------
    kind : type of Row
        Of the rows.
    columns : Value
        As they came.
    read : mapping of str to sequence
        What is read of rows, by its names in a row; of each as many entries as there are rows.
    """

    __slots__ = ("_count", "_finished", "_held", "_readers", "_whole", "columns", "kind", "read")

    def __init__(self, kind: Any, columns: Any, count: int) -> None:
        self.kind = kind
        self.columns = columns
        self.read: dict[str, Sequence[Any]] = {}
        self._count = count
        self._whole, self._readers = source_of(columns)
        self._held: dict[str, Sequence[Any]] = {}
        self._finished: dict[str, Sequence[Any]] = {}
        held: Any = type(columns)
        _know(kind, held)

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (self.kind, self.columns, self._count)

    def __getitem__(self, column: str) -> Sequence[Any]:
        """What a column says of each row; None = nothing."""
        found = self._finished.get(column)
        if found is None:
            made = self.kind._made.get(column)  # noqa: SLF001  # its rows
            found = self._finished[column] = self.kind._column(self, column) if made is None else made(self)  # noqa: SLF001
        return found

    def held(self, column: str) -> Sequence[Any]:
        """A column as it came."""
        held = self._held.get(column)
        if held is None:
            held = self._held[column] = self._readers[column](self._whole)
        return held

    def __len__(self) -> int:
        return self._count

    def entries(self, name: str, column: str) -> Sequence[Any]:
        """What each row says, by the name that it has there."""
        found = self[column]
        if len(found) == self._count:
            self.read[name] = found
        return found

    def prepare(self) -> None:
        """Read at once what is mostly read, where few rows come in a message."""
        if 0 < self._count <= _FEW_ROWS and isinstance(self._whole, Message):
            self.read.update(self.kind._of_few(self._whole, self._count))  # noqa: SLF001  # its rows

    def rows(self, begin: int, end: int) -> Sequence[Any]:
        """Rows that hold at once what others were asked for."""
        if not self.read:
            return [self.kind(self, place) for place in range(begin, end)]
        held = dict(self.read)
        writable, kind, fill = _filled(self.kind, tuple(held))
        rows = list(map(object.__new__, repeat(writable, end - begin)))
        columns = (column[begin:end] for column in held.values())
        deque(map(fill, rows, repeat(self), range(begin, end), *columns), maxlen=0)
        deque(map(_become, rows, repeat(kind)), maxlen=0)  # a class that refuses assignments is filled slowly
        return rows


Makers: TypeAlias = Mapping[str, Callable[[Part], Sequence[Any]]]
"""What makes that which rows say besides columns, by its name."""


class Row:
    """One row of a value made of columns. Its names are those of the columns, in the singular where they are plural."""

    __slots__ = ("_part", "_place")

    _made: ClassVar[Makers] = {}

    def __init__(self, part: Part, place: int) -> None:
        self._part = part
        self._place = place

    if TYPE_CHECKING:
        # Columns that this release does not know. At run time they are properties: with this every read is slower.
        def __getattr__(self, name: str) -> Any: ...

    def __reduce__(self) -> tuple[Any, ...]:
        return self._part.kind, (self._part, self._place)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self._columns).__dataclass_fields__]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or self._part.kind is not other._part.kind:
            return NotImplemented
        return self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]  # like the columns, which may be lists

    def __repr__(self) -> str:
        told = (f"{name}={_cell(getattr(self, name))}" for name in self._shown())
        return f"{type(self).__name__}({', '.join(told)})"

    @property
    def _columns(self) -> Any:
        return self._part.columns

    @classmethod
    def _reading(cls, name: str, column: str) -> Callable[[Any], Any]:
        """What reads a row's entry of a column."""

        def read(row: Row) -> Any:
            part = row._part
            return (part.read.get(name) or part.entries(name, column))[row._place]

        return read

    @classmethod
    def _column(cls, part: Part, column: str) -> Sequence[Any]:
        """What a column says of each row."""
        return part.held(column) or (None,) * len(part)

    @staticmethod
    def _of_few(_message: Any, _count: int, /) -> Mapping[str, Sequence[Any]]:
        """What is mostly read of a message's rows, of which there are so many, by its names in a row."""
        return {}

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

    __slots__ = ("_begin", "_end", "_part")

    def __init__(self, kind: type[RowT], columns: Any, begin: int, end: int) -> None:
        self._part = Part(kind, columns, end)
        self._begin = begin
        self._end = end

    def between(self, begin: int, end: int) -> Rows[RowT]:
        """Some of these rows, which share what was made out."""
        found = object.__new__(type(self))
        found._part, found._begin, found._end = self._part, begin, end
        return found

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[RowT]:
        part = self._part
        if not part.read:
            part.prepare()
        if part.read and len(self) <= _CHUNK_ROWS:
            return iter(part.rows(self._begin, self._end))
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Iterator[Sequence[RowT]]:
        sizes = chain(() if self._part.read else _FIRST_CHUNKS_ROWS, repeat(_CHUNK_ROWS))
        begin = self._begin
        while begin < self._end:
            end = min(begin + next(sizes), self._end)
            yield self._part.rows(begin, end)
            begin = end

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowT, ...]: ...
    def __getitem__(self, index: int | slice) -> RowT | tuple[RowT, ...]:
        places: Any = range(self._begin, self._end)[index]
        kind: Any = self._part.kind
        return kind(self._part, places) if isinstance(places, int) else tuple(map(kind, repeat(self._part), places))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as its rows

    def __repr__(self) -> str:
        return table(self)


_become: Final[Callable[[Any, Any], None]] = vars(object)["__class__"].__set__


@lru_cache(maxsize=128)
def _filled(kind: Any, names: tuple[str, ...]) -> tuple[Any, Any, Callable[..., None]]:
    """Rows of a kind that hold entries by these names themselves, where they are read at once.

    Returns
    -------
    tuple
        Their class while they are filled, the one that they have from then on, and what fills them.
    """
    told = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    writable = type(kind.__name__, (kind,), {"__slots__": names, **told})
    frozen = type(
        kind.__name__, (writable,), {"__slots__": (), "__setattr__": _refused, "__delattr__": _refused, **told}
    )
    # The quickest assignments that there are without code of our own, as text: those of a dataclass's own `__init__`.
    fill: Any = vars(make_dataclass("_Filled", ("_part", "_place", *names)))["__init__"]
    return writable, frozen, fill


def _refused(row: Row, name: str, _: object = None) -> None:
    raise AttributeError(f"a {type(row).__name__} cannot be changed, nor its {name!r}", name=name, obj=row)


@cache
def _know(kind: Any, columns: Any) -> None:
    """Give a kind of rows the names that it has over such columns: rows of a class are always of the same columns."""
    for column in columns.__dataclass_fields__:
        for name in (column, column.removesuffix("s"), column.removesuffix("es")):
            if not hasattr(kind, name):
                meant = column_name(columns, name)
                setattr(kind, name, property(kind._reading(name, meant)))  # noqa: SLF001  # its rows


def column_name(kind: Any, name: str) -> str:
    """The column of a value's class that a name of a row stands for."""
    known = kind.__dataclass_fields__
    return next(each for each in (name, f"{name}s", f"{name}es") if each in known)


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
