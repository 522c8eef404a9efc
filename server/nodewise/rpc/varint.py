"""Protocol Buffers' variable-length whole numbers, for replies that are put together from parts."""

from __future__ import annotations

__all__ = ["encode_varint"]


def encode_varint(number: int) -> bytes:
    """A number of 0 or more: seven bits a byte, lowest first, the top bit set on all but the last."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)
