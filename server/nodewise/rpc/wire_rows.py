"""Rows of the domain as messages and back, field by field by their names, within the contract's bounds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import MISSING, dataclass
from enum import Enum
from functools import partial
from typing import Any, Final, TypeVar, get_args, get_type_hints

import numpy as np
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.rpc.reading import Reader
from nodewise_values.fact import Fact
from nodewise_values.facts import BY_MESSAGE
from nodewise_values.value import Value
from nodewise_values.wire import to_message

__all__ = ["read_row", "read_time", "timestamp", "written"]

MessageT = TypeVar("MessageT", bound=Message)
RowT = TypeVar("RowT")
_SHORTER: Final = (
    ("_per_second", "_per_s"),
    ("_seconds", "_s"),
    ("_ratio", ""),
    ("_name", ""),
    ("_count", ""),
    ("_counts", ""),
    ("_numbers", ""),
    ("_indexes", ""),
    ("_ratios", ""),
    ("_ids", "_id"),
    ("_nanoseconds", "_ns"),
    ("_ordinal", ""),
    ("", "_s"),
)
"""Ends of names on the wire, and what they are in the domain, which writes units shorter."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message and what it is in a row of a type.

    Attributes
    ----------
    row : str
        Its name in the row; of a field that the row has not, its own.
    optional : bool
        Whether it may be absent.
    fact : Fact or None
        What the contract states of it.
    nothing : float or None
        The number that the contract takes for an absent one.
    part : type or None
        Of a part that is a row itself, or of each of several.
    write : callable or None
        What the row holds to what the message takes; None = the same.
    needed : bool or None
        Whether a row must be given it, for it has no default; None = the row has not got it.
    """

    descriptor: FieldDescriptor
    row: str
    optional: bool
    fact: Fact | None
    nothing: float | None
    part: type | None
    write: Callable[[Any], Any] | None
    needed: bool | None


_fields_of: Final[dict[tuple[type, type], tuple[_Field, ...]]] = {}


def _fields(kind: type[Message], of: type) -> tuple[_Field, ...]:
    known = _fields_of.get((kind, of))
    if known is None:
        facts = BY_MESSAGE.get(kind.DESCRIPTOR.full_name, {})
        known = _fields_of[kind, of] = tuple(_field(each, facts.get(each.name), of) for each in kind.DESCRIPTOR.fields)
    return known


def _field(field: Any, fact: Fact | None, of: type) -> _Field:
    nothing = None
    if fact is not None and fact.default is not None and fact.minimum is not None:
        below = fact.default < fact.minimum or (fact.exclusive_minimum and fact.default == fact.minimum)
        nothing = fact.default if below else None
    row = _name(field, fact, of)
    part = None if field.message_type is None else _part(get_type_hints(of).get(row))
    column = getattr(of, "__dataclass_fields__", {}).get(row)
    needed = None if column is None else column.default is MISSING and column.default_factory is MISSING
    return _Field(field, row, field.has_presence, fact, nothing, part, _writer(field), needed)


def _part(hint: Any) -> type | None:
    """The type of rows in what is annotated so."""
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return hint
    return next((part for each in get_args(hint) if (part := _part(each)) is not None), None)


def _name(field: FieldDescriptor, fact: Fact | None, of: type) -> str:
    """The name of a field in a row of a type."""
    names = [field.name] if fact is None else [fact.row, field.name]
    shorter = (name.removesuffix(end) + short for name in names for end, short in _SHORTER if name.endswith(end))
    held = {*dir(of), *getattr(of, "__dataclass_fields__", ())}
    return next((name for name in (*names, *shorter) if name in held), field.name)


def _writer(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    message, enum = field.message_type, field.enum_type
    if message is not None and message.GetOptions().map_entry:
        return dict
    if message is not None:
        one = _part_writer(GetMessageClass(message))
    elif enum is not None:
        one = partial(_word, enum.values[0].name.removesuffix("UNSPECIFIED"))
    else:
        return None
    if not field.is_repeated:
        return one
    return lambda rows: None if rows is None else [one(row) for row in rows]


def _word(prefix: str, word: Any) -> Any:
    """A word of the domain as the contract's name of it; names and numbers of the contract are left as they are."""
    if isinstance(word, Enum):
        return prefix + word.name
    return prefix + word.upper() if isinstance(word, str) and not word.startswith(prefix) else word


def _part_writer(kind: type[Message]) -> Callable[[Any], Any]:
    def one(part: Any) -> Any:
        if part is None or isinstance(part, Message):
            return part
        if kind is Timestamp:
            return timestamp(part)
        return to_message(part) if isinstance(part, Value) else written(kind, part)

    return one


def written(kind: type[MessageT], row: Any, /, *, rows: slice | None = None, **others: Any) -> MessageT:
    """A message that says what a row of the domain says, and its parts what the parts of the row say.

    Parameters
    ----------
    rows : slice or None
        Of columns, which ones are said; None = all.
    **others
        Fields that are not the row's, or that it holds otherwise; None = absent.
    """
    held: dict[str, Any] = {}
    for field in _fields(kind, type(row)):
        if field.descriptor.name not in others:
            value = getattr(row, field.row)
            if rows is not None:
                value = value[rows]
            if isinstance(value, np.ndarray):
                value = value.tolist()
            if field.optional and value in (None, field.nothing):
                continue
            held[field.descriptor.name] = value if field.write is None else field.write(value)
    return kind(**held, **others)


def read_row(
    kind: type[RowT], message: Any, path: str, reader: Reader, /, *, most: float = math.inf, **others: Any
) -> RowT:
    """A row of the domain that says what a message says, as far as they go by the same names.

    What is absent is as the contract says, else left to the row's own defaults, as is what is empty; numbers and texts
    are within the bounds of their facts, or the reader has been told.

    Parameters
    ----------
    path : str
        Of the message; empty, or ends with a dot.
    most : float
        Greatest number where the facts name none.
    **others
        What the row holds otherwise.
    """
    held: dict[str, Any] = dict(others)
    for field in _fields(type(message), kind):
        name, needed = field.descriptor.name, field.needed
        if needed is None or field.row in held:
            continue
        if field.optional and not message.HasField(name):
            if field.nothing is not None:
                held[field.row] = field.nothing
            continue
        value = getattr(message, name)
        if value or field.optional or needed or not hasattr(value, "__len__"):
            held[field.row] = _read(value, f"{path}{name}", field, reader, most)
    return kind(**held)


def _read(value: Any, path: str, field: _Field, reader: Reader, most: float) -> Any:
    fact = field.fact
    if field.part is not None and field.descriptor.is_repeated:
        return tuple(read_row(field.part, each, f"{path}[{n}].", reader, most=most) for n, each in enumerate(value))
    if field.part is not None:
        return read_row(field.part, value, f"{path}.", reader, most=most)
    if field.descriptor.message_type is not None:
        return read_time(value)
    if field.descriptor.is_repeated:
        checked = value if fact is None else (reader.single(each, f"{path}[{n}]", fact) for n, each in enumerate(value))
        return tuple(checked)
    if fact is None or fact.kind == "enum":
        return value
    if fact.kind == "str":
        return reader.text(value, path, fact.maximum_length or 256)
    return reader.single(value, path, fact, most)


def timestamp(seconds: float) -> Timestamp | None:
    """A wire time, None for one that is not known."""
    if not seconds:
        return None
    whole = int(seconds)
    return Timestamp(seconds=whole, nanos=int((seconds - whole) * 1e9))


def read_time(message: Timestamp) -> float:
    """Seconds since 1970."""
    return message.seconds + message.nanos / 1e9
