"""One wrapper per method: request id, deadline, decoding, errors, log, size of the reply.

The layers are composed when methods are registered, not per call: each layer of interceptors would cost microseconds on
every call. A behaviour is transport-free apart from :class:`Call`, which carries what a handler may need to know.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn, cast

import grpc
import structlog
from google.protobuf.message import Message
from google.rpc import status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason
from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.access import Guard
from nodewise.rpc.caps import too_large
from nodewise.rpc.costs import UNKNOWN, Cost, Expected
from nodewise.rpc.errors import grpc_code, internal_error, retry_after_s, status_of
from nodewise.rpc.gate import Gate, pushback
from nodewise.rpc.intake import Intake, Large
from nodewise.rpc.lanes import Lane, Turn
from nodewise.rpc.overload import OverloadedError

__all__ = [
    "REQUEST_ID",
    "UNDECODABLE",
    "Call",
    "Context",
    "Method",
    "abort",
    "caller_of",
    "computed_in",
    "metadata_of",
    "named_in",
    "remaining_s",
    "request_id",
    "run_in",
    "stream_handler",
    "unary_handler",
    "waited_turn",
]

_log = structlog.get_logger("nodewise.rpc")

REQUEST_ID: Final = "x-request-id"
"""Of a call, in its metadata and in its trailers."""
_LONGEST_REQUEST_ID: Final = 128

Context = grpc.aio.ServicerContext[Any, Any]
Metadata = Iterable[tuple[str, str | bytes]]


class _Undecodable:
    """What the deserialiser returns instead of raising: gRPC would answer UNKNOWN, and no handler would learn of it."""


UNDECODABLE: Final = _Undecodable()
"""Bytes that are no message of the method."""


@dataclass(slots=True)
class Call:
    """What a behaviour may know of its call.

    Attributes
    ----------
    context : object
        Of gRPC; None = there is none.
    turn : Turn or None
        Its turn in the event loop.
    gate : Gate or None
        Turns of what computes elsewhere; None = at once.
    patient : bool
        Whether it waits for these however long it takes: the next message of a stream is not read meanwhile.
    principal : Principal
        Who calls, and what he may.
    guard : Guard or None
        Knows which profiles a message names; None = everybody may do everything.
    costing : callable or None
        Says what its request, or the last one of a stream, should cost; asked where calls wait.
    """

    request_id: str
    deadline_monotonic_s: float | None
    context: Context | None = None
    turn: Turn | None = None
    gate: Gate | None = None
    patient: bool = False
    principal: Principal = ANYONE
    guard: Guard | None = None
    costing: Callable[[], Cost] | None = None

    @property
    def cost(self) -> Cost:
        """What its request should cost."""
        return UNKNOWN if self.costing is None else self.costing()

    def was_read(self, request: Any, expected: Expected) -> None:
        """Its request is there, or its stream's; who waited for a turn is charged what it should cost."""
        self.costing = partial(expected.of, request)
        if self.turn is not None and self.turn.waited:
            self.turn.expect(self.costing().loop_s)

    def check(self, message: Message) -> None:
        """Refuse a message that names a profile which is not the caller's. Raises NodewiseError PERMISSION_DENIED."""
        if self.guard is not None:
            self.guard.check(self.principal, message)

    @property
    def caller(self) -> str:
        """Who shares turns alike."""
        return "" if self.context is None else caller_of(self.context, self.principal)

    def step_aside(self) -> None:
        """Let the next call have the turn: this one waits for something, or computes elsewhere."""
        if self.turn is not None:
            self.turn.over()
            self.turn = None

    def remaining_s(self) -> float:
        """Seconds until the deadline; infinite without one."""
        if self.deadline_monotonic_s is None:
            return float("inf")
        return self.deadline_monotonic_s - time.monotonic()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method as registered.

    Attributes
    ----------
    behaviour : callable
        unary-unary: ``async (request, call) -> reply``; unary-stream: ``(request, call) -> async iterator``;
        stream-stream: ``(async iterator of requests, call) -> async iterator``.
    request : type
        Message class of the request.
    intake : Intake
        Takes the request where it is large.
    gate : Gate
        Of the server.
    guard : Guard or None
        Lets callers in; None = everybody.
    expected : Expected
        What its calls cost.
    lane : Lane or None
        Where its calls, or a stream's messages, wait for their turn; None = they need none.
    streams_in, streams_out : bool
        Cardinality.
    default_deadline_s : float or None
        Applied when the caller states none; None = may run for ever.
    reply_bytes : int
        Largest reply.
    known : callable or None
        From the bytes of a small request to the reply, where that is known already. For methods with one reply, whose
        behaviour is not asked then, or with one to each request, whose behaviour is handed the reply in its stead.
    """

    behaviour: Callable[..., Any]
    request: type[Message]
    intake: Intake
    gate: Gate
    expected: Expected
    guard: Guard | None = None
    lane: Lane | None = None
    streams_in: bool = False
    streams_out: bool = False
    default_deadline_s: float | None = 60.0
    reply_bytes: int = 4 * 1024 * 1024
    known: Callable[[bytes], bytes | None] | None = None


_PREFIX: Final = os.urandom(6).hex()
_numbers = itertools.count()


def request_id(context: Context) -> str:
    """As the caller stated it, or a new one."""
    return named_in(metadata_of(context))


def metadata_of(context: Context) -> Metadata:
    """What came with a call; it is made anew each time."""
    return context.invocation_metadata() or ()


def named_in(metadata: Metadata) -> str:
    """The request id that a caller stated, or a new one."""
    for key, value in metadata:
        if key == REQUEST_ID and isinstance(value, str) and len(value) <= _LONGEST_REQUEST_ID:
            return value
    return f"{_PREFIX}-{os.getpid():x}-{next(_numbers):x}"


def caller_of(context: Context, principal: Principal) -> str:
    """Who shares turns alike: whoever said who he is, through all his connections; else the connection."""
    return principal.subject or context.peer()


def remaining_s(context: Context) -> float:
    """Of a call's time as its caller stated it; infinite where it stated none."""
    remaining = cast("float | None", context.time_remaining())  # the stub forgets calls without deadline
    return float("inf") if remaining is None else remaining


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
        watched = asyncio.timeout(default_s if ours else None)
        try:
            if request is UNDECODABLE:
                raise _malformed(path)
            async with watched:
                if request.__class__ is Large:
                    reply = await _large(request, path, method, call)
                else:
                    call.was_read(request, method.expected)
                    reply = _serialised(await behaviour(request, call))
            if len(reply) > limit:
                raise too_large(len(reply), limit)
        except NodewiseError as error:
            await abort(context, path, call.request_id, error, method.gate)
        except OverloadedError as error:
            await method.gate.refuse(context, path, call.request_id, error)
        except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
            await abort(context, path, call.request_id, _fault(path, call, error, late=watched.expired()), method.gate)
        finally:
            call.step_aside()
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        return reply

    return handle


async def _large(request: Large, path: str, method: Method, call: Call) -> bytes:
    """Answer a message that is looked at before it is decoded."""
    with method.intake.holding(request):
        read = await method.intake.read(request)
        request.data = b""
        if read is None:
            raise _malformed(path)
        call.was_read(read, method.expected)
        return _serialised(await method.behaviour(read, call))


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


async def run_in(executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a blocking function in an executor's thread."""
    return await asyncio.get_running_loop().run_in_executor(executor, function, *arguments)


async def computed_in(executor: Any, call: Call, function: Callable[..., Any], *arguments: Any) -> Any:
    """Compute in an executor's thread when it is the call's turn there.

    Raises
    ------
    OverloadedError
        If that would be too late.
    """
    call.step_aside()
    if call.gate is None:
        return await run_in(executor, function, *arguments)
    lane = call.gate.computing
    cost_s = call.cost.a_thread_s if lane.pressed else None
    turn = await lane.turn(call.caller, call.remaining_s(), cost_s, patient=call.patient)
    try:
        return await run_in(executor, function, *arguments)
    finally:
        turn.over()
