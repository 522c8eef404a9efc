"""From JSON to messages, by readers that are made once of descriptors: ProtoJSON with the house's errors.

What json_format of protobuf does in Python for every value is done here once for every field; lists of numbers are
looked at and taken as a whole. Nothing is made of a list that is longer than its cap.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from nodewise.domain.errors import NodewiseError, Reason, Violation, invalid_field
from nodewise.ports.limits import Limits
from nodewise.rpc.caps import above_cap
from nodewise.rpc.http.json_scalars import INTEGERS, NotReadError, nearest, reader_of, time_of
from nodewise.rpc.intake import caps_of

__all__ = ["JsonReader", "Readers"]

Fill = Callable[[Any, Any, str], None]
"""Into a message, from a value of JSON, under a path."""
Cap = tuple[str, int] | None

_FIELD: Final = FieldDescriptor
TIMESTAMP: Final = "google.protobuf.Timestamp"


class Readers:
    """Readers of all messages that requests consist of, made when they are first needed.

    Parameters
    ----------
    limits : Limits
        Caps of lists.
    """

    def __init__(self, limits: Limits) -> None:
        caps = caps_of(limits)
        self._cap_of = caps
        self.of = cache(self._of)

    def _of(self, message: Descriptor, strict: bool) -> _Fields:  # noqa: FBT001  # a part of the cache's key
        return _Fields(message, self, strict=strict)

    def cap_of(self, field: FieldDescriptor) -> Cap:
        """Most entries of a list, with the limit's name."""
        return self._cap_of(field)


class JsonReader:
    """Reads requests of one method.

    Parameters
    ----------
    message : type
        Class of the request.
    strict : bool
        Whether a name that the message does not have is an error; else it is what a newer caller knows.
    """

    def __init__(self, message: type[Message], readers: Readers, *, strict: bool) -> None:
        self._new = message
        self._descriptor = cast("Descriptor", message.DESCRIPTOR)
        self._fields = readers.of(self._descriptor, strict)

    def bytes_of(self, body: bytes) -> bytes:
        """The message on the wire; an empty body is an empty message. Raises NodewiseError."""
        if not body.strip():
            return b""
        return self.read(self.parsed(body)).SerializeToString()

    def parsed(self, body: bytes) -> Any:
        """A body's value. Raises NodewiseError MALFORMED_MESSAGE."""
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            text = f"the body is no JSON of a {self._descriptor.name}: {error.msg.partition(':')[0]} at {where}"
            place = {"line": str(error.lineno), "column": str(error.colno)}
            raise NodewiseError(Reason.MALFORMED_MESSAGE, text, place) from None

    def read(self, value: Any) -> Message:
        """A message of a value. Raises NodewiseError."""
        message = self._new()
        if value.__class__ is not dict:
            text = f"the body must be a JSON object, a {self._descriptor.name}"
            raise NodewiseError(Reason.MALFORMED_MESSAGE, text)
        self._fields(message, value, "")
        return message


class _Fields:
    """Reads the fields of a message."""

    def __init__(self, message: Descriptor, readers: Readers, *, strict: bool) -> None:
        self._message = message
        self._readers = readers
        self._strict = strict
        self._known: dict[str, tuple[str, Fill, str]] | None = None
        """By either name: the field, what reads it, and the oneof that it stands in."""

    def _made(self) -> dict[str, tuple[str, Fill, str]]:
        known: dict[str, tuple[str, Fill, str]] = {}
        for field in self._message.fields:
            oneof = field.containing_oneof
            choice = oneof.name if oneof is not None and len(oneof.fields) > 1 else ""
            entry = (field.name, _filler(field, self._readers, strict=self._strict), choice)
            known[field.name] = known[field.json_name] = entry
        self._known = known
        return known

    def __call__(self, message: Any, value: Any, path: str) -> None:
        """Read into a message."""
        if value.__class__ is not dict:
            raise invalid_field(path, f"must be an object, a {self._message.name}")
        known = self._known or self._made()
        chosen: dict[str, str] = {}
        seen = set()
        for key, held in value.items():
            entry = known.get(key)
            if entry is None:
                if self._strict:
                    raise self._unknown(key, path)
                continue
            name, fill, choice = entry
            if name in seen:
                raise invalid_field(path + name, "stands twice, in both of its spellings")
            seen.add(name)
            if held is None:
                continue
            if choice:
                if choice in chosen:
                    raise invalid_field(path + name, f"must not stand beside {chosen[choice]}: one of them")
                chosen[choice] = name
            fill(message, held, path + name)

    def _unknown(self, key: str, path: str) -> NodewiseError:
        names = [each.name for each in self._message.fields]
        has = ", ".join(names) or "no fields"
        hint = nearest(key, [*names, *(each.json_name for each in self._message.fields)])
        return invalid_field(f"{path}{key[:80]}", f"is no field of {self._message.name}{hint}; it has {has}")


