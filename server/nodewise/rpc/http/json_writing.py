"""From messages to JSON, by writers that are made once of descriptors: ProtoJSON, columns of numbers as a whole."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from nodewise.rpc.http.json_scalars import writer_of

__all__ = ["json_of", "value_of"]

Write = Callable[[Any], Any]

_DOUBLE: Final = FieldDescriptor.TYPE_DOUBLE
_TIMESTAMP: Final = "google.protobuf.Timestamp"


def json_of(message: Message) -> bytes:
    """A message as ProtoJSON: names in lowerCamelCase, what is unset left out."""
    return orjson.dumps(value_of(message))


def value_of(message: Message) -> dict[str, Any]:
    """The same as values that JSON knows."""
    return _writer(message.DESCRIPTOR)(message)


@cache
def _writer(message: Descriptor) -> Callable[[Any], dict[str, Any]]:
    fields: dict[int, tuple[str, Write]] = {}

    def write(value: Any) -> dict[str, Any]:
        if not fields:  # of messages that hold each other when they are first met
            fields.update({each.number: (each.json_name, _field(each)) for each in message.fields})
        out = {}
        for field, held in value.ListFields():
            name, each = fields[field.number]
            out[name] = each(held)
        return out

    return write


def _field(field: FieldDescriptor) -> Write:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _map(inner.fields_by_name["value"])
    if inner is not None:
        if inner.full_name.startswith("google.") and inner.full_name != _TIMESTAMP:
            raise TypeError(f"{field.full_name}: {inner.full_name} has no writer")
        one: Write = _time if inner.full_name == _TIMESTAMP else _writer(inner)
        return (lambda values: [one(each) for each in values]) if field.is_repeated else one
    plain = writer_of(field)
    if not field.is_repeated:
        return plain or _same
    if field.type == _DOUBLE:
        return _doubles
    return list if plain is None else lambda values: [plain(each) for each in values]


def _same(value: Any) -> Any:
    return value


def _time(value: Any) -> Any:
    return value.ToJsonString()


def _doubles(values: Any) -> list[Any]:
    """A column; JSON has no word for what is not finite, and orjson would write null."""
    found = list(values)
    if math.isfinite(sum(found)):
        return found
    return [
        each if math.isfinite(each) else "NaN" if math.isnan(each) else "Infinity" if each > 0 else "-Infinity"
        for each in found
    ]


def _map(held: FieldDescriptor) -> Write:
    if held.message_type is not None:
        raise TypeError(f"{held.full_name}: maps of messages have no writer")
    plain = writer_of(held) or _same
    return lambda values: {str(key): plain(value) for key, value in values.items()}
