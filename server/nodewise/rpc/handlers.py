"""One wrapper per method: request id, deadline, decoding, errors, log, size of the reply.

The layers are composed when methods are registered, not per call: each layer of interceptors would cost microseconds on
every call.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, aclosing
from typing import Any, Final, NoReturn, cast

import grpc
import structlog
from google.protobuf.message import Message
from google.rpc import status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason
from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.begun import Begun
from nodewise.rpc.calls import REQUEST_ID, Call, Context, Method, caller_of, remaining_s, request_id
from nodewise.rpc.caps import too_large
from nodewise.rpc.errors import grpc_code, internal_error, retry_after_s, status_of
from nodewise.rpc.gate import Gate, pushback
from nodewise.rpc.intake import Large
from nodewise.rpc.lanes import Lane, Turn
from nodewise.rpc.overload import OverloadedError

__all__ = ["UNDECODABLE", "abort", "stream_handler", "unary_handler", "waited_turn"]

_log = structlog.get_logger("nodewise.rpc")


class _Undecodable:
    """What the deserialiser returns instead of raising: gRPC would answer UNKNOWN, and no handler would learn of it."""


UNDECODABLE: Final = _Undecodable()
"""Bytes that are no message of the method."""


def _deadline(context: Context, default_s: float | None) -> tuple[float | None, bool]:
    """When the call's time is over (monotonic seconds), and whether it is us who must watch it.

    gRPC ends calls whose caller stated a deadline; nobody watches the default of those that stated none.
    """
    remaining: float | None = cast("float | None", context.time_remaining())  # the stub forgets calls without deadline
    if remaining is not None:
        return time.monotonic() + remaining, False
    return (None, False) if default_s is None else (time.monotonic() + default_s, True)


async def waited_turn(path: str, method: Method, lane: Lane, context: Context, principal: Principal) -> Turn:
    """A turn in the method's lane. Ends the call if there will be none in time."""
    try:
        return await lane.turn(caller_of(context, principal), remaining_s(context), method.expected.usual.loop_s)
    except OverloadedError as error:
        await method.gate.refuse(context, path, request_id(context), error)


def unary_handler(path: str, method: Method) -> Callable[..., Awaitable[bytes]]:
    """The wrapper of a method with one reply: ``(request, context, turn it has already, who calls, request id)``."""
    behaviour, limit, default_s = method.behaviour, method.reply_bytes, method.default_deadline_s
    lane = method.lane

    async def handle(
        request: Any, context: Context, turn: Turn | None = None, principal: Principal = ANYONE, named: str = ""
    ) -> bytes:
        if turn is None and lane is not None:
            turn = await waited_turn(path, method, lane, context, principal) if lane.pressed else lane.taken()
        if request.__class__ is bytes:  # the reply: it was known
            if turn is not None:
                turn.over()
            context.set_trailing_metadata(((REQUEST_ID, named or request_id(context)),))
            return request
        deadline_s, ours = _deadline(context, default_s)
        call = Call(
            named or request_id(context),
            deadline_s,
            context,
            turn,
            method.gate,
            principal=principal,
            guard=method.guard,
        )
        watched: asyncio.Timeout | None = None
        try:
            if request is UNDECODABLE:
                raise _malformed(path)
            if request.__class__ is Large:
                answering = _large(request, path, method, call)
            else:
                call.was_read(request, method.expected)
                answering = behaviour(request, call)
            begun = Begun(answering)
            answer: Any = begun.answer
            if not begun.ended:  # most have: what watches the time costs more than the rest of this wrapper
                watched = asyncio.timeout(default_s if ours else None)
                async with watched:
                    answer = await begun
            reply = _serialised(answer)
            if len(reply) > limit:
                raise too_large(len(reply), limit)
        except NodewiseError as error:
            await abort(context, path, call.request_id, error, method.gate)
        except OverloadedError as error:
            await method.gate.refuse(context, path, call.request_id, error)
        except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
            late = watched is not None and watched.expired()
            await abort(context, path, call.request_id, _fault(path, call, error, late=late), method.gate)
        finally:
            call.step_aside()
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        return reply

    return handle


async def _large(request: Large, path: str, method: Method, call: Call) -> Message | bytes:
    """Answer a message that is looked at before it is decoded."""
    with method.intake.holding(request):
        read = await method.intake.read(request)
        request.data = b""
        if read is None:
            raise _malformed(path)
        call.was_read(read, method.expected)
        answer: Message | bytes = await method.behaviour(read, call)
        return answer


