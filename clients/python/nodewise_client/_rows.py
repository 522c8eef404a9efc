"""Rows over columns: answers come as columns, and are read row by row. Nothing is copied until it is asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import make_dataclass
from functools import cache, lru_cache
from itertools import chain, islice, repeat
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeAlias, TypeVar, overload

from google.protobuf.message import Message

from nodewise_client._tables import column_table, html_table, library
from nodewise_values.value import source_of
from nodewise_values.wire import from_own_message

SHOWN_ROWS: Final = 10
"""Rows that a table prints: the first ones and the last."""
_DIGITS: Final = 5
_CHUNK_ROWS: Final = 256
"""Rows that are made at once where many are read."""
_FIRST_CHUNKS_ROWS: Final = (1, 15)
"""Before it has shown what is read of each."""
_FEW_ROWS: Final = 32
"""Rows of a message of which it is cheaper to make what is mostly read than to find out what is read."""


class Part:
    """Columns as their rows read them. The entries of a column are computed once, when it is first read.

    Attributes
    ----------
    kind : type of Row
        Of the rows.
    count : int
        How many rows there are.
    columns : Value
        As they came.
    message : Message or None
        The message that holds the columns, if they came by themselves and no other code uses it.
    read : mapping of str to sequence
        What is read of rows, by its names in a row; of each as many entries as there are rows.
    """

    __slots__ = ("_columns", "_entries", "_raw", "count", "kind", "message", "read")

    def __init__(self, kind: Any, columns: Any, count: int, message: Message | None = None) -> None:
        self.kind = kind
        self.message = message
        self.read: dict[str, Sequence[Any]] = {}
        self._columns = columns
        self.count = count
        self._raw: dict[str, Sequence[Any]] = {}
        self._entries: dict[str, Sequence[Any]] = {}
        if message is None:
            over: Any = type(columns)
            know(kind, over)

    def __reduce__(self) -> tuple[Any, ...]:
        return Part, (self.kind, self.columns, self.count)

    @property
    def columns(self) -> Any:
        """The value that holds the columns."""
        if self.message is not None and self._columns is None:
            self._columns = from_own_message(self.message, self.kind._over)  # noqa: SLF001  # its rows
        return self._columns

    def __getitem__(self, column: str) -> Sequence[Any]:
        """The entries of a column, one for each row; None = nothing stated."""
        entries = self._entries.get(column)
        if entries is None:
            make = self.kind._made.get(column)  # noqa: SLF001  # its rows
            entries = self._entries[column] = self.kind._column(self, column) if make is None else make(self)  # noqa: SLF001
        return entries

    def raw_column(self, column: str) -> Sequence[Any]:
        """A column as it came."""
        entries = self._raw.get(column)
        if entries is None:
            whole, readers = source_of(self.columns)
            entries = self._raw[column] = readers[column](whole)
        return entries

    def __len__(self) -> int:
        return self.count

    def entries(self, name: str, column: str) -> Sequence[Any]:
        """The entries of each row, by the row's name for the column."""
        entries_of_column = self[column]
        if len(entries_of_column) == self.count:
            self.read[name] = entries_of_column
        return entries_of_column

    def rows(self, begin: int, end: int) -> Sequence[Any]:
        """Rows that hold at once what others were asked for."""
        if not self.read:
            return [self.kind(self, place) for place in range(begin, end)]
        read_columns = dict(self.read)
        columns = (column[begin:end] for column in read_columns.values())
        return filled_rows(filled_kind(self.kind, tuple(read_columns)), self, range(begin, end), *columns)


Makers: TypeAlias = Mapping[str, Callable[[Part], Sequence[Any]]]
"""What makes that which rows say besides columns, by its name."""


