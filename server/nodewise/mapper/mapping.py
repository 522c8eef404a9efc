"""The one mapper of the server: values of the domain as messages of the contract and back, compiled once from both.

A field of a message is the attribute of a dataclass that has its name (``names`` says where the two differ). Nothing
else names fields: what a new field of the contract means is read from its descriptor, its facts and the annotation of
the attribute.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass
from enum import Enum, IntEnum
from functools import partial
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.timestamp_pb2 import Timestamp

from nodewise.domain.columns import as_floats, as_ints, constant
from nodewise.mapper.configurations import write_configurations
from nodewise.mapper.names import ABSENT, domain_name
from nodewise.mapper.reading import Reader
from nodewise_values import wire
from nodewise_values.fact import Fact
from nodewise_values.facts import BY_MESSAGE
from nodewise_values.value import Value

__all__ = ["from_message", "read_time", "timestamp", "to_message"]

MessageT = TypeVar("MessageT", bound=Message)
ValueT = TypeVar("ValueT")
_BY_HAND: Final[Mapping[str, Callable[[Any], Any]]] = {"nodewise.v1.Configurations": write_configurations}
"""Messages whose writing is proven to be worth code of its own."""
_NOTHING: Final = object()
"""Of a field that says nothing: the type's own default holds."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a message and what it is in a value of a type.

    Attributes
    ----------
    name, attribute : str
        In the message and in the value; of a field that the value has not, both the same.
    optional : bool
        Whether the field may be absent.
    nothing : float or None
        The number that the contract takes for an absent one.
    choice : type or None
        The type of the value where the field is chosen: one of several that are one attribute of the value.
    needed : bool or None
        Whether a value must be given it, for it has no default; None = the value has not got it.
    mask : str
        The field beside a column that says which of its rows are known; empty = there is none.
    write : callable or None
        What the value holds to what the message takes; None = the same.
    read : callable
        (what the message holds, path, reader, most): what the value holds.
    column : callable or None
        (what the message holds, path, reader, rows, known rows): the same of a column of numbers.
    """

    name: str
    attribute: str
    optional: bool
    nothing: float | None
    choice: type | None
    is_needed: bool | None
    mask: str
    write: Callable[[Any], Any] | None
    read: Callable[[Any, str, Reader, float], Any]
    column: Callable[[Any, str, Reader, int, Any], Any] | None


_fields_by_pair: Final[dict[tuple[Any, Any], tuple[_Field, ...]]] = {}


def _fields(message: Any, kind: Any) -> tuple[_Field, ...]:
    """The fields of a message, as they go with a type of the domain."""
    fields_of_pair = _fields_by_pair.get((message, kind))
    if fields_of_pair is None:
        facts = BY_MESSAGE.get(message.DESCRIPTOR.full_name, {})
        hints = get_type_hints(kind) if dataclasses.is_dataclass(kind) else {}
        fields = [_field(each, facts.get(each.name), kind, hints) for each in message.DESCRIPTOR.fields]
        masks = {each.mask for each in fields}
        fields_of_pair = _fields_by_pair[message, kind] = tuple(each for each in fields if each.name not in masks)
    return fields_of_pair


def _field(field: Any, fact: Fact | None, kind: type, hints: Mapping[str, Any]) -> _Field:
    attributes = {*dir(kind), *getattr(kind, "__dataclass_fields__", ())}
    attribute = domain_name(field.name, field.name if fact is None else fact.row, attributes)
    choice, oneof = None, field.containing_oneof
    if attribute is None and oneof is not None and oneof.name in attributes and field.message_type is not None:
        parts = {part.__name__: part for part in _parts(hints.get(oneof.name))}
        choice = parts.get(field.message_type.name)
        attribute = None if choice is None else oneof.name
    hint = hints.get(attribute or "", None) if choice is None else choice
    dataclass_field = getattr(kind, "__dataclass_fields__", {}).get(attribute)
    is_needed = (
        None
        if dataclass_field is None
        else dataclass_field.default is MISSING and dataclass_field.default_factory is MISSING
    )
    mask = f"{field.name.removesuffix('_seconds')}_known"
    return _Field(
        name=field.name,
        attribute=attribute or field.name,
        optional=bool(field.has_presence),
        nothing=0 if f"{field.containing_type.name}.{field.name}" in ABSENT else _nothing(fact),
        choice=choice,
        is_needed=is_needed,
        mask=mask if field.is_repeated and mask in field.containing_type.fields_by_name else "",
        write=_writer(field),
        read=_reader(field, fact, hint),
        column=_column_reader(field, fact, hint),
    )


def _nothing(fact: Fact | None) -> float | None:
    if fact is None or fact.default is None or fact.minimum is None:
        return None
    below = fact.default < fact.minimum or (fact.exclusive_minimum and fact.default == fact.minimum)
    return fact.default if below else None


def _parts(hint: Any) -> list[type]:
    """The types of the domain in what is annotated so."""
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, Enum)):
        return [hint]
    return [part for each in get_args(hint) for part in _parts(each)]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is_named_column(field: FieldDescriptor) -> bool:
    return field.is_repeated and field.message_type is not None and field.message_type.name == "NamedColumn"


# --- values as messages


def _writer(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    message, enum = field.message_type, field.enum_type
    if _is_map(field):
        return dict
    if message is not None and _is_named_column(field):
        return partial(_named_columns, GetMessageClass(message))
    if message is not None:
        one = _BY_HAND.get(message.full_name) or _part_writer(GetMessageClass(message))
    elif enum is not None:
        one = partial(_word, enum.values[0].name.removesuffix("UNSPECIFIED"))
    else:
        return None
    if not field.is_repeated:
        return one
    return lambda rows: [one(row) for row in rows]


def _named_columns(kind: type[Message], columns: Any) -> Any:
    if not isinstance(columns, Mapping):
        return columns
    return [kind(name=name, values=values.tolist()) for name, values in columns.items()]


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
        return wire.to_message(part) if isinstance(part, Value) else to_message(part, kind)

    return one


def to_message(value: Any, kind: type[MessageT], /, *, only: slice | None = None, **others: Any) -> MessageT:
    """The message that says what a value of the domain says, and its parts what the parts of the value say.

    A number that is not finite is absent where the field may be.

    Parameters
    ----------
    only : slice or None
        Of columns, which rows are said; None = all.
    **others
        What the domain says in fields that are not the value's, or that it holds otherwise; None = absent.
    """
    values: dict[str, Any] = {}
    for field in _fields(kind, type(value)):
        is_given = field.name in others
        entry = others[field.name] if is_given else getattr(value, field.attribute)
        if only is not None and not is_given:
            entry = entry[only]
        if field.choice is not None and type(entry) is not field.choice:
            continue
        if isinstance(entry, np.ndarray):
            if field.mask:
                is_known = entry >= 0.0
                if not is_known.any():
                    continue
                if not is_known.all():
                    values[field.mask], entry = is_known.tolist(), np.where(is_known, entry, 0.0)
            entry = entry.tolist()
        if entry is None or (field.optional and not is_given and entry == field.nothing):
            continue
        if field.optional and isinstance(entry, float) and not math.isfinite(entry):
            continue
        values[field.name] = entry if field.write is None else field.write(entry)
    return kind(**values)


# --- messages as values


def from_message(
    message: Any,
    kind: type[ValueT],
    path: str = "",
    reader: Reader | None = None,
    /,
    *,
    row_count: int | None = None,
    most: float = math.inf,
    **others: Any,
) -> ValueT:
    """The value of the domain that says what a message says, as far as they go by the same names.

    What is absent is as the contract says, else left to the type's own defaults, as is what is empty; numbers and texts
    are within the bounds of their facts, or the reader has been told.

    Parameters
    ----------
    path : str
        Of the message; empty, or ends with a dot.
    reader : Reader or None
        Collects what is wrong; None = it is raised.
    row_count : int or None
        Rows of its columns; None = as many as the longest has.
    most : float
        Greatest number where the facts name none.
    **others
        What the value holds otherwise.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, without a reader.
    """
    findings = Reader() if reader is None else reader
    attributes: dict[str, Any] = dict(others)
    for field in _fields(type(message), kind):
        name, is_needed = field.name, field.is_needed
        if is_needed is None or field.attribute in attributes:
            continue
        if field.column is not None:
            if row_count is None:
                row_count = _rows(message, kind)
            value, mask = getattr(message, name), getattr(message, field.mask) if field.mask else ()
            if value or is_needed:
                attributes[field.attribute] = field.column(value, f"{path}{name}", findings, row_count, mask)
            continue
        if field.optional and not message.HasField(name):
            if field.nothing is not None:
                attributes[field.attribute] = field.nothing
            continue
        value = getattr(message, name)
        if value or field.optional or is_needed or not hasattr(value, "__len__"):
            entry = field.read(value, f"{path}{name}", findings, most)
            if entry is not _NOTHING:
                attributes[field.attribute] = entry
    value = kind(**attributes)
    check = findings.checks.get(kind)
    if check is not None:
        check(value, path, findings)
    if reader is None:
        findings.finish()
    return value


def _rows(message: Any, kind: type) -> int:
    columns = (len(getattr(message, each.name)) for each in _fields(type(message), kind) if each.column is not None)
    return max(columns, default=0)


def _reader(field: FieldDescriptor, fact: Fact | None, hint: Any) -> Callable[[Any, str, Reader, float], Any]:
    """How a field is read that holds no column of numbers."""
    message, enum, parts = field.message_type, field.enum_type, _parts(hint)
    if _is_map(field):
        return lambda value, _path, _reader, _most: dict(value)
    if message is not None and _is_named_column(field):
        return lambda value, _path, _reader, _most: {each.name: as_floats(each.values) for each in value}
    if message is not None and parts:
        part = next((each for each in parts if each.__name__ == message.name), parts[0])
        return partial(_read_parts, part) if field.is_repeated else partial(_read_part, part)
    if message is not None:
        return lambda value, _path, _reader, _most: read_time(value)
    if field.is_repeated:
        return partial(_read_list, fact)
    if enum is not None and parts and issubclass(parts[0], Enum):
        return partial(_read_word, _words(enum, parts[0]))
    if fact is None or fact.kind == "enum":
        return lambda value, _path, _reader, _most: value
    if fact.kind == "str":
        return lambda value, path, reader, _most: reader.text(value, path, fact.maximum_length or 256)
    return lambda value, path, reader, most: reader.single(value, path, fact, most)


def _read_part(kind: type, value: Any, path: str, reader: Reader, most: float) -> Any:
    read = reader.parts.get(kind)
    return from_message(value, kind, f"{path}.", reader, most=most) if read is None else read(value, path, reader)


def _read_parts(kind: type, values: Any, path: str, reader: Reader, most: float) -> Any:
    return tuple(_read_part(kind, each, f"{path}[{n}]", reader, most) for n, each in enumerate(values))


def _read_list(fact: Fact | None, values: Any, path: str, reader: Reader, _most: float) -> Any:
    if fact is None:
        return tuple(values)
    return tuple(reader.single(each, f"{path}[{n}]", fact) for n, each in enumerate(values))


def _words(enum: EnumDescriptor, kind: type[Enum]) -> Mapping[int, Any]:
    """Words of the domain by their numbers in the contract."""
    if issubclass(kind, IntEnum):
        return {int(word): word for word in kind}
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    return {enum.values_by_name[prefix + word.name].number: word for word in kind}


def _read_word(words: Mapping[int, Any], value: int, path: str, reader: Reader, _most: float) -> Any:
    number = words.get(value)
    if number is not None:
        return number
    if value:
        reader.wrong(path, f"must be one of the values of the contract, found {value}")
    return _NOTHING


def _column_reader(
    field: FieldDescriptor, fact: Fact | None, hint: Any
) -> Callable[[Any, str, Reader, int, Any], Any] | None:
    """How a column of numbers is read; None = the field is none."""
    arrays = [each for each in (hint, *get_args(hint)) if get_origin(each) is np.ndarray]
    if not arrays or not field.is_repeated or field.message_type is not None:
        return None
    if fact is not None:
        return lambda value, path, reader, rows, mask: reader.column(value, path, rows, fact, mask)
    whole = np.int64 in get_args(get_args(arrays[0])[1])

    def column(value: Any, path: str, reader: Reader, rows: int, mask: Any) -> Any:
        if len(value) not in (1, rows):
            reader.wrong(path, f"must have one entry, or one for each of {rows} rows; found {len(value)}")
            return constant(rows, 0 if whole else 0.0)
        if len(value) == 1 != rows:
            return constant(rows, value[0])
        return as_ints(value) if whole else reader.mask_unknown(as_floats(value), path, rows, mask)

    return column


def timestamp(seconds: float) -> Timestamp | None:
    """A wire time, None for one that is not known."""
    if not seconds:
        return None
    whole = int(seconds)
    return Timestamp(seconds=whole, nanos=int((seconds - whole) * 1e9))


def read_time(message: Timestamp) -> float:
    """Seconds since 1970."""
    return message.seconds + message.nanos / 1e9
