"""Connections that speak HTTP/2 by hand, or not at all: what a gRPC client never does."""

from __future__ import annotations

import socket
from contextlib import suppress
from types import TracebackType

from patience import PATIENCE_S

SETTINGS, PING, GOAWAY, HEADERS = 4, 6, 7, 1
MAX_CONCURRENT_STREAMS = 3
END_HEADERS = 4


def frame(kind: int, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def headers(path: str) -> bytes:
    """Headers of a gRPC call, none of them compressed."""
    said = {"te": "trailers", "content-type": "application/grpc"}
    literals = b"".join(
        b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in {":path": path, ":authority": "server", **said}.items()
    )
    return b"\x83\x86" + literals  # POST, http


class RawConnection:
    """A connection to a server; closed on leaving the context."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self.received = b""

    def begin(self, *frames: bytes) -> None:
        """Say that this is HTTP/2, and what follows."""
        with suppress(ConnectionError):  # it may be closed by now
            self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS) + b"".join(frames))

    def wait_for_the_end(self, *, answering: bool = False) -> None:
        """Until the server closes it; pings are answered meanwhile, or nothing is."""
        answered = 0
        with suppress(ConnectionError):
            while data := self._socket.recv(65_536):
                self.received += data
                pings = [payload for kind, payload in self.frames() if kind == PING]
                for payload in pings[answered:] if answering else ():
                    self._socket.sendall(frame(PING, 1, payload=payload))
                answered = len(pings)

    def wait_for(self, kind: int) -> bytes:
        """The payload of the first frame of a kind."""
        while True:
            for found, payload in self.frames():
                if found == kind:
                    return payload
            data = self._socket.recv(65_536)
            assert data, "the connection ended before"
            self.received += data

    def frames(self) -> list[tuple[int, bytes]]:
        """Kinds and payloads of what was received."""
        found, rest = [], self.received
        while len(rest) >= 9 and len(rest) >= 9 + int.from_bytes(rest[:3], "big"):
            size = int.from_bytes(rest[:3], "big")
            found.append((rest[3], rest[9 : 9 + size]))
            rest = rest[9 + size :]
        return found

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