class Row:
    """One row of a value made of columns. Its names are those of the columns, in the singular where they are plural."""

    __slots__ = ("_part", "_place")

    _over: ClassVar[Any] = None
    """The class of value whose columns a message says, where rows are read of messages."""
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
        return self._values() == other._values()

    __hash__ = None  # type: ignore[assignment]  # like the columns, which may be lists

    def __repr__(self) -> str:
        texts = (f"{name}={_cell(getattr(self, name))}" for name in self._printed_names())
        return f"{type(self).__name__}({', '.join(texts)})"

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
        """The entries of a column, one for each row."""
        return part.raw_column(column) or (None,) * len(part)

    @classmethod
    def _few(cls, _part: Part, /) -> Sequence[Any]:
        """All rows of a message of few, with what is mostly read of them; () = they are made as others are."""
        return ()

    def _values(self) -> dict[str, Any]:
        """The row's values, by column."""
        return {name: getattr(self, name) for name in self._names()}

    def _names(self) -> Sequence[str]:
        """Columns that have an entry for every row."""
        names = type(self._columns).__dataclass_fields__
        return [name for name in names if isinstance(getattr(self._columns, name), tuple | list)]

    def values_by_column(self) -> dict[str, Any]:
        """All values of the row, by column."""
        return self._values()

    def _printed_names(self) -> Sequence[str]:
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

    @classmethod
    def of_message(cls, kind: type[RowT], message: Any, count: int) -> Self:
        """The rows of a message's columns, which no other code uses; `kind` has their names."""
        rows = object.__new__(cls)
        rows._part, rows._begin, rows._end = Part(kind, None, count, message), 0, count
        return rows

    def between(self, begin: int, end: int) -> Rows[RowT]:
        """Some of these rows, which share what was made out."""
        rows = object.__new__(type(self))
        rows._part, rows._begin, rows._end = self._part, begin, end
        return rows

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[RowT]:
        part, begin, end = self._part, self._begin, self._end
        if part.message is not None and part.count <= _FEW_ROWS and (rows := part.kind._few(part)):  # noqa: SLF001  # its rows
            return iter(rows[begin:end])
        if part.read and end - begin <= _CHUNK_ROWS:
            return iter(part.rows(begin, end))
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

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`. Needs pandas.

        It has a column for each name that some row states, and one for each part of a step
        (``breakdown_seconds.compute``).
        """
        return library("pandas").DataFrame(column_table(self))

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table` with the columns of :meth:`to_pandas`. Needs pyarrow."""
        return library("pyarrow").table(column_table(self))

    def _repr_html_(self) -> str:
        return html_table(self)


become: Final[Callable[[Any, Any], None]] = vars(object)["__class__"].__set__
"""Gives an object another class of the same layout: one that refuses assignments can only be filled slowly."""


FilledKind: TypeAlias = tuple[Any, Any, Callable[..., None]]


def filled_rows(row_kind: FilledKind, part: Part, places: range, *columns: Iterable[Any]) -> list[Any]:
    """Rows that hold entries of columns themselves, in the order of their names."""
    writable, final_class, fill = row_kind
    rows = list(map(object.__new__, repeat(writable, len(places))))
    deque(map(fill, rows, repeat(part), places, *columns), maxlen=0)
    deque(map(become, rows, repeat(final_class)), maxlen=0)
    return rows


@lru_cache(maxsize=128)
def filled_kind(kind: Any, names: tuple[str, ...]) -> FilledKind:
    """Rows of a kind that hold entries by these names themselves, where they are read at once.

    Returns
    -------
    tuple
        Their class while they are filled, the one that they have from then on, and what fills them.
    """
    namespace = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
    writable = type(kind.__name__, (kind,), {"__slots__": names, **namespace})
    final_class = type(
        kind.__name__,
        (writable,),
        {"__slots__": (), "__setattr__": _refuse_change, "__delattr__": _refuse_change, **namespace},
    )
    # The quickest assignments that there are without code of our own, as text: those of a dataclass's own `__init__`.
    fill: Any = vars(make_dataclass("_Filled", ("_part", "_place", *names)))["__init__"]
    return writable, final_class, fill


def _refuse_change(row: Row, name: str, _: object = None) -> None:
    raise AttributeError(f"a {type(row).__name__} cannot be changed, nor its {name!r}", name=name, obj=row)


@cache
def know(kind: Any, columns: Any) -> None:
    """Give a kind of rows the names that it has over such columns: rows of a class are always of the same columns."""
    for column in columns.__dataclass_fields__:
        for name in (column, column.removesuffix("s"), column.removesuffix("es")):
            if not hasattr(kind, name):
                own_column = column_name(columns, name)
                setattr(kind, name, property(kind._reading(name, own_column)))  # noqa: SLF001  # its rows


def column_name(kind: Any, name: str) -> str:
    """The column of a value's class that a name of a row stands for."""
    fields_of_kind = kind.__dataclass_fields__
    return next(each for each in (name, f"{name}s", f"{name}es") if each in fields_of_kind)


def table(rows: Sequence[Row]) -> str:
    """Rows as a small table for people: never more than a screen, however many there are."""
    if not rows:
        return "no rows"
    head = rows if len(rows) <= SHOWN_ROWS else [*islice(rows, SHOWN_ROWS - 1), rows[-1]]
    names = [name for name in head[0]._printed_names() if any(getattr(row, name) is not None for row in head)]  # noqa: SLF001  # its own
    lines = [["", *names]]
    lines += [[str(number), *(_cell(getattr(row, name)) for name in names)] for number, row in enumerate(head)]
    if len(rows) > len(head):
        lines[-1][0] = str(len(rows) - 1)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines_of_text = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    if len(rows) > len(head):
        lines_of_text.insert(-1, f"... {len(rows) - len(head)} more rows ...")
    return "\n".join(lines_of_text)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)
