"""Messages as ProtoJSON by protobuf's own ``json_format``, with the field of what it refuses."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final, cast

import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.ports.limits import too_much

__all__ = ["json_of", "message_of", "parse_json"]

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_MOST_CONTAINERS: Final = 100_000
"""Objects and lists of a body: each costs a hundred bytes and some microseconds, and columns need few."""
_SHOWN: Final = 40
_WHOLE: Final = "a whole number from {} to {}"
_KINDS: Final = {
    FieldDescriptor.TYPE_INT32: _WHOLE.format(-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.TYPE_INT64: _WHOLE.format(-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.TYPE_UINT32: _WHOLE.format(0, (1 << 32) - 1),
    FieldDescriptor.TYPE_UINT64: _WHOLE.format(0, (1 << 64) - 1),
    FieldDescriptor.TYPE_BOOL: "true or false",
    FieldDescriptor.TYPE_STRING: "a text",
    FieldDescriptor.TYPE_BYTES: "bytes in base64",
    FieldDescriptor.TYPE_DOUBLE: "a number",
}


def json_of(message: Message) -> bytes:
    """A message as JSON: names in lowerCamelCase, unset fields left out."""
    return orjson.dumps(json_format.MessageToDict(message))


def parse_json(body: bytes, kind: type[Message]) -> dict[str, Any]:
    """The object that a body holds; an empty body holds an empty one.

    Raises
    ------
    NodewiseError
        MALFORMED_MESSAGE, LIMIT_EXCEEDED.
    """
    containers = body.count(b"{") + body.count(b"[")
    if containers > _MOST_CONTAINERS:
        text = (
            f"the body holds {containers} objects and lists, a JSON body takes {_MOST_CONTAINERS}; send it as protobuf"
        )
        raise too_much(text, "json_containers", _MOST_CONTAINERS, containers)
    name = kind.DESCRIPTOR.name
    try:
        value = orjson.loads(body) if body.strip() else {}
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        text = f"the body is no JSON of a {name}: {error.msg.partition(':')[0]} at {where}"
        place = {"line": str(error.lineno), "column": str(error.colno)}
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text, place) from None
    if not isinstance(value, dict):
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the body must be a JSON object, a {name}")
    return value


def message_of(value: dict[str, Any], kind: type[Message], *, strict: bool) -> Message:
    """A message of an object.

    Parameters
    ----------
    strict : bool
        Whether a name that the message does not have is an error. Else it is what a newer caller knows.

    Raises
    ------
    NodewiseError
        INVALID_FIELD, which names the first wrong field.
    """
    try:
        return json_format.ParseDict(value, kind(), ignore_unknown_fields=not strict)
    except (json_format.ParseError, ValueError, TypeError, AttributeError) as error:
        fault = next(iter(_faults(value, cast("Descriptor", kind.DESCRIPTOR), "", strict=strict)), None)
        if fault is not None:
            raise fault from None
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the body is no {kind.DESCRIPTOR.name}: {error}") from None


def _faults(value: Any, message: Descriptor, path: str, *, strict: bool) -> Iterable[NodewiseError]:
    """What json_format does not take of an object."""
    if not isinstance(value, dict):
        yield invalid_field(path.removesuffix("."), f"must be an object, a {message.name}, found {_shown(value)}")
        return
    fields = {name: each for each in message.fields for name in (each.json_name, each.name)}
    chosen: dict[str, str] = {}
    for key, held in value.items():
        field = fields.get(key)
        if field is None:
            if strict:
                names = [each.name for each in message.fields]
                near = difflib.get_close_matches(key, [*names, *fields], 1)
                hint = f"; {near[0]} is near" if near else ""
                text = f"is no field of {message.name}{hint}; it has {', '.join(names) or 'no fields'}"
                yield invalid_field(f"{path}{key[:80]}", text)
            continue
        oneof = field.containing_oneof
        group = field.name if oneof is None or held is None else oneof.name
        if group in chosen:
            yield invalid_field(path + field.name, f"must not stand beside {chosen[group]}: one of them")
        chosen[group] = key
        yield from _faults_of_field(held, field, path + field.name, strict=strict)


def _faults_of_field(value: Any, field: FieldDescriptor, path: str, *, strict: bool) -> Iterable[NodewiseError]:
    inner = field.message_type
    is_map = inner is not None and inner.GetOptions().map_entry
    if value is None or _is_taken(value, field):
        return
    if is_map or (field.is_repeated and not isinstance(value, list)):
        yield invalid_field(path, "must be an object of names and values" if is_map else "must be a list")
    elif inner is not None and inner.full_name != _TIMESTAMP:
        for number, each in enumerate(value if field.is_repeated else [value]):
            place = f"{path}[{number}]" if field.is_repeated else path
            yield from _faults(each, inner, f"{place}.", strict=strict)
    elif field.is_repeated:
        wrong = next(number for number, each in enumerate(value) if each is None or not _is_taken([each], field))
        yield invalid_field(f"{path}[{wrong}]", f"must be {_kind(field)}, found {_shown(value[wrong])}")
    else:
        yield invalid_field(path, f"must be {_kind(field)}, found {_shown(value)}")


def _is_taken(value: Any, field: FieldDescriptor) -> bool:
    """Whether json_format takes a value for a field, however it stands among others."""
    try:
        json_format.ParseDict({field.name: value}, GetMessageClass(cast("Descriptor", field.containing_type))())
    except (json_format.ParseError, ValueError, TypeError, AttributeError):
        return False
    return True


def _kind(field: FieldDescriptor) -> str:
    if field.message_type is not None:
        return "a time such as 2026-01-31T08:30:00Z"
    if field.enum_type is not None:
        return f"one of {', '.join(each.name for each in field.enum_type.values)}"
    return _KINDS[field.type]


def _shown(value: Any) -> str:
    return repr(value[:_SHOWN]) if isinstance(value, str) else str(value)[:_SHOWN]