def stream_handler(path: str, method: Method) -> Callable[..., AsyncGenerator[bytes, None]]:
    """The wrapper of a method with many replies: ``(request or requests, context, turn it has already, who calls)``."""
    behaviour, limit, default_s = method.behaviour, method.reply_bytes, method.default_deadline_s
    lane = method.lane

    async def handle(
        request: Any, context: Context, turn: Turn | None = None, principal: Principal = ANYONE
    ) -> AsyncGenerator[bytes, None]:
        if turn is None and lane is not None and not method.streams_in:
            turn = await waited_turn(path, method, lane, context, principal) if lane.pressed else lane.taken()
        deadline_s, _ = _deadline(context, default_s)
        patient, guard = method.streams_in, method.guard
        call = Call(request_id(context), deadline_s, context, turn, method.gate, patient, principal, guard)
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        try:
            if request is UNDECODABLE:
                raise _malformed(path)
            with ExitStack() as held:
                held.enter_context(method.holding(call))
                if method.streams_in:
                    source = _decoded(request, path, method, call)
                elif request.__class__ is Large:
                    held.enter_context(method.intake.holding(request))
                    source = await method.intake.read(request)
                    request.data = b""
                    if source is None:
                        raise _malformed(path)
                else:
                    source = request
                call.was_read(source, method.expected)
                async with aclosing(behaviour(source, call)) as messages:
                    async for message in messages:
                        reply = _serialised(message)
                        if len(reply) > limit:
                            raise too_large(len(reply), limit)
                        call.step_aside()  # nobody waits for how fast this caller reads
                        yield reply
        except NodewiseError as error:
            await abort(context, path, call.request_id, error, method.gate)
        except OverloadedError as error:
            await method.gate.refuse(context, path, call.request_id, error)
        except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
            await abort(context, path, call.request_id, _fault(path, call, error), method.gate)
        finally:
            call.step_aside()

    return handle


def _serialised(reply: Message | bytes) -> bytes:
    """A reply as bytes; a behaviour may have them at hand."""
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


async def _decoded(requests: AsyncIterator[Any], path: str, method: Method, call: Call) -> AsyncIterator[Any]:
    """The messages of a stream, each in its turn: who is not read waits, and is not refused."""
    lane, intake = method.lane, method.intake
    async for request in requests:
        if request is UNDECODABLE:
            raise _malformed(path)
        if lane is not None and lane.pressed:
            # What is computed in the loop runs from here to its end; the turn is not held for what waits then.
            cost_s = method.expected.of(request).loop_s if isinstance(request, Message) else None
            (await lane.turn(call.caller, cost_s=cost_s, patient=True)).over()
        if request.__class__ is not Large:
            if request.__class__ is not bytes:
                call.was_read(request, method.expected)
            yield request
            continue
        with intake.holding(request):
            read = await intake.read(request)
            request.data = b""
            if read is None:
                raise _malformed(path)
            call.was_read(read, method.expected)
            yield read


def _malformed(path: str) -> NodewiseError:
    return NodewiseError(Reason.MALFORMED_MESSAGE, f"the bytes are no request of {path}", {"method": path})


def _fault(path: str, call: Call, error: BaseException, *, late: bool = False) -> NodewiseError:
    """``late``: a timer of ours ended the call; it may fire a clock's tick before ``call`` finds its time over."""
    if isinstance(error, TimeoutError) and (late or call.remaining_s() <= 0):
        return NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready")
    _log.error("call_failed", method=path, request_id=call.request_id, exc_info=error)
    return internal_error()


async def abort(
    context: Context, path: str, request_id: str, error: NodewiseError, gate: Gate | None = None
) -> NoReturn:
    """End a call by its error, which is logged, and told at the gate."""
    if gate is not None and gate.turned_away is not None:
        gate.turned_away(path, context, request_id, error)
    try:
        status = status_of(error)
    except (TypeError, ValueError) as fault:  # an error that is none of ours in the end, such as a plugin's
        _log.error("call_failed", method=path, request_id=request_id, exc_info=fault)
        error = internal_error()
        status = status_of(error)
    level = _log.warning if error.kind in (Kind.INTERNAL, Kind.UNAVAILABLE) else _log.info
    level("call_refused", method=path, request_id=request_id, reason=str(error.reason), message=error.message)
    await context.abort_with_status(_Status(status, request_id, error))
    raise AssertionError("abort always raises")


class _Status(grpc.Status):
    """A status with its details and the request id as trailing metadata; for gRPC also when to come back."""

    def __init__(self, status: status_pb2.Status, request_id: str, error: NodewiseError) -> None:
        self.code = grpc_code(status)
        self.details = status.message
        self.trailing_metadata: tuple[tuple[str, str | bytes], ...] = (
            ("grpc-status-details-bin", status.SerializeToString()),
            (REQUEST_ID, request_id),
        )
        delay_s = retry_after_s(error) if error.reason == Reason.OVERLOADED else None
        if delay_s is not None:
            self.trailing_metadata += (pushback(delay_s),)
