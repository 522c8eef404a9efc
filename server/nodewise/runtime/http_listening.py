"""The HTTP listener: connections and their limits, TLS, drain. ``rpc.http`` answers the requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from nodewise.ports.cache import CacheSpace
from nodewise.rpc.http.front import Front, Page
from nodewise.rpc.http.origins import Origins
from nodewise.rpc.http.translating import translators
from nodewise.rpc.routes import Router
from nodewise.rpc.services import METHODS
from nodewise.runtime.http_connections import HttpServer
from nodewise.runtime.identity.settings import is_loopback
from nodewise.runtime.identity.tls import ServerCertificates
from nodewise.runtime.settings import Settings

__all__ = ["HttpListener"]

_LAST_S: Final = 0.1
"""Seconds for requests that are in flight after the grace; 0 would mean no limit in aiohttp."""


class HttpListener:
    """Serves HTTP/1.1 with the routers that gRPC uses too.

    Parameters
    ----------
    listen : str
        HOST:PORT, port 0 = any free port.
    space : CacheSpace
        For cached replies in JSON.
    pages : mapping of str to Page
        Further pages, by path.

    Raises
    ------
    SettingsError
        If the certificates cannot be used.
    """

    def __init__(
        self, settings: Settings, listen: str, routers: Sequence[Router], space: CacheSpace, pages: Mapping[str, Page]
    ) -> None:
        routes = {path: each for router in routers for path, each in router.routes.items()}
        origins = Origins(settings.http_origins, local_names=is_loopback(listen) and not settings.authentication)
        self._front = Front(translators(routes, METHODS, space), origins, pages)
        self._listen, self._connections, self._grace_s = listen, settings.connections, settings.grace_s
        self._certificates = ServerCertificates(settings.tls).context() if settings.tls.is_on else None
        self._server: HttpServer | None = None
        self._listening: asyncio.Server | None = None

    async def start(self, *, share_port: bool) -> int:
        """Listen; returns the port. Raises OSError."""
        host, _, port = self._listen.rpartition(":")
        self._server = HttpServer(self._front, self._connections)
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
        """Accept no more connections, let requests in flight end, and close."""
        if self._listening is None or self._server is None:
            return
        self._listening.close()
        await asyncio.sleep(0)  # accepted connections begin
        self._server.hurry()
        ends_at = asyncio.get_running_loop().time() + self._grace_s
        # Before the shutdown, after which aiohttp drops the rest of a body.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(ends_at):
                await self._front.drain()
        self._server.pre_shutdown()
        await self._server.shutdown(max(ends_at - asyncio.get_running_loop().time(), _LAST_S))
