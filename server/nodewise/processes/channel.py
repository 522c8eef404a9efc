"""Messages between a process and its child: length-prefixed bytes over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Final

__all__ = ["AsyncChannel", "Channel"]

_LENGTH: Final = struct.Struct("!Q")
_PART_BYTES: Final = 1 << 20


class Channel:
    """A blocking end of a channel.

    Parameters
    ----------
    descriptor : int
        Descriptor of one of a pair of sockets; closed with the channel.
    timeout_s : float or None
        Longest wait for a part of a message, after which TimeoutError is raised; None = for ever.
    """

    def __init__(self, descriptor: int, timeout_s: float | None = None) -> None:
        self._socket = socket.socket(fileno=descriptor)
        self._socket.settimeout(timeout_s)

    def send(self, message: bytes) -> None:
        """Send a message. Raises OSError if the other end is closed."""
        self._socket.sendall(_LENGTH.pack(len(message)) + message)

    def receive(self) -> bytes:
        """The next message. Raises EOFError if there are no more."""
        return self._exactly(*_LENGTH.unpack(self._exactly(_LENGTH.size)))

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            part = self._socket.recv(min(_PART_BYTES, count - len(data)))
            if not part:
                raise EOFError
            data += part
        return bytes(data)

    def duplicate(self) -> socket.socket:
        """A duplicate of this end, for an :class:`AsyncChannel` that receives instead of this one."""
        return self._socket.dup()

    def close(self) -> None:
        """Let go of this end."""
        self._socket.close()


class AsyncChannel:
    """An end of a channel on an event loop. One task receives, any task sends."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._count: int | None = None

    @classmethod
    async def of(cls, connection: socket.socket) -> AsyncChannel:
        """A channel over one of a pair of sockets, which is closed with it."""
        return cls(*await asyncio.open_unix_connection(sock=connection))

    async def send(self, message: bytes) -> None:
        """Send a message, after earlier ones. Raises OSError if the other end is closed."""
        self._writer.writelines((_LENGTH.pack(len(message)), message))
        await self._writer.drain()

    async def receive(self) -> bytes:
        """The next message; a cancelled receiver loses none. Raises EOFError if there are no more."""
        try:
            if self._count is None:
                (self._count,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
            message = await self._reader.readexactly(self._count)
        except OSError:
            raise EOFError from None
        self._count = None
        return message

    def close(self) -> None:
        """Let go of this end."""
        with suppress(RuntimeError):  # the event loop is closed
            self._writer.close()
