"""The Connect protocol over HTTP/1.1: calls with one reply, and streams of replies; JSON and binary; gzip.

https://connectrpc.com/docs/protocol. Streams of requests need HTTP/2 where both sides talk at once, and are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp.web import BaseRequest, Response, StreamResponse

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import REQUEST_ID
from nodewise.rpc.http.answering import reply, stream
from nodewise.rpc.http.bodies import GZIP, accepts_gzip, packed, received, understood, unpacked
from nodewise.rpc.http.context import EndedError, HttpContext
from nodewise.rpc.http.failures import connect_error, headers_of, http_code
from nodewise.rpc.http.translating import Translator

__all__ = ["Connect"]

_VERSION: Final = "Connect-Protocol-Version"
_JSON: Final = "application/json"
_UNARY: Final[Mapping[str, bool]] = MappingProxyType({_JSON: True, "application/proto": False})
_STREAM: Final[Mapping[str, bool]] = MappingProxyType(
    {"application/connect+json": True, "application/connect+proto": False}
)
"""Types of bodies, and whether they are JSON."""
_PREFIX_BYTES: Final = 5
"""Before each message of a stream: a byte of flags, and the length in four."""
_PACKED: Final = 1
_END: Final = 2
_CHARSETS: Final = frozenset({"", "charset=utf-8"})


class Connect:
    """Answers calls of all methods, each at its path.

    Parameters
    ----------
    translators : mapping of str to Translator
        Of every method, by ``/package.Service/Method``.
    """

    def __init__(self, translators: Mapping[str, Translator]) -> None:
        self._translators = translators

    def __contains__(self, path: str) -> bool:
        """Whether there is a method of this path."""
        return path in self._translators

    async def __call__(self, path: str, request: BaseRequest, always: Mapping[str, str]) -> StreamResponse:
        """Answer a call; what begins here has the headers ``always``."""
        if request.method != "POST":
            return Response(status=405, headers={"Allow": "POST"})
        translator = self._translators[path]
        method = translator.method
        streams = method.client_streaming or method.server_streaming
        kinds = _STREAM if streams else _UNARY
        kind, charset = _content_type(request)
        if kind not in kinds or charset not in _CHARSETS:
            return Response(status=415, headers={"Accept-Post": ", ".join(kinds)})
        if not streams:
            return await self._one(translator, request, as_json=kinds[kind])
        return await self._many(translator, request, {**always, "Content-Type": kind}, as_json=kinds[kind])

    async def _one(self, translator: Translator, request: BaseRequest, *, as_json: bool) -> Response:
        headers = request.headers
        context = HttpContext(request)

        async def receive() -> bytes:
            _check_version(headers)
            most = translator.most_bytes
            body = await received(request, most)
            if "Content-Encoding" in headers:
                body = await unpacked(body, understood(headers["Content-Encoding"]), most)
            return await translator.request_of(body, strict=False) if as_json else body

        told = {REQUEST_ID: context.request_id}
        try:
            data = await reply(translator.route, context, receive)
            body = await translator.json_of(data) if as_json else data
        except EndedError as error:
            told |= headers_of(error.status)
            body = orjson.dumps(connect_error(error.status))
            return Response(status=http_code(error.status), body=body, content_type=_JSON, headers=told)
        if accepts_gzip(headers.get("Accept-Encoding", "")) and (smaller := await packed(body)) is not None:
            body = smaller
            told |= {"Content-Encoding": GZIP, "Vary": "Accept-Encoding"}
        return Response(body=body, content_type=_JSON if as_json else "application/proto", headers=told)

    async def _many(
        self, translator: Translator, request: BaseRequest, told: dict[str, str], *, as_json: bool
    ) -> StreamResponse:
        headers = request.headers
        context = HttpContext(request)
        packs = accepts_gzip(headers.get("Connect-Accept-Encoding", ""))

        async def receive() -> bytes:
            _check_version(headers)
            if translator.method.client_streaming:
                raise _streams_in(translator)
            most = translator.most_bytes
            flags, message = _only_message(await received(request, most + _PREFIX_BYTES))
            if flags & _PACKED:
                message = await unpacked(message, understood(headers.get("Connect-Content-Encoding", "")), most)
            return await translator.request_of(message, strict=False) if as_json else message

        async def framed(message: bytes) -> bytes:
            data = await translator.json_of(message) if as_json else message
            smaller = await packed(data) if packs else None
            return _enveloped(0, data) if smaller is None else _enveloped(_PACKED, smaller)

        response = StreamResponse(headers=told | {REQUEST_ID: context.request_id})
        if packs:
            response.headers["Connect-Content-Encoding"] = GZIP
        end: dict[str, Any] = {"metadata": {REQUEST_ID: [context.request_id]}}
        try:
            await stream(translator.route, context, receive, response, framed, at_once=True)
        except EndedError as error:
            end["error"] = connect_error(error.status)
        if not response.prepared:
            await response.prepare(request)
        await response.write(_enveloped(_END, orjson.dumps(end)))
        await response.write_eof()
        return response


def _content_type(request: BaseRequest) -> tuple[str, str]:
    """The type of the body, and its parameter."""
    kind, _, parameter = request.headers.get("Content-Type", "").partition(";")
    return kind.strip().lower(), parameter.strip().lower()


def _check_version(headers: Mapping[str, str]) -> None:
    found = headers.get(_VERSION, "1")
    if found != "1":
        text = f"the header {_VERSION} must be 1, found {found[:20]!r}"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text, {"header": _VERSION})


def _streams_in(translator: Translator) -> NodewiseError:
    name = translator.method.name
    instead = {"StreamPredict": "BatchPredict", "IngestProfile": "IngestBatch"}.get(name, "")
    text = f"{name} takes a stream of requests, which HTTP/1.1 has no room for; use gRPC" + (
        f", or {instead}" if instead else ""
    )
    return NodewiseError(Reason.NOT_IMPLEMENTED, text, {"method": name, "alternative": instead})


def _only_message(body: bytes) -> tuple[int, bytes]:
    """Flags and bytes of the one message of a stream of requests. Raises NodewiseError."""
    size = int.from_bytes(body[1:_PREFIX_BYTES], "big")
    if len(body) < _PREFIX_BYTES or len(body) != _PREFIX_BYTES + size or body[0] & ~_PACKED:
        text = "the body must be one message of a stream: a byte of flags, its length in four bytes, and the message"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text)
    return body[0], body[_PREFIX_BYTES:]


def _enveloped(flags: int, message: bytes) -> bytes:
    return bytes((flags,)) + len(message).to_bytes(4, "big") + message
