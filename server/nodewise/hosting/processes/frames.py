"""Messages over a socket between a worker and a host."""

from __future__ import annotations

import math
import socket
import time
from typing import Final

from nodewise.hosting.processes.codec import HEADER, UndecodableError

__all__ = ["LostError", "Pipe"]

READ_AT_ONCE: Final = 1 << 16
"""Bytes asked for at a time: most messages are one read."""
MOST_BYTES: Final = 1 << 30
"""Of a message: more than the traces of one file are, unpacked; what a host claims above that is a fault."""
MOST_TREE_BYTES: Final = 1 << 24
"""Of the tree of what a host sends: rows and events are arrays, what is left are names and texts. As much as a client's
message has."""
MOST_PARTS: Final = 1 << 19
"""Lists and dictionaries in such a tree, as in a client's message: read, each takes about two hundred bytes."""


class LostError(Exception):
    """The other side is gone, or sends what is no message."""


class Pipe:
    """One end, for one thread at a time.

    Parameters
    ----------
    end : socket
    wary : bool
        Whether the other side may send anything: its trees are bounded before they are read.
    """

    def __init__(self, end: socket.socket, *, wary: bool = False) -> None:
        self.socket = end
        self._most_tree_bytes = MOST_TREE_BYTES if wary else MOST_BYTES
        self._most_parts = MOST_PARTS if wary else MOST_BYTES
        self._rest = b""

    @property
    def pending(self) -> bool:
        """Whether more has been read than the messages that were received."""
        return bool(self._rest)

    def send(self, message: bytes) -> None:
        """Send a message. Raises OSError, TimeoutError among them where the socket has a time-out."""
        self.socket.sendall(message)

    def receive(self, end_s: float = math.inf) -> tuple[int, memoryview, memoryview]:
        """The exchange, the tree and the arrays of the next message, as the header has them.

        Parameters
        ----------
        end_s : float
            When all of it must have come, on the monotonic clock; the first bytes are there, or the socket's own
            time-out holds for them.

        Raises
        ------
        LostError, OSError
            TimeoutError among them where it is late; what had come by then waits.
        UndecodableError
            For more than a message holds.
        """
        size = HEADER.size
        rest = self._rest
        if len(rest) < size:
            rest = self._more(rest, size, end_s)
        tree, arrays, exchange = HEADER.unpack_from(rest)
        end = size + tree + arrays
        if end > MOST_BYTES or tree > self._most_tree_bytes:
            raise UndecodableError("a message that is too large")
        if len(rest) < end:
            rest = self._more(rest, end, end_s)
        self._rest = rest[end:]
        view = memoryview(rest)
        if tree > self._most_parts:
            self._count(bytes(view[size : size + tree]))
        return exchange, view[size : size + tree], view[size + tree : end]

    def _count(self, tree: bytes) -> None:
        """Refuse a tree of too many parts; brackets in texts count as well, which hold few."""
        if tree.count(b"[") + tree.count(b"{") > self._most_parts:
            raise UndecodableError("a message of too many parts")

    def _more(self, rest: bytes, size: int, end_s: float) -> bytes:
        """What has come, once it is as much as that."""
        parts, found = [rest], len(rest)
        end = self.socket
        own_s = end.gettimeout()
        try:
            while found < size:
                if rest or len(parts) > 1:  # most messages are one read, which needs no look at the clock
                    self._hurry(end_s)
                part = end.recv(max(READ_AT_ONCE, min(size - found, 1 << 20)))
                if not part:
                    raise LostError("the other side is gone")
                parts.append(part)
                found += len(part)
        finally:
            if end.gettimeout() != own_s:
                end.settimeout(own_s)
            self._rest = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._rest

    def _hurry(self, end_s: float) -> None:
        """Wait no longer than until then: a message in small pieces has no more time than one that comes whole."""
        if end_s < math.inf:
            left_s = end_s - time.monotonic()
            if left_s <= 0.0:
                raise TimeoutError
            self.socket.settimeout(left_s)
