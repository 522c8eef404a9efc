"""A stream whose first bytes were read already."""

from __future__ import annotations

from typing import BinaryIO

__all__ = ["Rewound"]


class Rewound:
    """Gives the first bytes again, then the rest."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._at = 0
        self._stream = stream

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; empty at the end."""
        if self._at >= len(self._head):
            return self._stream.read(size)
        part = self._head[self._at : self._at + size]
        self._at += len(part)
        return part if len(part) == size else part + self._stream.read(size - len(part))
