"""Records of TensorBoard and W&B files: their frames, and fields of protocol buffers without their descriptors."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

__all__ = ["fields_of", "first", "log_records", "tf_records"]

_BLOCK: Final = 32 << 10
_WANDB_HEADER: Final = 7
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def tf_records(data: bytes) -> Iterator[bytes]:
    """Records of a TFRecord file: length, checksum of it, content, checksum. A record that is cut off ends them."""
    at = 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        end = at + 12 + length
        if end + 4 > len(data):
            return
        yield data[at + 12 : end]
        at = end + 4


def log_records(data: bytes) -> Iterator[bytes]:
    """Records of a W&B file: a log in LevelDB's format, whose records lie in pieces over blocks of 32 KiB."""
    at, record = _WANDB_HEADER, b""
    while at + 7 <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack_from("<HB", data, at + 4)
        if not 1 <= kind <= 4:
            return
        record = (b"" if kind in (1, 2) else record) + data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield record


def fields_of(message: bytes) -> dict[int, list[Any]]:
    """Values of a message by field: bytes, whole numbers, and fixed ones as bytes of their width."""
    fields: dict[int, list[Any]] = {}
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value: Any
        if key & 7 == _VARINT:
            value, at = _varint(message, at)
        else:
            length = {_FIXED64: 8, _FIXED32: 4}.get(key & 7, -1)
            if length < 0:
                if key & 7 != _BYTES:
                    raise ValueError("a field of an unknown kind")
                length, at = _varint(message, at)
            value, at = message[at : at + length], at + length
        fields.setdefault(key >> 3, []).append(value)
    return fields


def first(fields: dict[int, list[Any]], number: int, default: Any) -> Any:
    """The value of a field that is there once."""
    return fields[number][-1] if number in fields else default


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(message):
            raise ValueError("a field that is cut off")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
