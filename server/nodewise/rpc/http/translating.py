"""Translates messages of one method between JSON and the wire, with a cache for repeated requests."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import orjson
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.limits import too_much
from nodewise.rpc.intake import LARGE_BYTES, Large
from nodewise.rpc.routes import MethodRoute

__all__ = ["Translator", "json_of", "message_of", "parse_json", "translators"]

_TIMESTAMP: Final = "google.protobuf.Timestamp"
_MOST_CONTAINERS: Final = 100_000
"""Most objects and lists of a body: each costs a hundred bytes and some microseconds, and columns need few."""
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
    """A message as JSON: names in lowerCamelCase, without unset fields."""
    return orjson.dumps(json_format.MessageToDict(message))


def parse_json(body: bytes, kind: type[Message]) -> dict[str, Any]:
    """The object in a body; an empty body is an empty object.

    Raises
    ------
    NodewiseError
        MALFORMED_MESSAGE, LIMIT_EXCEEDED, INVALID_FIELD where a number is true or false.
    """
    containers = body.count(b"{") + body.count(b"[")
    if containers > _MOST_CONTAINERS:
        text = f"{containers} objects and lists of the body exceed the {_MOST_CONTAINERS} of JSON bodies; send protobuf"
        raise too_much(text, "json_containers", _MOST_CONTAINERS, containers)
    name = kind.DESCRIPTOR.name
    try:
        value = orjson.loads(body) if body.strip() else {}
    except orjson.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        text = f"the body is not valid JSON of {name}: {error.msg.partition(':')[0]} at {where}"
        place = {"line": str(error.lineno), "column": str(error.colno)}
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text, place) from None
    if not isinstance(value, dict):
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the body must be a JSON object of {name}")
    if b"true" in body or b"false" in body:
        _refuse_booleans_as_numbers(value, cast("Descriptor", kind.DESCRIPTOR), "")
    return value


_NO_BOOLEAN: Final = {FieldDescriptor.TYPE_DOUBLE: "a number", FieldDescriptor.TYPE_ENUM: "the name of a value"}


def _refuse_booleans_as_numbers(value: dict[str, Any], message: Descriptor, path: str) -> None:
    """json_format reads true as 1, which no caller means."""
    for key, inner in value.items():
        field = message.fields_by_name.get(key) or message.fields_by_camelcase_name.get(key)
        if field is None or field.type not in (*_NO_BOOLEAN, FieldDescriptor.TYPE_MESSAGE):
            continue
        place, holder = path + field.name, field.message_type
        if holder is not None and holder.GetOptions().map_entry and isinstance(inner, dict):
            field = holder.fields_by_name["value"]
            held = [(f"{place}[{name!r}]", entry) for name, entry in inner.items()]
        elif isinstance(inner, list):
            held = [(f"{place}[{number}]", entry) for number, entry in enumerate(inner)]
        else:
            held = [(place, inner)]
        for where, entry in held:
            if isinstance(entry, bool) and field.type in _NO_BOOLEAN:
                raise invalid_field(where, f"must be {_NO_BOOLEAN[field.type]}, found {str(entry).lower()}")
            if isinstance(entry, dict) and field.message_type is not None:
                _refuse_booleans_as_numbers(entry, field.message_type, f"{where}.")


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
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the body is not a {kind.DESCRIPTOR.name}: {error}") from None


def _faults(value: Any, message: Descriptor, path: str, *, strict: bool) -> Iterable[NodewiseError]:
    """Errors of an object that json_format would refuse."""
    if not isinstance(value, dict):
        yield invalid_field(path.removesuffix("."), f"must be an object of {message.name}, found {_shorten(value)}")
        return
    fields = {name: each for each in message.fields for name in (each.json_name, each.name)}
    chosen_names: dict[str, str] = {}
    for key, inner in value.items():
        field = fields.get(key)
        if field is None:
            if strict:
                names = [each.name for each in message.fields]
                near = difflib.get_close_matches(key, [*names, *fields], 1)
                hint = f"; the nearest is {near[0]}" if near else ""
                text = f"is not a field of {message.name}{hint}; it has {', '.join(names) or 'no fields'}"
                yield invalid_field(f"{path}{key[:80]}", text)
            continue
        oneof = field.containing_oneof
        group = field.name if oneof is None or inner is None else oneof.name
        if group in chosen_names:
            yield invalid_field(path + field.name, f"must be absent with {chosen_names[group]}: state one of them")
        chosen_names[group] = key
        yield from _faults_of_field(inner, field, path + field.name, strict=strict)


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
        yield invalid_field(f"{path}[{wrong}]", f"must be {_kind(field)}, found {_shorten(value[wrong])}")
    else:
        yield invalid_field(path, f"must be {_kind(field)}, found {_shorten(value)}")


def _is_taken(value: Any, field: FieldDescriptor) -> bool:
    """Whether json_format accepts a value for a field."""
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


def _shorten(value: Any) -> str:
    return repr(value[:_SHOWN]) if isinstance(value, str) else str(value)[:_SHOWN]


ASIDE_BYTES: Final = 128 * 1024
"""Messages of this size or more are translated in a thread, since that would delay other calls."""
_KEPT_BYTES: Final = 64 * 1024
_ENTRY_BYTES: Final = 256
"""Bytes of a cache entry beside its content."""


@dataclass(slots=True, eq=False)
class Translator:
    """Of one method.

    Attributes
    ----------
    route : MethodRoute
        Its ways in.
    method : MethodDescriptor
        As the contract has it.
    request, reply : type
        Classes of its requests and replies.
    kept : LruCache or None
        Bodies and replies that were translated; None = each is translated anew.
    """

    route: MethodRoute
    method: MethodDescriptor
    request: type[Message]
    reply: type[Message]
    kept: LruCache[tuple[bool, bytes], bytes] | None = field(default=None)

    @property
    def most_bytes(self) -> int:
        """Largest request."""
        return self.route.method.intake.most_bytes

    async def request_of(self, body: bytes, *, strict: bool) -> bytes:
        """A request's bytes on the wire, of JSON. Raises NodewiseError.

        Parameters
        ----------
        strict : bool
            Refuse names that the request does not have, or leave them out.
        """
        cache = None if strict else self.kept
        if cache is not None and (cached := cache.get((True, body))) is not None:
            return cached
        request = await self.make_bytes(
            body,
            lambda data: message_of(parse_json(data, self.request), self.request, strict=strict).SerializeToString(),
        )
        if cache is not None and len(body) <= _KEPT_BYTES:
            cache.put((True, body), request, len(body) + len(request) + _ENTRY_BYTES)
        return request

    async def make_bytes(self, body: bytes, make: Callable[[bytes], bytes]) -> bytes:
        """A request's bytes, made of a body that counts among the bytes in flight meanwhile. Raises NodewiseError."""
        if len(body) <= LARGE_BYTES:
            return make(body)
        with self.route.method.intake.holding(Large(body)):
            return await asyncio.to_thread(make, body) if len(body) > ASIDE_BYTES else make(body)

    async def json_of(self, reply: bytes) -> bytes:
        """A reply as JSON."""
        cache = self.kept
        if cache is not None and (cached := cache.get((False, reply))) is not None:
            return cached
        text = await asyncio.to_thread(self._json_of, reply) if len(reply) > ASIDE_BYTES else self._json_of(reply)
        if cache is not None and len(reply) <= _KEPT_BYTES:
            cache.put((False, reply), text, len(reply) + len(text) + _ENTRY_BYTES)
        return text

    def _json_of(self, reply: bytes) -> bytes:
        return json_of(self.reply.FromString(reply))


def translators(
    routes: Mapping[str, MethodRoute], methods: Mapping[str, MethodDescriptor], space: CacheSpace
) -> dict[str, Translator]:
    """Of every method, by its path.

    Parameters
    ----------
    routes, methods : mapping of str
        By ``/package.Service/Method``.
    space : CacheSpace
        Has room for what is kept.
    """
    by_service = {}
    for path, route in routes.items():
        method = methods[path]
        by_service[path] = Translator(
            route=route,
            method=method,
            request=_class_of(method.input_type),
            reply=_class_of(method.output_type),
            # Serialised in the usual form, so that a JSON request finds the cached reply of the same gRPC request.
            kept=LruCache(space) if route.method.known is not None and not method.client_streaming else None,
        )
    return by_service


def _class_of(descriptor: Descriptor) -> type[Message]:
    return GetMessageClass(descriptor)
