"""Every message of the contract with every field filled, as a message and as the value that must equal it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor

import nodewise_protos

_ROOT = Path(nodewise_protos.__file__).parent
_START = datetime(2026, 11, 22, 12, tzinfo=UTC)
OPTIONS_FILE = "nodewise/v1/facts.proto"
"""Holds options of fields: they never travel."""


def contract_files() -> list[FileDescriptor]:
    """Of what callers meet: what plugins speak has no values."""
    modules = sorted(path.relative_to(_ROOT).with_suffix("") for path in _ROOT.glob("v*/*_pb2.py"))
    files = [import_module("nodewise_protos." + ".".join(module.parts)).DESCRIPTOR for module in modules]
    return [file for file in files if file.name != OPTIONS_FILE]


def contract_messages() -> list[Descriptor]:
    return [message for file in contract_files() for message in file.message_types_by_name.values()]


def home_of(descriptor: Any, package: str) -> Any:
    """The class of a message or enum in one of the packages."""
    module = descriptor.file.name.removeprefix("nodewise/").removesuffix(".proto").replace("/", ".")
    suffix = "_pb2" if package == "nodewise_protos" else ""
    return getattr(import_module(f"{package}.{module}{suffix}"), descriptor.name)


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def is_time(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.full_name == "google.protobuf.Timestamp"


def filled(descriptor: Descriptor, chosen: int = 0) -> tuple[Any, Any]:
    """A message and its value with all fields set, of each oneof the member number ``chosen`` (or the last)."""
    return _filled(descriptor, count(1), chosen)


def variants(descriptor: Descriptor) -> int:
    """How many fillings set every member of every oneof at least once."""
    return max((len(oneof.fields) for oneof in descriptor.oneofs), default=1)


def _filled(descriptor: Descriptor, numbers: Iterator[int], chosen: int = 0) -> tuple[Any, Any]:
    message, held = home_of(descriptor, "nodewise_protos")(), {}
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if oneof is not None and oneof.fields.index(field) != min(chosen, len(oneof.fields) - 1):
            continue
        held[field.name] = _put(message, field, numbers)
    return message, home_of(descriptor, "nodewise_values")(**held)


def _put(message: Any, field: FieldDescriptor, numbers: Iterator[int]) -> Any:
    target = getattr(message, field.name)
    if is_map(field):
        value = field.message_type.fields_by_name["value"]
        entries = {f"key {next(numbers)}": _entry(value, numbers)[0] for _ in range(2)}
        target.update(entries)
        return entries
    if is_time(field):
        instant = _START + timedelta(seconds=next(numbers), microseconds=next(numbers))
        target.FromDatetime(instant)
        return instant
    if field.message_type is not None:
        if not field.is_repeated:
            part, value = _filled(field.message_type, numbers)
            target.CopyFrom(part)
            target.SetInParent()
            return value
        pairs = [_filled(field.message_type, numbers) for _ in range(2)]
        target.extend(part for part, _ in pairs)
        return tuple(value for _, value in pairs)
    if field.is_repeated:
        pairs = [_entry(field, numbers) for _ in range(3)]
        target.extend(entry for entry, _ in pairs)
        return tuple(value for _, value in pairs)
    entry, value = _entry(field, numbers)
    setattr(message, field.name, entry)
    return value


def _entry(field: FieldDescriptor, numbers: Iterator[int]) -> tuple[Any, Any]:
    """One entry that is no default, for the message and for the value."""
    number = next(numbers)
    if field.enum_type is not None:
        known = [each for each in field.enum_type.values if each.number]
        each = known[number % len(known)]
        prefix = field.enum_type.values[0].name.removesuffix("UNSPECIFIED")
        return each.number, home_of(field.enum_type, "nodewise_values")(each.name.removeprefix(prefix).lower())
    entry: Any
    if field.type == FieldDescriptor.TYPE_BOOL:
        entry = True
    elif field.type == FieldDescriptor.TYPE_STRING:
        entry = f"text {number} é"
    elif field.type == FieldDescriptor.TYPE_BYTES:
        entry = f"bytes {number}".encode() + b"\x00\xff"
    elif field.type in (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT):
        entry = number + 0.1
    elif field.type in (FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_SINT64):
        entry = 2**53 + number
    else:
        entry = number
    return entry, entry
