"""One call over HTTP, whatever it is spoken in: received, let in, answered, written, and ended by its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, cast

import structlog
from aiohttp.web import Response, StreamResponse
from google.rpc import status_pb2

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import REQUEST_ID, Context
from nodewise.rpc.errors import internal_error
from nodewise.rpc.handlers import abort
from nodewise.rpc.http.bodies import GZIP, accepts_gzip, packed
from nodewise.rpc.http.context import EndedError, HttpContext
from nodewise.rpc.http.failures import headers_of, http_code
from nodewise.rpc.routes import MethodRoute

__all__ = ["JSON", "Failure", "Receive", "respond", "respond_many"]

_log = structlog.get_logger("nodewise.rpc")

JSON: Final = "application/json"
TIMEOUT: Final = "Connect-Timeout-Ms"
_DIGITS: Final = 10
"""Of the longest time that may be stated."""
_RECEIVED_WITHIN_S: Final = 60.0
"""For a body whose caller stated no time, nor the method has any."""

Receive = Callable[[], Awaitable[bytes]]
Written = Callable[[bytes], Awaitable[bytes]]
"""Makes of a reply what is sent."""
Failure = Callable[[status_pb2.Status], bytes]
"""Makes of a status the body that tells it."""


async def respond(
    route: MethodRoute, context: HttpContext, receive: Receive, written: Written, kind: str, failure: Failure
) -> Response:
    """The response of a method with one reply, of a type of content, packed where that is asked and worth it."""

    async def answered() -> bytes:
        asked, permit, principal = await _admit(route, context, receive)
        return cast("bytes", await route.answer(asked, context, permit, principal))

    told = {REQUEST_ID: context.request_id}
    try:
        body = await written(await _within_its_time(route, context, answered))
    except EndedError as error:
        return _failed(error, context, failure)
    if accepts_gzip(context.request.headers.get("Accept-Encoding", "")) and (smaller := await packed(body)) is not None:
        body = smaller
        told |= {"Content-Encoding": GZIP, "Vary": "Accept-Encoding"}
    return Response(body=body, content_type=kind, headers=told)


async def respond_many(
    route: MethodRoute,
    context: HttpContext,
    receive: Receive,
    written: Written,
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

    async def answered() -> None:
        asked, permit, principal = await _admit(route, context, receive)
        if failure is None:
            await response.prepare(context.request)
        async with aclosing(route.answer(asked, context, permit, principal)) as messages:
            async for message in messages:
                if not response.prepared:
                    await response.prepare(context.request)
                await response.write(await written(message))

    status = None
    try:
        await _within_its_time(route, context, answered)
    except EndedError as error:
        if failure is not None and not response.prepared:
            return _failed(error, context, failure)
        status = error.status
    if not response.prepared:
        await response.prepare(context.request)
    await response.write(last(status))
    await response.write_eof()
    return response


def _failed(error: EndedError, context: HttpContext, failure: Failure) -> Response:
    headers = {REQUEST_ID: context.request_id} | headers_of(error.status)
    return Response(status=http_code(error.status), body=failure(error.status), content_type=JSON, headers=headers)


async def _admit(route: MethodRoute, context: HttpContext, receive: Receive) -> tuple[Any, Any, Any]:
    async def within() -> bytes:
        async with asyncio.timeout(route.method.default_deadline_s or _RECEIVED_WITHIN_S):
            return await receive()

    return await route.admit(within, cast("Context", context))


def _stated_timeout_s(text: str | None) -> float | None:
    """Seconds of a call, as its header states milliseconds; None = none are stated. Raises NodewiseError."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        description = f"must be milliseconds, of up to {_DIGITS} digits, found {text[:20]!r}"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the header {TIMEOUT} {description}", {"header": TIMEOUT})
    return int(text) / 1e3


async def _within_its_time(
    route: MethodRoute, context: HttpContext, work: Callable[[], Coroutine[Any, Any, Any]]
) -> Any:
    """What comes of a call's work within the time that its caller states. Raises EndedError."""
    try:
        context.ends_within(_stated_timeout_s(context.request.headers.get(TIMEOUT)))
        async with asyncio.timeout(context.time_remaining()):
            found = await work()
        if context.time_remaining() == 0.0:  # work that never gave way to the loop outlived its time unseen
            raise TimeoutError
        return found
    except NodewiseError as error:
        failure = error
    except TimeoutError:
        failure = NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready")
    except (EndedError, ConnectionError):  # it is told, or nobody is left to tell
        raise
    except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
        _log.error("call_failed", method=route.path, request_id=context.request_id, exc_info=error)
        failure = internal_error()
    return await abort(cast("Context", context), route.path, context.request_id, failure, route.method.admission)
