"""The contract as its descriptors tell it: methods, messages from and to JSON, and messages with every field filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import nodewise_protos

__all__ = ["FILLED", "Method", "filled", "json_of", "message_of", "methods", "to_microseconds", "variants"]

FILLED: Final = "<filled>"
"""In a scenario: a message with every field of the contract set, of each oneof one member."""
_ROOT: Final = Path(nodewise_protos.__file__).parent
_TIMESTAMP: Final = "google.protobuf.Timestamp"
_START_SECONDS: Final = 1_764_158_400
# Columns have two entries; what points into them must find one.
_PLACES: Final = ("_index", "_indexes", "row", "rows")
_FITTING: Final[Mapping[str, Sequence[int]]] = {"row_offsets": (0, 1, 2)}


@dataclass(frozen=True, slots=True)
class Method:
    """An RPC.

    Attributes
    ----------
    name : str
        Full name with a slash, `nodewise.v1.PredictionService/Predict`.
    request, reply : Descriptor
        Its messages.
    client_streaming, server_streaming : bool
        Whether either side sends many.
    """

    name: str
    request: Descriptor
    reply: Descriptor
    client_streaming: bool
    server_streaming: bool

    @property
    def path(self) -> str:
        """As on the wire."""
        return f"/{self.name}"

    def read_request(self, data: bytes) -> Message:
        """A request from the wire."""
        return _read(self.request, data)

    def read_reply(self, data: bytes) -> Message:
        """A reply from the wire."""
        return _read(self.reply, data)


@cache
def methods() -> Mapping[str, Method]:
    """All RPCs of the contract by their names."""
    all_methods = [
        _method(method) for file in _files() for service in file.services_by_name.values() for method in service.methods
    ]
    return {method.name: method for method in all_methods}


def message_of(descriptor: Descriptor, value: Any, *, variant: int = 0) -> Any:
    """The message that proto JSON says, in either spelling of names; `<filled>` = with every field set.

    Raises
    ------
    json_format.ParseError
        For what the contract does not know.
    """
    if value == FILLED:
        return filled(descriptor, variant)
    return json_format.ParseDict(value, GetMessageClass(descriptor)())


def json_of(message: Message) -> dict[str, Any]:
    """Proto JSON with the contract's own names; what is unset is left out."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def to_microseconds(message: Message) -> None:
    """Cut points in time to what every language can hold."""
    if message.DESCRIPTOR.full_name == _TIMESTAMP:
        message.nanos -= message.nanos % 1_000  # type: ignore[attr-defined]
    for field, value in message.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for part in value if field.is_repeated else (value,):
            to_microseconds(part)


def variants(descriptor: Descriptor) -> int:
    """How many fillings set every member of every oneof of a message at least once."""
    return max((len(oneof.fields) for oneof in descriptor.oneofs), default=1)


def filled(descriptor: Descriptor, variant: int = 0) -> Any:
    """A message with all fields set, every number another; of each oneof the member of that number, or the last."""
    return _filled(descriptor, count(1), variant)


def _method(method: MethodDescriptor) -> Method:
    return Method(
        name=f"{method.containing_service.full_name}/{method.name}",
        request=method.input_type,
        reply=method.output_type,
        client_streaming=bool(method.client_streaming),
        server_streaming=bool(method.server_streaming),
    )


def _files() -> Iterator[FileDescriptor]:
    for path in sorted(_ROOT.glob("v*/*_service_pb2.py")):
        parts = path.relative_to(_ROOT).with_suffix("").parts
        file: FileDescriptor = import_module(".".join((nodewise_protos.__name__, *parts))).DESCRIPTOR
        yield file


def _read(descriptor: Descriptor, data: bytes) -> Message:
    message: Message = GetMessageClass(descriptor)()
    message.ParseFromString(data)
    return message


def _filled(descriptor: Descriptor, numbers: Iterator[int], variant: int) -> Any:
    message = GetMessageClass(descriptor)()
    if descriptor.full_name == _TIMESTAMP:
        # What every language can hold: a point in time to the microsecond.
        message.seconds, message.nanos = _START_SECONDS + next(numbers), 1_000 * next(numbers)  # type: ignore[attr-defined]
        return message
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is None or oneof.fields.index(field) == min(variant, len(oneof.fields) - 1):
            _fill(message, field, numbers)
    return message


def _fill(message: Any, field: FieldDescriptor, numbers: Iterator[int]) -> None:
    target = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        value = field.message_type.fields_by_name["value"]
        for _ in range(2):
            key = f"key {next(numbers)}"
            if value.message_type is None:
                target[key] = _scalar(value, numbers)
            else:
                target[key].CopyFrom(_filled(value.message_type, numbers, 0))
    elif field.message_type is not None and field.is_repeated:
        target.extend(_filled(field.message_type, numbers, place) for place in range(2))
    elif field.message_type is not None:
        target.CopyFrom(_filled(field.message_type, numbers, 0))
    elif field.name in _FITTING:
        target.extend(_FITTING[field.name])
    elif field.is_repeated:
        target.extend(_scalar(field, numbers) for _ in range(2))
    else:
        setattr(message, field.name, _scalar(field, numbers))


def _scalar(field: FieldDescriptor, numbers: Iterator[int]) -> Any:
    number = next(numbers)
    if field.name.endswith(_PLACES):
        return 0
    if field.name == "rows_count":
        return 2
    if field.enum_type is not None:
        nonzero = [each.number for each in field.enum_type.values if each.number]
        return nonzero[number % len(nonzero)]
    kind = field.cpp_type
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return number + 0.5
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return True
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return f"bytes {number}".encode() if field.type == FieldDescriptor.TYPE_BYTES else f"text {number} ä"
    # Beyond what a double holds exactly, where the contract says so many bits.
    wide = kind in (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
    return number + (1 << 53) if wide else number
