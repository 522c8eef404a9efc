"""Entry of requests over HTTP: checks the origin, and dispatches to Connect, REST or a page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib import resources
from typing import Final

import structlog
from aiohttp.web import BaseRequest, Response, StreamResponse
from google.rpc import code_pb2, status_pb2

from nodewise.rpc.http.connect import Connect
from nodewise.rpc.http.failures import http_code, rest_error
from nodewise.rpc.http.origins import Origins
from nodewise.rpc.http.rest import Rest
from nodewise.rpc.http.translating import Translator

__all__ = ["DOCUMENT", "Front", "Page", "failure_response"]

_log = structlog.get_logger("nodewise.rpc")

DOCUMENT: Final = "/openapi.json"
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_ALWAYS: Final = {
    "Server": "nodewise",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Referrer-Policy": "no-referrer",
}
_PIECE_BYTES: Final = 64 * 1024

Page = Callable[[str], Awaitable[tuple[int, bytes, str]]]
"""From the text of a query to status, body and type of content."""


class Front:
    """Answers requests.

    Parameters
    ----------
    translators : mapping of str to Translator
        Of every method, by ``/package.Service/Method``.
    pages : mapping of str to Page
        What else there is, by its path.
    """

    def __init__(self, translators: Mapping[str, Translator], origins: Origins, pages: Mapping[str, Page]) -> None:
        self._connect = Connect(translators)
        self._rest = Rest(translators)
        self._origins = origins
        self._pages = pages
        self._in_flight = 0
        self._none_in_flight = asyncio.Event()
        self._none_in_flight.set()
        self._drains = False

    async def __call__(self, request: BaseRequest) -> StreamResponse:
        """Answer one."""
        self._in_flight += 1
        self._none_in_flight.clear()
        try:
            response = await self._told_where_allowed(request)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._none_in_flight.set()
        if self._drains:
            response.force_close()
        return response

    async def drain(self) -> None:
        """Close every connection after its next response; returns when no request is in flight."""
        self._drains = True
        await self._none_in_flight.wait()

    async def _told_where_allowed(self, request: BaseRequest) -> StreamResponse:
        refusal = self._origins.refusal(request.headers)
        extra_headers = self._origins.response_headers(request.headers)
        headers = _ALWAYS | extra_headers | {"Vary": "Accept-Encoding, Origin"} if extra_headers else _ALWAYS
        if refusal:
            response: StreamResponse = failure_response(code_pb2.PERMISSION_DENIED, refusal)
        else:
            response = await self._answer(request, headers)
        if not response.prepared:
            response.headers.update(headers)
        return response

    async def _answer(self, request: BaseRequest, headers: Mapping[str, str]) -> StreamResponse:
        target = request.raw_path
        if not target.startswith("/"):
            target = request.rel_url.raw_path_qs
        path, _, query = target.partition("?")
        if request.method == "OPTIONS":
            return self._asked_before(path, request)
        if path in self._connect:
            return await self._connect(path, request, headers)
        match = self._rest.find(request.method, path)
        if match is not None:
            return await self._rest(match, query, request, headers)
        if path in self._pages and request.method in ("GET", "HEAD"):
            status, body, kind = await self._pages[path](query)
            return Response(status=status, body=body, headers={"Content-Type": kind})
        if path == DOCUMENT and request.method in ("GET", "HEAD"):
            return await self._respond(request, headers)
        verbs = self._verbs(path)
        if verbs:
            return failure_response(
                code_pb2.UNIMPLEMENTED, f"{path} takes {', '.join(verbs)}", 405, {"Allow": ", ".join(verbs)}
            )
        return failure_response(code_pb2.NOT_FOUND, f"nothing is served at {path[:200]}; {DOCUMENT} lists all paths")

    def _verbs(self, path: str) -> list[str]:
        if path in self._connect:
            return ["POST"]
        return ["GET"] if path == DOCUMENT or path in self._pages else self._rest.verbs(path)

    def _asked_before(self, path: str, request: BaseRequest) -> Response:
        """Answer OPTIONS: a browser asks whether a page may call, or a client which methods a path has."""
        verbs = self._verbs(path)
        if not verbs:
            return failure_response(
                code_pb2.NOT_FOUND, f"nothing is served at {path[:200]}; {DOCUMENT} lists all paths"
            )
        headers = self._origins.preflight(request.headers, verbs)
        return Response(status=204, headers=headers | {"Allow": ", ".join([*verbs, "OPTIONS"])})

    async def _respond(self, request: BaseRequest, headers: Mapping[str, str]) -> StreamResponse:
        data = _document()
        response = StreamResponse(headers={**headers, "Content-Type": "application/json"})
        response.content_length = len(data)
        await response.prepare(request)
        # In pieces, so that a caller that does not read occupies one piece only.
        for at in range(0, len(data) if request.method == "GET" else 0, _PIECE_BYTES):
            await response.write(memoryview(data)[at : at + _PIECE_BYTES])
        await response.write_eof()
        return response


@cache
def _document() -> bytes:
    """The OpenAPI document; ``make stubs`` writes it."""
    return resources.files(__package__).joinpath("openapi.json").read_bytes()


def failure_response(
    code: int, message: str, http: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """A request that reaches no method."""
    status = status_pb2.Status(code=code, message=message)
    body = rest_error(status, http)
    return Response(status=http or http_code(status), body=body, content_type="application/json", headers=headers)
