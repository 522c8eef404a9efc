"""One wrapper per method: request id, deadline, decoding, errors, log, size of the reply.

Layers are composed when methods are registered, since interceptors would cost every call microseconds for each layer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from typing import Any, Final, NoReturn, cast

import structlog
from google.protobuf.message import Message
from google.rpc import status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason
from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.admission import AdmissionQueue, OverloadedError, Permit
from nodewise.rpc.calls import (
    REQUEST_ID,
    Call,
    Context,
    Method,
    caller_of,
    metadata_of,
    named_in,
    remaining_s,
    request_id,
)
from nodewise.rpc.caps import too_large
from nodewise.rpc.classes import STINT_S, Admission
from nodewise.rpc.errors import grpc_code, internal_error, retry_after_s, status_of
from nodewise.rpc.guarding import KnownReply, with_guard
from nodewise.rpc.intake import LARGE_BYTES, Large
from nodewise.rpc.refusals import pushback

__all__ = ["UNDECODABLE", "abort", "acquire", "admit_caller", "stream_handler", "unary_handler"]

_log = structlog.get_logger("nodewise.rpc")


class _Undecodable:
    """What the deserialiser returns instead of raising: gRPC would answer UNKNOWN, and no handler would learn of it."""


UNDECODABLE: Final = _Undecodable()
"""Bytes that are no message of the method."""
_UNREAD: Final = (Large, _Undecodable)


def _deadline(context: Context, default_s: float | None) -> tuple[float | None, bool]:
    """When the call's time is over (monotonic seconds), and whether the server must end the call.

    gRPC ends calls whose caller stated a deadline; the server ends others after the default time.
    """
    remaining: float | None = cast("float | None", context.time_remaining())  # the stub forgets calls without deadline
    if remaining is not None:
        return time.monotonic() + remaining, False
    return (None, False) if default_s is None else (time.monotonic() + default_s, True)


async def admit_caller(path: str, method: Method, context: Context) -> Principal:
    """The caller, if it may call the method. Otherwise ends the call."""
    if method.guard is None:
        return ANYONE
    try:
        return await method.guard.admit(context)
    except NodewiseError as error:
        await abort(context, path, request_id(context), error, method.admission)


async def acquire(path: str, method: Method, queue: AdmissionQueue, context: Context, principal: Principal) -> Permit:
    """A permit of the method's queue. Ends the call as OVERLOADED if it would wait too long."""
    try:
        return await queue.acquire(caller_of(context, principal), remaining_s(context))
    except OverloadedError as error:
        await method.admission.refusals.refuse(context, path, request_id(context), error)


def unary_handler(path: str, method: Method) -> Callable[..., Awaitable[bytes]]:
    """The wrapper of a method with one reply: ``(request, context, permit, principal)``."""
    limit, default_s = method.reply_bytes, method.default_deadline_s
    queue, admission, guard = method.queue, method.admission, method.guard

    async def handle(
        request: Any, context: Context, permit: Permit | None = None, principal: Principal | None = None
    ) -> bytes:
        metadata = metadata_of(context)
        named = named_in(metadata)
        if principal is None:
            known = ANYONE if guard is None else guard.known_principal(metadata)
            principal = known or await admit_caller(path, method, context)
        if guard is not None and request.__class__ is KnownReply:
            request = request.for_caller(method, guard, principal)
        # Bytes are a cached reply.
        reply = request if request.__class__ is bytes else await answer(request, context, permit, principal, named)
        if permit is not None:
            permit.release()
        refusal = None if len(reply) <= LARGE_BYTES else _hold_until_read(method, len(reply), context)
        if refusal is not None:
            request = reply = b""  # else frames of the exception would keep it until garbage collection
            await abort(context, path, named, refusal, admission)
        context.set_trailing_metadata(((REQUEST_ID, named),))
        return reply

    async def answer(request: Any, context: Context, permit: Permit | None, principal: Principal, named: str) -> bytes:
        if permit is None and queue is not None and queue.free <= 0:
            permit = await acquire(path, method, queue, context, principal)
        deadline_s, ours = _deadline(context, default_s)
        call = Call(named, deadline_s, context, permit, admission, principal=principal, guard=guard)
        began_s = time.monotonic()
        try:
            answered = _begin(request, path, method, call)
            waits = answered.__class__ is not bytes
            if (waits or time.monotonic() - began_s > STINT_S) and permit is None and queue is not None:
                call.permit = queue.take()  # a short call that does not wait needs none: no other call runs meanwhile
            if waits:
                answered = await _wait(answered, default_s if ours else None)
            if call.permit is not None and time.monotonic() - began_s > STINT_S:
                await admission.accept_arrivals()
            return _serialise(answered, limit)
        except Exception as error:  # noqa: BLE001  # the boundary maps every exception
            await _end(path, call, context, admission, error)
        finally:
            call.step_aside()

    return handle


def _hold_until_read(method: Method, size: int, context: Any) -> NodewiseError | None:
    """Count a large reply until its caller has read it, since gRPC keeps it until then; returns an error or None."""
    unread = method.unread
    if unread is not None:
        try:
            unread.hold(size)
        except NodewiseError as error:
            return error.with_traceback(None)
        context.add_done_callback(lambda _: unread.release(size))
    return None


def _begin(request: Any, path: str, method: Method, call: Call) -> Any:
    """The reply as bytes, or an awaitable of a reply."""
    if request.__class__ in _UNREAD:
        return _large(request, path, method, call)
    call.check(request)
    return method.behaviour(request, call)


