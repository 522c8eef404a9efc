"""How many parts a message may have: an empty one takes two bytes on the wire, and a hundred once it is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from google.protobuf.message import Message

from nodewise.hosting.processes.values import UndecodableError

__all__ = ["MOST_PARTS", "bounded", "check_parts"]

MessageT = TypeVar("MessageT", bound=Message)

MOST_PARTS: Final = 1 << 19
"""Fields in all parts of a message, as many as a client's message has. Columns and arrays are one each."""
_BYTES_OF: Final = {1: 8, 5: 4}
_LENGTH: Final = 2


def bounded(kind: type[MessageT]) -> Callable[[bytes], MessageT]:
    """Reads messages of a type whose parts are not too many."""

    def read(data: bytes) -> MessageT:
        if len(data) > 2 * MOST_PARTS:  # else there cannot be so many
            check_parts(data, kind.DESCRIPTOR)
        return kind.FromString(data)

    return read


def check_parts(data: bytes, kind: Any) -> None:
    """Count what a message of a descriptor holds. Raises UndecodableError where it is too much, or no message."""
    left: list[tuple[int, int, Any]] = [(0, len(data), kind)]
    parts = 0
    while left:
        at, end, descriptor = left.pop()
        while at < end:
            parts += 1
            if parts > MOST_PARTS:
                raise UndecodableError("a message of too many parts")
            tag, at = _number(data, at)
            wire = tag & 7
            if wire == _LENGTH:
                size, at = _number(data, at)
                field = descriptor.fields_by_number.get(tag >> 3)
                if field is not None and field.message_type is not None:
                    left.append((at, min(at + size, end), field.message_type))
                at += size
            elif wire in _BYTES_OF:
                at += _BYTES_OF[wire]
            elif wire == 0:
                _, at = _number(data, at)
            else:
                raise UndecodableError("a message that is none")


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number of variable length, and where it ends."""
    found = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise UndecodableError("a message that is none")
        byte = data[at]
        found |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return found, at
        shift += 7
