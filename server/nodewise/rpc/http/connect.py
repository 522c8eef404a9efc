"""The Connect protocol over HTTP/1.1: calls with one reply, and streams of replies; JSON and binary; gzip.

https://connectrpc.com/docs/protocol. Streams of requests need HTTP/2 where both sides talk at once, and are not here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson
from aiohttp.web import BaseRequest, Response, StreamResponse
from google.rpc import status_pb2

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import REQUEST_ID
from nodewise.rpc.http.answering import JSON, HttpContext, respond, respond_many
from nodewise.rpc.http.bodies import GZIP, accepts_gzip, decode_body, encode_body, read_body
from nodewise.rpc.http.failures import connect_error
from nodewise.rpc.http.translating import Translator

__all__ = ["Connect"]

_VERSION: Final = "Connect-Protocol-Version"
_UNARY: Final[Mapping[str, bool]] = MappingProxyType({JSON: True, "application/proto": False})
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
        """Answer a call; every response has the headers ``always``."""
        if request.method != "POST":
            return Response(status=405, headers={"Allow": "POST"})
        translator = self._translators[path]
        method = translator.method
        streams = method.client_streaming or method.server_streaming
        kinds = _STREAM if streams else _UNARY
        kind, charset = _content_type(request)
        if kind not in kinds or charset not in _CHARSETS:
            return Response(status=415, headers={"Accept-Post": ", ".join(kinds)})
        headers, as_json, most = request.headers, kinds[kind], translator.most_bytes
        packs = accepts_gzip(headers.get("Connect-Accept-Encoding", ""))

        async def receive() -> bytes:
            _check_version(headers)
            if method.client_streaming:
                raise _streams_in(method.name)
            body = await read_body(request, most + (_PREFIX_BYTES if streams else 0))
            encoding = headers.get("Content-Encoding", "")
            if streams:
                flags, body = _only_message(body)
                encoding = headers.get("Connect-Content-Encoding", "") if flags & _PACKED else ""
            body = await decode_body(body, encoding, most)
            return await translator.request_of(body, strict=False) if as_json else body

        async def write(message: bytes) -> bytes:
            return await translator.json_of(message) if as_json else message

        async def write_envelope(message: bytes) -> bytes:
            data = await write(message)
            smaller = await encode_body(data) if packs else None
            return _envelope(0, data) if smaller is None else _envelope(_PACKED, smaller)

        def last(status: status_pb2.Status | None) -> bytes:
            end: dict[str, Any] = {"metadata": {REQUEST_ID: [context.request_id]}}
            if status is not None:
                end["error"] = connect_error(status)
            return _envelope(_END, orjson.dumps(end))

        context = HttpContext(request)
        if not streams:
            return await respond(translator.route, context, receive, write, kind, _failure)
        headers_of_reply = {**always, "Content-Type": kind} | ({"Connect-Content-Encoding": GZIP} if packs else {})
        return await respond_many(translator.route, context, receive, write_envelope, headers_of_reply, last)


def _failure(status: status_pb2.Status) -> bytes:
    return orjson.dumps(connect_error(status))


def _content_type(request: BaseRequest) -> tuple[str, str]:
    """The type of the body, and its parameter."""
    kind, _, parameter = request.headers.get("Content-Type", "").partition(";")
    return kind.strip().lower(), parameter.strip().lower()


def _check_version(headers: Mapping[str, str]) -> None:
    version = headers.get(_VERSION, "1")
    if version != "1":
        text = f"the header {_VERSION} must be 1, found {version[:20]!r}"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, text, {"header": _VERSION})


def _streams_in(name: str) -> NodewiseError:
    instead = {"StreamPredict": "BatchPredict", "IngestProfile": "IngestBatch"}.get(name, "")
    text = f"{name} takes a stream of requests, which HTTP/1.1 does not support; use gRPC" + (
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


def _envelope(flags: int, message: bytes) -> bytes:
    return bytes((flags,)) + len(message).to_bytes(4, "big") + message
