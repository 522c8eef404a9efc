"""One call over HTTP, whatever it is spoken in: received, let in, answered, and ended by its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Final, cast

import structlog
from aiohttp.web import StreamResponse

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.calls import Context
from nodewise.rpc.errors import internal_error
from nodewise.rpc.handlers import abort
from nodewise.rpc.http.context import EndedError, HttpContext
from nodewise.rpc.routes import MethodRoute

__all__ = ["reply", "stream"]

_log = structlog.get_logger("nodewise.rpc")

TIMEOUT: Final = "Connect-Timeout-Ms"
_DIGITS: Final = 10
"""Of the longest time that may be stated."""
_RECEIVED_WITHIN_S: Final = 60.0
"""For a body whose caller stated no time, nor the method has any."""

Receive = Callable[[], Awaitable[bytes]]


def _stated_timeout_s(text: str | None) -> float | None:
    """Seconds of a call, as its header states milliseconds; None = none are stated. Raises NodewiseError."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > _DIGITS:
        description = f"must be milliseconds, of up to {_DIGITS} digits, found {text[:20]!r}"
        raise NodewiseError(Reason.MALFORMED_MESSAGE, f"the header {TIMEOUT} {description}", {"header": TIMEOUT})
    return int(text) / 1e3


async def reply(route: MethodRoute, context: HttpContext, receive: Receive) -> bytes:
    """The answer of a method with one reply. Raises EndedError."""

    async def answered() -> bytes:
        asked, permit, principal = await _admit(route, context, receive)
        return cast("bytes", await route.answer(asked, context, permit, principal))

    return cast("bytes", await _ended(route, context, answered))


async def stream(
    route: MethodRoute,
    context: HttpContext,
    receive: Receive,
    response: StreamResponse,
    framed: Callable[[bytes], Awaitable[bytes]],
    *,
    at_once: bool,
) -> None:
    """Write the answers of a method with many into a response, which begins with the first. Raises EndedError.

    Parameters
    ----------
    framed : callable
        Makes of a reply what is written.
    at_once : bool
        Whether the response begins as soon as the call is let in, whenever the first answer comes.
    """

    async def written() -> None:
        asked, permit, principal = await _admit(route, context, receive)
        if at_once:
            await response.prepare(context.request)
        async with aclosing(route.answer(asked, context, permit, principal)) as messages:
            async for message in messages:
                if not response.prepared:
                    await response.prepare(context.request)
                await response.write(await framed(message))

    await _ended(route, context, written)


async def _admit(route: MethodRoute, context: HttpContext, receive: Receive) -> tuple[Any, Any, Any]:
    async def within() -> bytes:
        async with asyncio.timeout(route.method.default_deadline_s or _RECEIVED_WITHIN_S):
            return await receive()

    return await route.admit(within, cast("Context", context))


async def _ended(route: MethodRoute, context: HttpContext, work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
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