def _filler(field: FieldDescriptor, readers: Readers, *, strict: bool) -> Fill:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return _map(field, readers)
    if inner is not None and inner.full_name != TIMESTAMP and inner.full_name.startswith("google."):
        raise TypeError(f"{field.full_name}: {inner.full_name} has no reader")
    if field.is_repeated:
        return _messages(field, readers, strict=strict) if inner is not None else _scalars(field, readers)
    if inner is None:
        return _scalar(field)
    return _time(field) if inner.full_name == TIMESTAMP else _message(field, readers, strict=strict)


def _scalar(field: FieldDescriptor) -> Fill:
    name, read = field.name, reader_of(field)

    def fill(message: Any, value: Any, path: str) -> None:
        try:
            setattr(message, name, read(value))
        except NotReadError as error:
            raise invalid_field(path, str(error)) from None

    return fill


def _time(field: FieldDescriptor) -> Fill:
    name = field.name

    def fill(message: Any, value: Any, path: str) -> None:
        try:
            held = getattr(message, name)
            time_of(value, held)
            held.SetInParent()
        except NotReadError as error:
            raise invalid_field(path, str(error)) from None

    return fill


def _message(field: FieldDescriptor, readers: Readers, *, strict: bool) -> Fill:
    name, inner = field.name, readers.of(field.message_type, strict)

    def fill(message: Any, value: Any, path: str) -> None:
        held = getattr(message, name)
        held.SetInParent()
        inner(held, value, path + ".")

    return fill


def _listed(field: FieldDescriptor, readers: Readers) -> Callable[[Any, str], None]:
    """Looks whether a value is a list that may be so long."""
    cap = readers.cap_of(field)

    def look(value: Any, path: str) -> None:
        if value.__class__ is not list:
            raise invalid_field(path, "must be a list")
        if cap is not None and len(value) > cap[1]:
            error = above_cap(f"entries of {path}", cap[0], cap[1], len(value))
            error.violations = (Violation(path, f"must hold at most {cap[1]} entries"),)
            raise error

    return look


def _messages(field: FieldDescriptor, readers: Readers, *, strict: bool) -> Fill:
    name, look = field.name, _listed(field, readers)
    inner: Callable[[Any, Any, str], None]
    entry = cast("Descriptor", field.message_type)
    inner = _entry_time if entry.full_name == TIMESTAMP else readers.of(entry, strict)

    def fill(message: Any, value: Any, path: str) -> None:
        look(value, path)
        add = getattr(message, name).add
        for number, each in enumerate(value):
            inner(add(), each, f"{path}[{number}].")

    return fill


def _entry_time(message: Any, value: Any, path: str) -> None:
    try:
        time_of(value, message)
    except NotReadError as error:
        raise invalid_field(path[:-1], str(error)) from None


def _scalars(field: FieldDescriptor, readers: Readers) -> Fill:
    name, look, read = field.name, _listed(field, readers), reader_of(field)
    whole = field.type in INTEGERS
    numeric = whole or field.type == _FIELD.TYPE_DOUBLE
    usual = {int} if whole else {int, float}

    def fill(message: Any, value: Any, path: str) -> None:
        look(value, path)
        held = getattr(message, name)
        if numeric and usual.issuperset(map(type, value)):
            try:
                held.extend(value)
            except (ValueError, OverflowError):  # one is out of range: which, is found below
                del held[:]
            else:
                return
        for number, each in enumerate(value):
            try:
                held.append(read(each))
            except NotReadError as error:
                raise invalid_field(f"{path}[{number}]", str(error)) from None

    return fill


def _map(field: FieldDescriptor, readers: Readers) -> Fill:
    name, entry = field.name, cast("Descriptor", field.message_type)
    key, held = entry.fields_by_name["key"], entry.fields_by_name["value"]
    if key.type != _FIELD.TYPE_STRING or held.message_type is not None:
        raise TypeError(f"{field.full_name}: maps of this kind have no reader")
    read, cap = reader_of(held), readers.cap_of(field)

    def fill(message: Any, value: Any, path: str) -> None:
        if value.__class__ is not dict:
            raise invalid_field(path, "must be an object of names and values")
        if cap is not None and len(value) > cap[1]:
            raise above_cap(f"entries of {path}", cap[0], cap[1], len(value))
        held = getattr(message, name)
        for each, found in value.items():
            try:
                held[each] = read(found)
            except NotReadError as error:
                raise invalid_field(f"{path}[{each[:80]}]", str(error)) from None

    return fill
