"""Protocol Buffers' variable-length whole numbers, for replies that are put together from parts."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

__all__ = ["encode_varint", "length_delimited", "tag_of"]

_OF_STATED_LENGTH: Final = 2
"""Wire type of messages, texts and packed columns."""


@lru_cache(maxsize=1024)
def encode_varint(number: int) -> bytes:
    """A number of 0 or more: seven bits a byte, lowest first, the top bit set on all but the last."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def tag_of(field: Any) -> bytes:
    """What a field of stated length begins with, by its descriptor."""
    return encode_varint(field.number << 3 | _OF_STATED_LENGTH)


def length_delimited(tag: bytes, data: bytes) -> bytes:
    """A field of stated length."""
    return b"".join((tag, encode_varint(len(data)), data))
