"""A stream whose first bytes were read already."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["Rewound"]


class Rewound:
    """Gives the first bytes again, then the rest."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; empty at the end."""
        if not self._head:
            return self._stream.read(size)
        head, self._head = self._head[:size], self._head[size:]
        return head if len(head) == size else head + self._stream.read(size - len(head))
