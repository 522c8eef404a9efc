"""Protocol buffers' wire format, as far as traces use it: https://protobuf.dev/programming-guides/encoding."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from nodewise_traces.scanning.stream import Source

__all__ = ["WireError", "fields_of", "integers_of", "members", "messages", "signed_integer", "zigzag"]

_LONGEST_MESSAGE_BYTES: Final = 1 << 26
"""The limit that protobuf's own library sets by default."""

Field = tuple[int, int | bytes]
"""Number of a field, and its value: an integer, or bytes of whatever has a length."""


class WireError(ValueError):
    """The bytes are no message."""


def messages(stream: Source) -> Iterator[bytes]:
    """Messages with their length before each.

    Raises
    ------
    WireError
        The stream ends inside a message, or a length is beyond reason.
    """
    while True:
        length = _stream_varint(stream)
        if length is None:
            return
        yield _read_exactly(stream, length, _LONGEST_MESSAGE_BYTES)


def members(stream: Source, longest: int = _LONGEST_MESSAGE_BYTES) -> Iterator[tuple[int, bytes]]:
    """Fields with a length of the one message that a stream is, of at most ``longest`` bytes each; others are skipped.

    Raises
    ------
    WireError
        The stream ends inside a field, or is no message.
    """
    while (tag := _stream_varint(stream)) is not None:
        number, wire = tag >> 3, tag & 7
        if number == 0 or wire not in {0, 1, 2, 5}:
            raise WireError(f"field {number} of wire type {wire}")
        length = _stream_varint(stream) if wire in {0, 2} else 8 if wire == 1 else 4
        if length is None:
            raise WireError("the stream ends inside a field")
        if wire == 2:
            yield number, _read_exactly(stream, length, longest)
        elif wire != 0:
            _read_exactly(stream, length, longest)


def _read_exactly(stream: Source, length: int, longest: int) -> bytes:
    if length > longest:
        raise WireError(f"a message of {length} bytes")
    parts, left = [], length
    while left:  # a stream that unpacks may give less than it is asked for
        part = stream.read(left)
        if not part:
            raise WireError("the stream ends inside a message")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def _stream_varint(stream: Source) -> int | None:
    value = shift = 0
    while True:
        byte = stream.read(1)
        if not byte:
            if shift:
                raise WireError("the stream ends inside a length")
            return None
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
        shift += 7
        if shift > 63:
            raise WireError("a length of more than 64 bits")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise WireError("a number is cut or too long")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
        shift += 7


def fields_of(message: bytes) -> Iterator[Field]:
    """Fields of a message in the order they were written.

    Raises
    ------
    WireError
        The bytes are no message.
    """
    at, size = 0, len(message)
    while at < size:
        tag = message[at]  # numbers of one byte, which most are, without a call
        at += 1
        if tag >= 0x80:
            tag, at = _varint(message, at - 1)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise WireError("field 0")
        if wire == 0:
            value, at = (message[at], at + 1) if at < size and message[at] < 0x80 else _varint(message, at)
            yield number, value
            continue
        if wire == 2:
            length, at = (message[at], at + 1) if at < size and message[at] < 0x80 else _varint(message, at)
        elif wire in {1, 5}:
            length = 8 if wire == 1 else 4
        else:
            raise WireError(f"wire type {wire}")
        if at + length > size:
            raise WireError("a field is cut")
        yield number, message[at : at + length]
        at += length


def integers_of(value: int | bytes) -> list[int]:
    """Repeated integers, packed or one by one."""
    if isinstance(value, int):
        return [value]
    integers, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        integers.append(number)
    return integers


def signed_integer(value: int | bytes) -> int:
    """An int32 or int64 from its varint, or a fixed one from its bytes."""
    if isinstance(value, bytes):
        number: int = struct.unpack("<q" if len(value) == 8 else "<i", value)[0]
        return number
    return value - (1 << 64) if value >= 1 << 63 else value


def zigzag(value: int) -> int:
    """A sint32 or sint64 from its varint."""
    return (value >> 1) ^ -(value & 1)
