"""Connections of the HTTP listener: their number, and when to close those whose callers do not read."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import structlog
from aiohttp import web

from nodewise.rpc.http.front import failure_response
from nodewise.runtime.connections import METADATA_BYTES, most_connections
from nodewise.runtime.groups_of_settings import ConnectionSettings

__all__ = ["HttpServer"]

_log = structlog.get_logger(__name__)

IDLE_S: Final = 75.0
"""Default time of a connection between two requests: longer than that of proxies, which could otherwise send a request
on a connection that is just being closed."""
STOPPING_S: Final = 1.0
"""Time for a reply that its caller does not read, while the server stops."""
LEAST_READ_BYTES: Final = 64 * 1024
"""Bytes of a reply that a caller must read in that time; slower callers occupy memory like those that do not read."""
_LINGERING_S: Final = 2.0
"""Seconds to read the rest of a rejected body, so that its sender reads the reason before the connection ends."""
_NO_LINGERING: Final = struct.pack("ii", 1, 0)
_HEADERS: Final = 64
_INVALID, _INTERNAL = 3, 13
"""Values of google.rpc.Code."""


class HttpServer(web.Server):
    """Makes the handler of each connection.

    Parameters
    ----------
    answer : callable
        Answers a request.
    """

    def __init__(
        self, answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], connections: ConnectionSettings
    ) -> None:
        super().__init__(answer, handler_cancellation=True)
        self._most = most_connections(connections.most)
        self._patience_s = connections.idle_s or IDLE_S
        self._settings: dict[str, Any] = {
            "keepalive_timeout": self._patience_s,
            "access_log": None,
            "logger": structlog.get_logger("nodewise.rpc"),
            "max_line_size": METADATA_BYTES,
            "max_field_size": METADATA_BYTES,
            "max_headers": _HEADERS,
            "lingering_time": _LINGERING_S,
            "auto_decompress": False,
        }

    def __call__(self) -> Any:
        """The handler of a new connection."""
        if self._most and len(self._connections) >= self._most:
            return _RefusedConnection()
        return _Connection(self, self._patience_s, loop=self._loop, **self._settings)

    def hurry(self) -> None:
        """Close connections soon whose callers do not read."""
        self._patience_s = STOPPING_S
        for each in self.connections:
            cast("_Connection", each).hurry(STOPPING_S)


class _Connection(web.RequestHandler):
    """A connection that reports its faults like all others, and ends when its caller does not read.

    A reply counts as read once the kernel has all of it; until then its bytes are in the buffer of the transport.
    """

    def __init__(self, server: HttpServer, patience_s: float, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._patience_s = patience_s
        self._wire: asyncio.Transport | None = None
        self._left_bytes = 0
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = cast("asyncio.Transport", transport)
        self._wire.set_write_buffer_limits(high=1)  # writing pauses as long as there is anything in it
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()

    def hurry(self, patience_s: float) -> None:
        """Wait less from now on."""
        self._patience_s = patience_s
        if self._watch is not None:
            self._look_again()

    def _look_again(self) -> None:
        self._stop_watching()
        if self._wire is not None:
            self._left_bytes = self._wire.get_write_buffer_size()
            self._watch = asyncio.get_running_loop().call_later(self._patience_s, self._look)

    def _look(self) -> None:
        assert self._wire is not None
        if self._wire.get_write_buffer_size() > self._left_bytes - LEAST_READ_BYTES:
            _log.info("reply_not_read", left_bytes=self._left_bytes, waited_s=self._patience_s)
            _reset(self._wire)
        else:
            self._look_again()

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  # as aiohttp calls it
    ) -> web.StreamResponse:
        """Answer a failure, for aiohttp; only the log has the exception's text."""
        if request.writer.output_size > 0:
            raise ConnectionError("a response has begun")
        if status >= 500:
            _log.error("request_failed", exc_info=exc)
            response = failure_response(_INTERNAL, "the server failed; its log has the details")
        else:
            response = failure_response(_INVALID, "the request is not valid HTTP/1.1, or its headers are too large")
        response.force_close()
        return response


class _RefusedConnection(asyncio.Protocol):
    """A connection above the limit, closed at once, as gRPC does it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        _reset(cast("asyncio.Transport", transport))


def _reset(wire: asyncio.Transport) -> None:
    """End a connection at once; otherwise the kernel would keep the bytes that the caller does not read."""
    raw_socket = wire.get_extra_info("socket")
    if raw_socket is not None:
        raw_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
    wire.abort()
