"""Single values between JSON and messages, as ProtoJSON has them: numbers, names of enumerations, bytes, times."""

from __future__ import annotations

import base64
import binascii
import difflib
import math
import re
from collections.abc import Callable
from typing import Any, Final

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp

__all__ = ["INTEGERS", "TEXTS_OF_INTEGERS", "NotReadError", "nearest", "reader_of", "time_of", "writer_of"]

Read = Callable[[Any], Any]

_FIELD: Final = FieldDescriptor
_RANGES: Final = {
    _FIELD.TYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    _FIELD.TYPE_SINT32: (-(1 << 31), (1 << 31) - 1),
    _FIELD.TYPE_SFIXED32: (-(1 << 31), (1 << 31) - 1),
    _FIELD.TYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    _FIELD.TYPE_SINT64: (-(1 << 63), (1 << 63) - 1),
    _FIELD.TYPE_SFIXED64: (-(1 << 63), (1 << 63) - 1),
    _FIELD.TYPE_UINT32: (0, (1 << 32) - 1),
    _FIELD.TYPE_FIXED32: (0, (1 << 32) - 1),
    _FIELD.TYPE_UINT64: (0, (1 << 64) - 1),
    _FIELD.TYPE_FIXED64: (0, (1 << 64) - 1),
}
INTEGERS: Final = frozenset(_RANGES)
"""Types of fields that hold whole numbers."""
TEXTS_OF_INTEGERS: Final = frozenset(kind for kind, (_, most) in _RANGES.items() if most >= 1 << 53)
"""Those of them that JSON writes as text, as its numbers are doubles for most readers."""
_WHOLE: Final = re.compile(r"-?[0-9]+")
_NUMBER: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SHOWN: Final = 40


class NotReadError(Exception):
    """A value that the field cannot hold; the text says what it can."""


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else str(value)
    return repr(text[:_SHOWN]) if isinstance(value, str) else text[:_SHOWN]


def nearest(name: str, known: list[str]) -> str:
    """A hint at the name that was meant; empty = none is near."""
    found = difflib.get_close_matches(name, known, 1)
    return f"; {found[0]} is near" if found else ""


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise NotReadError(f"must be true or false, found {_shown(value)}")


def _text(value: Any) -> str:
    if value.__class__ is str:
        return str(value)
    raise NotReadError(f"must be a text, found {_shown(value)}")


def _bytes(value: Any) -> bytes:
    if value.__class__ is str:
        try:
            padded = value + "=" * (-len(value) % 4)
            return base64.b64decode(padded.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            pass
    raise NotReadError("must be bytes in base64")


def _double(value: Any) -> float:
    kind = value.__class__
    if kind is float or kind is int:
        return float(value)
    if kind is str:
        if value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if _NUMBER.fullmatch(value) and math.isfinite(float(value)):
            return float(value)
    raise NotReadError(f"must be a number, found {_shown(value)}")


def _integer(kind: int) -> Read:
    least, most = _RANGES[kind]

    def read(value: Any) -> int:
        found = value
        if found.__class__ is str and len(found) <= _SHOWN and _NUMBER.fullmatch(found):
            found = int(found) if _WHOLE.fullmatch(found) else float(found)
        if found.__class__ is float and found.is_integer():
            found = int(found)
        if found.__class__ is not int or not least <= found <= most:
            raise NotReadError(f"must be a whole number from {least} to {most}, found {_shown(value)}")
        return int(found)

    return read


def _named(enum: EnumDescriptor) -> Read:
    numbers = {each.name: each.number for each in enum.values}
    whole = _integer(_FIELD.TYPE_INT32)

    def read(value: Any) -> int:
        number = numbers.get(value) if value.__class__ is str else None
        if number is not None:
            return number
        try:
            if value.__class__ is not str or _WHOLE.fullmatch(value):
                return int(whole(value))
        except NotReadError:
            pass
        raise NotReadError(f"must be one of {', '.join(numbers)}; found {_shown(value)}")

    return read


def reader_of(field: FieldDescriptor) -> Read:
    """From JSON to what a field of a plain type holds; raises NotReadError."""
    if field.enum_type is not None:
        return _named(field.enum_type)
    if field.type in _RANGES:
        return _integer(field.type)
    return {
        _FIELD.TYPE_BOOL: _boolean,
        _FIELD.TYPE_STRING: _text,
        _FIELD.TYPE_BYTES: _bytes,
        _FIELD.TYPE_DOUBLE: _double,
    }[field.type]


def _of_double(value: float) -> Any:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def writer_of(field: FieldDescriptor) -> Callable[[Any], Any] | None:
    """From what a field of a plain type holds to JSON; None = as it is."""
    if field.enum_type is not None:
        names = {each.number: each.name for each in reversed(field.enum_type.values)}
        return lambda value: names.get(value, value)
    if field.type in TEXTS_OF_INTEGERS:
        return str
    if field.type == _FIELD.TYPE_BYTES:
        return lambda value: base64.b64encode(value).decode("ascii")
    return _of_double if field.type == _FIELD.TYPE_DOUBLE else None


def time_of(value: Any, message: Timestamp) -> None:
    """Read a time, as RFC 3339 writes it, into a message. Raises NotReadError."""
    if value.__class__ is str:
        try:
            message.FromJsonString(value)
        except (ValueError, OverflowError):
            pass
        else:
            return
    raise NotReadError(f"must be a time such as 2026-01-31T08:30:00Z, found {_shown(value)}")
