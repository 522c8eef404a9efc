"""Other releases of the contract: a newer server's fields and words, and what the kept image of an older one knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from nodewise_conformance.languages import ROOT

__all__ = ["as_newer", "as_released"]

_IMAGE: Final = ROOT / "protos" / "released" / "unreleased.binpb"
# Field 19999 is in no message: protobuf reserves these numbers for itself, so that no contract can ever take it; 15001
# is in none of ours. As text, as a number and as a message, each as a newer server might send it.
_UNKNOWN: Final = b"\xca\xa9\x07\x05newer" + b"\xd0\xa9\x07\x2a" + b"\xda\xa9\x07\x02\x08\x01"
_STEP: Final = re.compile(r"(\w+)(?:\[(\d+)\])?")


def as_newer(message: Message, fields: Mapping[str, Any]) -> bytes:
    """The message with unknown fields in the messages `at` these paths ("" = itself), and `enums` set to numbers."""
    for path, number in fields.get("enums", {}).items():
        parent, _, name = path.rpartition(".")
        field, place = _split(name)
        target = _at(message, parent)
        if place is None:
            setattr(target, field, number)
        else:
            getattr(target, field)[place] = number
    for path in fields.get("at", ("",)):
        _at(message, path).MergeFromString(_UNKNOWN)
    return message.SerializeToString()


def as_released(descriptor: Descriptor, data: bytes) -> bytes:
    """What of a message the kept image of the contract knows. A message that it does not have stays as it is."""
    try:
        released_type = _pool().FindMessageTypeByName(descriptor.full_name)
    except KeyError:
        return data
    message: Any = GetMessageClass(released_type)()
    message.ParseFromString(data)
    message.DiscardUnknownFields()
    known_bytes: bytes = message.SerializeToString()
    return known_bytes


@cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_IMAGE.read_bytes()).file:
        pool.Add(file)
    return pool


def _at(message: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        field, place = _split(name)
        message = getattr(message, field)
        if place is not None:
            message = message[place]
    return message


def _split(name: str) -> tuple[str, int | None]:
    match = _STEP.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is no step of a path; expected field or field[3]")
    return match[1], None if match[2] is None else int(match[2])
