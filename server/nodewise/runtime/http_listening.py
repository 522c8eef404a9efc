"""The listener for HTTP: connections and their limits, TLS, drain. What is asked is answered by ``rpc.http``."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from aiohttp import web

from nodewise.ports.cache import CacheSpace
from nodewise.rpc.http.front import Front, failed
from nodewise.rpc.http.origins import Origins
from nodewise.rpc.http.translating import translators
from nodewise.rpc.routes import Router
from nodewise.rpc.services import METHODS
from nodewise.runtime.connections import METADATA_BYTES, most_connections
from nodewise.runtime.groups_of_settings import ConnectionSettings
from nodewise.runtime.identity.settings import is_loopback
from nodewise.runtime.identity.tls import CertificatesError, ServerCertificates
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["HttpListener", "http_listener"]

_log = structlog.get_logger(__name__)

IDLE_S: Final = 75.0
"""Of a connection between two requests where nothing is set: longer than proxies keep theirs, which would else send a
request into one that is just being closed."""
_LINGERING_S: Final = 2.0
"""For the rest of a body that nobody wants, so that its sender reads why before the connection ends."""
_LAST_S: Final = 0.1
"""For what is in flight after the grace: aiohttp takes 0 for ever."""
_HEADERS: Final = 64
_INVALID: Final = 3
"""Of google.rpc.Code."""


def http_listener(
    settings: Settings,
    listen: str,
    routers: Sequence[Router],
    space: CacheSpace,
    is_serving: Callable[[], Awaitable[bool]],
) -> HttpListener:
    """The listener of a server whose calls come in by the same routers over gRPC. Raises SettingsError.

    Parameters
    ----------
    space : CacheSpace
        Has room for what is known in JSON.
    is_serving : callable
        Whether this server is to be asked.
    """
    routes = {path: each for router in routers for path, each in router.routes.items()}
    known = translators(routes, METHODS, space)
    origins = Origins(settings.http_origins, local_names=is_loopback(listen) and not settings.authentication)
    try:
        context = ServerCertificates(settings.tls).context() if settings.tls.is_on else None
    except CertificatesError as error:
        raise SettingsError(str(error)) from None
    return HttpListener(Front(known, origins, is_serving), settings.connections, context, settings.grace_s)


class HttpListener:
    """Serves HTTP/1.1.

    Parameters
    ----------
    front : Front
        Answers.
    certificates : SSLContext or None
        None = plaintext.
    grace_s : float
        For requests in flight at the end.
    """

    def __init__(
        self, front: Front, connections: ConnectionSettings, certificates: ssl.SSLContext | None, grace_s: float
    ) -> None:
        self._front = front
        self._connections = connections
        self._certificates = certificates
        self._grace_s = grace_s
        self._server: _Server | None = None
        self._listening: asyncio.Server | None = None

    async def start(self, listen: str, *, share_port: bool) -> int:
        """Listen on HOST:PORT, port 0 = any; returns the port. Raises OSError."""
        host, _, port = listen.rpartition(":")
        self._server = _Server(self._front, self._connections)
        self._listening = await asyncio.get_running_loop().create_server(
            self._server,
            host.strip("[]"),
            int(port),
            ssl=self._certificates,
            ssl_handshake_timeout=self._connections.handshake_s if self._certificates else None,
            backlog=1024,
            reuse_address=True,
            reuse_port=share_port or None,
        )
        number: int = self._listening.sockets[0].getsockname()[1]
        return number

    async def stop(self) -> None:
        """Take no more connections, let requests in flight end, and close."""
        if self._listening is None or self._server is None:
            return
        self._listening.close()
        await asyncio.sleep(0)  # what was accepted begins
        ends_at = asyncio.get_running_loop().time() + self._grace_s
        # First, as aiohttp drops what still comes of a body once it is told to shut down.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await self._front.drained()
        self._server.pre_shutdown()
        await self._server.shutdown(max(ends_at - asyncio.get_running_loop().time(), _LAST_S))


class _Server(web.Server):
    """Makes what answers a connection."""

    def __init__(self, front: Front, connections: ConnectionSettings) -> None:
        super().__init__(front, handler_cancellation=True)
        self._most = most_connections(connections.most)
        self._settings: dict[str, Any] = {
            "keepalive_timeout": connections.idle_s or IDLE_S,
            "access_log": None,
            "logger": structlog.get_logger("nodewise.rpc"),
            "max_line_size": METADATA_BYTES,
            "max_field_size": METADATA_BYTES,
            "max_headers": _HEADERS,
            "lingering_time": _LINGERING_S,
            "auto_decompress": False,
        }

    def __call__(self) -> Any:
        if self._most and len(self.connections) >= self._most:
            return _Full()
        return _Connection(self, loop=self._loop, **self._settings)


class _Connection(web.RequestHandler):
    """One whose faults are told as all others are."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  # as aiohttp calls it
    ) -> web.StreamResponse:
        """As aiohttp asks; an exception's text is for the log alone."""
        if request.writer.output_size > 0:
            raise ConnectionError("a response has begun")
        if status >= 500:
            _log.error("request_failed", exc_info=exc)
            response = failed(13, "the server failed; its log has the details")
        else:
            response = failed(_INVALID, "this is no request of HTTP/1.1, or its head is too large")
        response.force_close()
        return response


class _Full(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()
