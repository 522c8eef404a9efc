"""One wrapper per method: request id, deadline, decoding, errors, log, size of the reply.

The layers are composed when methods are registered, not per call: each layer of interceptors would cost microseconds on
every call. A behaviour is transport-free apart from :class:`Call`, which carries what a handler may need to know.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, NoReturn, cast

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from google.rpc import status_pb2

from nodewise.domain.errors import Kind, NodewiseError, Reason
from nodewise.rpc.caps import too_large
from nodewise.rpc.errors import grpc_code, internal_error, status_of

__all__ = ["Call", "Method", "generic_handler"]

_log = structlog.get_logger("nodewise.rpc")

REQUEST_ID: Final = "x-request-id"
_LONGEST_REQUEST_ID: Final = 128

Context = grpc.aio.ServicerContext[Any, Any]


class _Undecodable:
    """What the deserialiser returns instead of raising: gRPC would answer UNKNOWN, and no handler would learn of it."""


_UNDECODABLE: Final = _Undecodable()


@dataclass(frozen=True, slots=True)
class Call:
    """What a behaviour may know of its call."""

    request_id: str
    deadline_monotonic_s: float | None

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
    streams_in, streams_out : bool
        Cardinality.
    default_deadline_s : float or None
        Applied when the caller states none; None = may run for ever.
    reply_bytes : int
        Largest reply.
    """

    behaviour: Callable[..., Any]
    request: type[Message]
    streams_in: bool = False
    streams_out: bool = False
    default_deadline_s: float | None = 60.0
    reply_bytes: int = 4 * 1024 * 1024


def generic_handler(service: str, methods: Mapping[str, Method]) -> grpc.GenericRpcHandler:
    """Handlers of a service, wrapped."""
    handlers = {name: _handler(f"/{service}/{name}", method) for name, method in methods.items()}
    return grpc.method_handlers_generic_handler(service, handlers)


def _handler(path: str, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
    deserialiser = _guarded(method.request)
    if method.streams_in:
        return grpc.stream_stream_rpc_method_handler(_streaming(path, method), deserialiser, None)
    if method.streams_out:
        return grpc.unary_stream_rpc_method_handler(_streaming(path, method), deserialiser, None)
    return grpc.unary_unary_rpc_method_handler(_unary(path, method), deserialiser, None)


def _guarded(message: type[Message]) -> Callable[[bytes], Any]:
    decode = message.FromString

    def guarded(data: bytes) -> Any:
        try:
            return decode(data)
        except (DecodeError, UnicodeDecodeError):
            return _UNDECODABLE

    return guarded


_PREFIX: Final = os.urandom(6).hex()
_numbers = itertools.count()


def _request_id(context: Context) -> str:
    metadata: Iterable[tuple[str, str | bytes]] = context.invocation_metadata() or ()
    for key, value in metadata:
        if key == REQUEST_ID and isinstance(value, str) and len(value) <= _LONGEST_REQUEST_ID:
            return value
    return f"{_PREFIX}-{os.getpid():x}-{next(_numbers):x}"


def _deadline(context: Context, default_s: float | None) -> tuple[float | None, bool]:
    """When the call's time is over (monotonic seconds), and whether it is us who must watch it.

    gRPC ends calls whose caller stated a deadline; nobody watches the default of those that stated none.
    """
    remaining: float | None = cast("float | None", context.time_remaining())  # the stub forgets calls without deadline
    if remaining is not None:
        return time.monotonic() + remaining, False
    return (None, False) if default_s is None else (time.monotonic() + default_s, True)


def _unary(path: str, method: Method) -> Callable[[Any, Context], Awaitable[bytes]]:
    behaviour, limit, default_s = method.behaviour, method.reply_bytes, method.default_deadline_s

    async def handle(request: Any, context: Context) -> bytes:
        deadline_s, ours = _deadline(context, default_s)
        call = Call(_request_id(context), deadline_s)
        watched = asyncio.timeout(default_s if ours else None)
        try:
            if request is _UNDECODABLE:
                raise _malformed(path)
            async with watched:
                reply = _serialised(await behaviour(request, call))
            if len(reply) > limit:
                raise too_large(len(reply), limit)
        except NodewiseError as error:
            await _abort(context, path, call, error)
        except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
            await _abort(context, path, call, _fault(path, call, error, late=watched.expired()))
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        return reply

    return handle


def _streaming(path: str, method: Method) -> Callable[[Any, Context], AsyncIterator[bytes]]:
    behaviour, limit, default_s = method.behaviour, method.reply_bytes, method.default_deadline_s

    async def handle(request: Any, context: Context) -> AsyncIterator[bytes]:
        deadline_s, _ = _deadline(context, default_s)
        call = Call(_request_id(context), deadline_s)
        context.set_trailing_metadata(((REQUEST_ID, call.request_id),))
        try:
            if request is _UNDECODABLE:
                raise _malformed(path)
            source = _decoded(request, path) if method.streams_in else request
            async with aclosing(behaviour(source, call)) as messages:
                async for message in messages:
                    reply = _serialised(message)
                    if len(reply) > limit:
                        raise too_large(len(reply), limit)
                    yield reply
        except NodewiseError as error:
            await _abort(context, path, call, error)
        except Exception as error:  # noqa: BLE001  # the boundary: nothing may pass it unmapped
            await _abort(context, path, call, _fault(path, call, error))

    return handle


def _serialised(reply: Message | bytes) -> bytes:
    """A reply as bytes; a behaviour may have them at hand."""
    return reply if isinstance(reply, bytes) else reply.SerializeToString()


async def _decoded(requests: AsyncIterator[Any], path: str) -> AsyncIterator[Any]:
    async for request in requests:
        if request is _UNDECODABLE:
            raise _malformed(path)
        yield request


def _malformed(path: str) -> NodewiseError:
    return NodewiseError(Reason.MALFORMED_MESSAGE, f"the bytes are no request of {path}", {"method": path})


def _fault(path: str, call: Call, error: BaseException, *, late: bool = False) -> NodewiseError:
    """``late``: a timer of ours ended the call; it may fire a clock's tick before ``call`` finds its time over."""
    if isinstance(error, TimeoutError) and (late or call.remaining_s() <= 0):
        return NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready")
    _log.error("call_failed", method=path, request_id=call.request_id, exc_info=error)
    return internal_error()


async def _abort(context: Context, path: str, call: Call, error: NodewiseError) -> NoReturn:
    try:
        status = status_of(error)
    except (TypeError, ValueError) as fault:  # an error that is none of ours in the end, such as a plugin's
        _log.error("call_failed", method=path, request_id=call.request_id, exc_info=fault)
        error = internal_error()
        status = status_of(error)
    level = _log.warning if error.kind in (Kind.INTERNAL, Kind.UNAVAILABLE) else _log.info
    level("call_refused", method=path, request_id=call.request_id, reason=str(error.reason), message=error.message)
    await context.abort_with_status(_Status(status, call.request_id))
    raise AssertionError("abort always raises")


class _Status(grpc.Status):
    """A status with its details and the request id as trailing metadata."""

    def __init__(self, status: status_pb2.Status, request_id: str) -> None:
        self.code = grpc_code(status)
        self.details = status.message
        self.trailing_metadata = (
            ("grpc-status-details-bin", status.SerializeToString()),
            (REQUEST_ID, request_id),
        )


async def run_in(executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a blocking function in an executor's thread."""
    return await asyncio.get_running_loop().run_in_executor(executor, function, *arguments)