async def _large(request: Any, path: str, method: Method, call: Call) -> Message | bytes:
    """Answer a message that is checked before it is decoded, or that could not be decoded."""
    if request is UNDECODABLE:
        raise _malformed_error(path)
    with method.intake.holding(request):
        read = await _read(path, method, request)
        call.check(read)
        answered = method.behaviour(read, call)
        answer: Message | bytes = answered if answered.__class__ is bytes else await answered
        return answer


def stream_handler(path: str, method: Method) -> Callable[..., AsyncGenerator[bytes, None]]:
    """The wrapper of a method with many replies: ``(request or requests, context, permit, principal)``."""
    limit, default_s, guard = method.reply_bytes, method.default_deadline_s, method.guard
    queue, admission = method.queue, method.admission
    behaviour: Callable[..., Any] = method.behaviour if guard is None else with_guard(method, guard)

    async def handle(
        request: Any, context: Context, permit: Permit | None = None, principal: Principal | None = None
    ) -> AsyncGenerator[bytes, None]:
        if principal is None:
            principal = await admit_caller(path, method, context)
        if permit is None and queue is not None and not method.streams_in:
            permit = queue.take() if queue.free > 0 else await acquire(path, method, queue, context, principal)
        deadline_s, _ = _deadline(context, default_s)
        call = Call(request_id(context), deadline_s, context, permit, admission, method.streams_in, principal, guard)
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        try:
            if request is UNDECODABLE:
                raise _malformed_error(path)
            with ExitStack() as held:
                held.enter_context(method.holding(call))
                if method.streams_in:
                    source = _decode(request, path, method, call)
                elif request.__class__ is Large:
                    held.enter_context(method.intake.holding(request))
                    source = await _read(path, method, request)
                else:
                    source = request
                async with aclosing(behaviour(source, call)) as messages:
                    async for message in messages:
                        reply = _serialise(message, limit)
                        call.step_aside()  # no other call waits while this caller reads
                        yield reply
        except Exception as error:  # noqa: BLE001  # the boundary maps every exception
            await _end(path, call, context, admission, error)
        finally:
            call.step_aside()

    return handle


def _serialise(answer: Message | bytes, limit: int) -> bytes:
    """A reply as bytes, at most ``limit`` of them; a behaviour may return bytes."""
    reply = answer if isinstance(answer, bytes) else answer.SerializeToString()
    if len(reply) > limit:
        raise too_large(len(reply), limit)
    return reply


async def _decode(requests: AsyncIterator[Any], path: str, method: Method, call: Call) -> AsyncIterator[Any]:
    """The messages of a stream, which wait in the queue like calls but are never refused."""
    queue = method.queue
    async for request in requests:
        if request is UNDECODABLE:
            raise _malformed_error(path)
        if queue is not None and queue.free <= 0:
            # The stream computes in the event loop until its next wait, and needs no permit while it waits.
            (await queue.acquire(call.caller, never_refuse=True)).release()
        if request.__class__ is not Large:
            yield request
            continue
        with method.intake.holding(request):
            yield await _read(path, method, request)


async def _read(path: str, method: Method, large: Large) -> Any:
    """Decode a message and release its bytes. Raises NodewiseError."""
    read = await method.intake.read(large)
    large.data = b""
    if read is None:
        raise _malformed_error(path)
    return read


def _malformed_error(path: str) -> NodewiseError:
    return NodewiseError(Reason.MALFORMED_MESSAGE, f"the message is not a valid request of {path}", {"method": path})


async def _wait(answered: Awaitable[Any], limit_s: float | None) -> Any:
    """The awaited reply. Raises NodewiseError DEADLINE_EXCEEDED after ``limit_s`` seconds; None = never."""
    watch = asyncio.timeout(limit_s)
    try:
        async with watch:
            return await answered
    except TimeoutError:
        if watch.expired():  # perhaps one tick of the clock before the call is out of time
            raise _late_error() from None
        raise


def _late_error() -> NodewiseError:
    return NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready")


async def _end(path: str, call: Call, context: Context, admission: Admission, error: Exception) -> NoReturn:
    """End a call with the error that it raised."""
    if isinstance(error, OverloadedError):
        await admission.refusals.refuse(context, path, call.request_id, error)
    if isinstance(error, TimeoutError) and call.remaining_s() <= 0:
        error = _late_error()
    elif not isinstance(error, NodewiseError):
        _log.error("call_failed", method=path, request_id=call.request_id, exc_info=error)
        error = internal_error()
    await abort(context, path, call.request_id, error, admission)


async def abort(
    context: Context, path: str, request_id: str, error: NodewiseError, admission: Admission | None = None
) -> NoReturn:
    """End a call by its error, which is logged and reported."""
    if admission is not None and admission.on_error is not None:
        admission.on_error(path, context, request_id, error)
    try:
        status = status_of(error)
    except (TypeError, ValueError) as fault:  # the error has invalid parts, such as one that a plugin raised
        _log.error("call_failed", method=path, request_id=request_id, exc_info=fault)
        error = internal_error()
        status = status_of(error)
    level = _log.warning if error.kind in (Kind.INTERNAL, Kind.UNAVAILABLE) else _log.info
    level("call_refused", method=path, request_id=request_id, reason=str(error.reason), message=error.message)
    await context.abort(grpc_code(status), status.message, _trailers(status, request_id, error))
    raise AssertionError("abort always raises")


def _trailers(status: status_pb2.Status, request_id: str, error: NodewiseError) -> tuple[tuple[str, str | bytes], ...]:
    """A status with its details and the request id as trailing metadata; for gRPC also how to retry."""
    trailers = (("grpc-status-details-bin", status.SerializeToString()), (REQUEST_ID, request_id))
    delay_s = retry_after_s(error)
    if error.reason == Reason.OVERLOADED or (error.kind is Kind.UNAVAILABLE and delay_s is None):
        return (*trailers, pushback(delay_s))
    return trailers
