"""One call over HTTP in any protocol: received, admitted, answered, written, and ended by its deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, aclosing
from typing import Any, Final, NoReturn, cast

import grpc
import structlog
from aiohttp.web import BaseRequest, Response, StreamResponse
from google.rpc import status_pb2

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import REQUEST_ID, Context, named_in
from nodewise.rpc.durations import observe_call
from nodewise.rpc.errors import internal_error
from nodewise.rpc.handlers import abort
from nodewise.rpc.http.bodies import GZIP, accepts_gzip, encode_body
from nodewise.rpc.http.failures import headers_of, http_code
from nodewise.rpc.routes import MethodRoute

__all__ = ["JSON", "Failure", "HttpContext", "Receive", "respond", "respond_many"]

_DETAILS: Final = "grpc-status-details-bin"
_AUTHORIZATION: Final = "authorization"


class EndedError(Exception):
    """A call was ended by a status.

    Attributes
    ----------
    status : Status
        Code, message and details.
    """

    def __init__(self, status: status_pb2.Status) -> None:
        super().__init__(status.message)
        self.status = status


class HttpContext:
    """Implements the part of ``grpc.aio.ServicerContext`` that the handlers use.

    Attributes
    ----------
    request_id : str
        As the caller stated it, or a new one.
    """

    __slots__ = ("_code", "_end_s", "_metadata", "_peer", "request", "request_id")

    def __init__(self, request: BaseRequest) -> None:
        self.request = request
        self._end_s: float | None = None
        self._code: grpc.StatusCode | None = None
        headers = request.headers
        request_id = headers.get(REQUEST_ID)
        usable = request_id is not None and request_id.isascii() and request_id.isprintable()
        self.request_id = named_in(((REQUEST_ID, request_id),) if usable and request_id is not None else ())
        self._metadata: tuple[tuple[str, str], ...] = ((REQUEST_ID, self.request_id),)
        if _AUTHORIZATION in headers:
            self._metadata += ((_AUTHORIZATION, headers[_AUTHORIZATION]),)
        # Read now: a closed connection no longer has its address, and audit entries of its calls need it.
        transport = request.transport
        self._peer = None if transport is None else transport.get_extra_info("peername")

    def ends_within(self, timeout_s: float | None) -> None:
        """Set the call's remaining time, as its caller stated it."""
        self._end_s = None if timeout_s is None else time.monotonic() + timeout_s

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        """Headers that handlers read."""
        return self._metadata

    def time_remaining(self) -> float | None:
        """Seconds left; None = the caller stated no time."""
        return None if self._end_s is None else max(0.0, self._end_s - time.monotonic())

    def peer(self) -> str:
        """The connection, as gRPC names it."""
        host, port = self._peer[:2] if self._peer else ("", 0)
        return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"

    def auth_context(self) -> Mapping[str, Iterable[bytes]]:
        """The names in the certificate of the connection, in gRPC's form."""
        transport = self.request.transport
        certificate = transport.get_extra_info("peercert") if transport is not None else None
        return {} if not certificate else _auth_context_of(certificate)

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Call it at once, since the connection limits replies over HTTP that are not read."""
        callback(self)

    def set_trailing_metadata(self, trailers: Iterable[tuple[str, str | bytes]]) -> None:
        """Ignore trailers: they have only the request id, which is in a header."""

    def code(self) -> grpc.StatusCode | None:
        """The code of the status that ended the call; None = no status ended it."""
        return self._code

    async def abort(
        self, code: grpc.StatusCode, details: str = "", trailing_metadata: Iterable[tuple[str, str | bytes]] = ()
    ) -> NoReturn:
        """End the call."""
        self._code = code
        raise EndedError(_status(code, details, trailing_metadata))


def _status(code: grpc.StatusCode, message: str, trailers: Iterable[tuple[str, str | bytes]]) -> status_pb2.Status:
    for name, value in trailers:
        if name == _DETAILS and isinstance(value, bytes):
            return status_pb2.Status.FromString(value)
    return status_pb2.Status(code=code.value[0], message=message)


def _auth_context_of(certificate: Mapping[str, Any]) -> dict[str, list[bytes]]:
    names = [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]
    others = [value for _, value in certificate.get("subjectAltName", ())]
    return {
        "x509_pem_cert": [b"as the connection's handshake showed it"],
        "x509_common_name": [each.encode() for each in names],
        "x509_subject_alternative_name": [each.encode() for each in others],
    }


_log = structlog.get_logger("nodewise.rpc")

JSON: Final = "application/json"
TIMEOUT: Final = "Connect-Timeout-Ms"
_DIGITS: Final = 10
"""Most digits of a stated time."""
_RECEIVED_WITHIN_S: Final = 60.0
"""Seconds to receive a body if neither the caller nor the method states a time."""

Receive = Callable[[], Awaitable[bytes]]
Write = Callable[[bytes], Awaitable[bytes]]
"""From a reply to the body to send."""
Failure = Callable[[status_pb2.Status], bytes]
"""From a status to the body to send."""


async def respond(
    route: MethodRoute, context: HttpContext, receive: Receive, write: Write, kind: str, failure: Failure
) -> Response:
    """The response of a method with one reply; compressed if the caller accepts that and it saves bytes."""

    async def answer_once() -> bytes:
        request, permit, principal = await _admit(route, context, receive)
        return cast("bytes", await route.answer(request, context, permit, principal))

    headers = {REQUEST_ID: context.request_id}
    try:
        with _observe(route, context):
            body = await write(await _within_its_time(route, context, answer_once))
    except EndedError as error:
        return _failure_response(error, context, failure)
    if (
        accepts_gzip(context.request.headers.get("Accept-Encoding", ""))
        and (smaller := await encode_body(body)) is not None
    ):
        body = smaller
        headers |= {"Content-Encoding": GZIP, "Vary": "Accept-Encoding"}
    return Response(body=body, content_type=kind, headers=headers)


async def respond_many(
    route: MethodRoute,
    context: HttpContext,
    receive: Receive,
    write: Write,
    headers: dict[str, str],
    last: Callable[[status_pb2.Status | None], bytes],
    failure: Failure | None = None,
) -> StreamResponse:
    """The response of a method with many replies.

    Parameters
    ----------
    last : callable
        Makes of the status of a call that failed, None = it did not, the end of the stream.
    failure : callable or None
        Tells of a call that failed before its first reply, with which the stream begins; None = the stream begins as
        soon as the call is let in.
    """
    response = StreamResponse(headers=headers | {REQUEST_ID: context.request_id})

    async def answer_all() -> None:
        request, permit, principal = await _admit(route, context, receive)
        if failure is None:
            await response.prepare(context.request)
        async with aclosing(route.answer(request, context, permit, principal)) as messages:
            async for message in messages:
                if not response.prepared:
                    await response.prepare(context.request)
                await response.write(await write(message))

    status = None
    try:
        with _observe(route, context):
            await _within_its_time(route, context, answer_all)
    except EndedError as error:
        if failure is not None and not response.prepared:
            return _failure_response(error, context, failure)
        status = error.status
    if not response.prepared:
        await response.prepare(context.request)
    await response.write(last(status))
    await response.write_eof()
    return response


def _observe(route: MethodRoute, context: HttpContext) -> AbstractContextManager[None]:
    return observe_call(route.method.admission.observe, route.path, "http", context)


def _failure_response(error: EndedError, context: HttpContext, failure: Failure) -> Response:
    headers = {REQUEST_ID: context.request_id} | headers_of(error.status)
    return Response(status=http_code(error.status), body=failure(error.status), content_type=JSON, headers=headers)


async def _admit(route: MethodRoute, context: HttpContext, receive: Receive) -> tuple[Any, Any, Any]:
    async def within() -> bytes:
        async with asyncio.timeout(route.method.default_deadline_s or _RECEIVED_WITHIN_S):
            return await receive()

    return await route.admit(within, cast("Context", context))


def _stated_timeout_s(text: str | None) -> float | None:
    """Seconds of a call, from its header in milliseconds; None = not stated. Raises NodewiseError."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        description = f"must be milliseconds, of up to {_DIGITS} digits, found {text[:20]!r}"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the header {TIMEOUT} {description}", {"header": TIMEOUT})
    return int(text) / 1e3


async def _within_its_time(
    route: MethodRoute, context: HttpContext, work: Callable[[], Coroutine[Any, Any, Any]]
) -> Any:
    """The result of a call's work within the time that its caller states. Raises EndedError."""
    try:
        context.ends_within(_stated_timeout_s(context.request.headers.get(TIMEOUT)))
        async with asyncio.timeout(context.time_remaining()):
            result = await work()
        if context.time_remaining() == 0.0:  # work that never yielded the event loop took too long
            raise TimeoutError
        return result
    except NodewiseError as error:
        failure = error
    except TimeoutError:
        failure = NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready")
    except (EndedError, ConnectionError):  # the status is known, or the caller has gone
        raise
    except Exception as error:  # noqa: BLE001  # the boundary maps every exception
        _log.error("call_failed", method=route.path, request_id=context.request_id, exc_info=error)
        failure = internal_error()
    return await abort(cast("Context", context), route.path, context.request_id, failure, route.method.admission)
