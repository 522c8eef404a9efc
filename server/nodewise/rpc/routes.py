"""Routes from calls to handlers. Where calls wait for a permit, they get it before their message is received."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from nodewise.domain.principal import Principal
from nodewise.rpc.admission import AdmissionQueue, Permit
from nodewise.rpc.calls import Context, Method, metadata_of
from nodewise.rpc.durations import observe_stream, observe_unary
from nodewise.rpc.guarding import KnownReply
from nodewise.rpc.handlers import UNDECODABLE, acquire, admit_caller, stream_handler, unary_handler
from nodewise.rpc.intake import Large

__all__ = ["MethodRoute", "Router", "make_router"]

READING_S: Final = 0.1
"""Seconds for which a permit waits for its call's message; if the message comes later, the call needs a new permit."""


def make_router(service: str, methods: Mapping[str, Method]) -> Router:
    """The routes of a service."""
    return Router(service, {name: _route(f"/{service}/{name}", method) for name, method in methods.items()})


class Router(grpc.GenericRpcHandler):
    """Finds a call's handler: the usual one, or while calls wait one that acquires a permit before it receives.

    gRPC asks for the handler before it receives the message. A stream handler starts without a message, so a refused
    call costs neither receiving nor decoding.
    """

    def __init__(self, service_name: str, routes: Mapping[str, MethodRoute]) -> None:
        self.service_name = service_name
        self.routes = {f"/{service_name}/{name}": each for name, each in routes.items()}
        """The route of every method, by path."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The handler of a call, for gRPC."""
        route = self.routes.get(handler_call_details.method)
        if route is None:
            return None
        route.method.admission.arrivals += 1
        return route.usual if route.queue is None or route.queue.free > 0 else route.waiting


@dataclass(frozen=True, slots=True)
class MethodRoute:
    """A method with its handlers for gRPC, and their parts for other transports.

    Attributes
    ----------
    path : str
        ``/package.Service/Method``.
    queue : AdmissionQueue or None
        Where calls wait before their message is received; None = they do not.
    usual, waiting : RpcMethodHandler
        Handlers for gRPC, while a permit is free, and while calls wait.
    read : callable
        From the bytes of a request to the first argument of ``answer``.
    answer : callable
        ``(request, context, permit, principal)``: a reply, or the replies of a stream, as bytes.
    """

    path: str
    method: Method
    queue: AdmissionQueue | None
    usual: grpc.RpcMethodHandler[Any, Any]
    waiting: grpc.RpcMethodHandler[Any, Any]
    read: Callable[[bytes], Any]
    answer: Callable[..., Any]

    async def admit(
        self, receive: Callable[[], Awaitable[bytes]], context: Context
    ) -> tuple[Any, Permit | None, Principal]:
        """Admit a call with one message over another transport than gRPC: caller, permit where calls wait, message.

        Parameters
        ----------
        receive : callable
            Receives the message's bytes.

        Returns the arguments of ``answer`` except the context.
        """
        self.method.admission.arrivals += 1
        guard = self.method.guard
        known_caller = None if guard is None else guard.known_principal(metadata_of(context))
        principal = known_caller or await admit_caller(self.path, self.method, context)
        if self.queue is None or self.queue.free > 0:
            return self.read(await receive()), None, principal

        async def one() -> AsyncIterator[Any]:
            yield self.read(await receive())

        request, permit = await _receive(self.path, self.method, self.queue, one(), context, principal)
        return request, permit, principal


def _route(path: str, method: Method) -> MethodRoute:
    deserialiser, queue = _reader(method), method.queue
    streams = method.streams_in or method.streams_out
    answer: Callable[..., Any] = stream_handler(path, method) if streams else unary_handler(path, method)
    observe = method.admission.observe
    handle = (observe_stream if streams else observe_unary)(observe, path, answer)
    usual: grpc.RpcMethodHandler[Any, Any]
    if method.streams_in:
        usual = grpc.stream_stream_rpc_method_handler(handle, deserialiser, None)
        return MethodRoute(path, method, None, usual, usual, deserialiser, answer)
    usual = (
        grpc.unary_stream_rpc_method_handler(handle, deserialiser, None)
        if method.streams_out
        else grpc.unary_unary_rpc_method_handler(handle, deserialiser, None)
    )
    waiting: grpc.RpcMethodHandler[Any, Any] = usual
    if queue is not None and method.streams_out:
        handler = observe_stream(observe, path, _waiting_stream(path, method, queue, answer))
        waiting = grpc.stream_stream_rpc_method_handler(handler, deserialiser, None)
    elif queue is not None:
        one = observe_unary(observe, path, _waiting(path, method, queue, answer))
        waiting = grpc.stream_unary_rpc_method_handler(one, deserialiser, None)
    return MethodRoute(path, method, queue, usual, waiting, deserialiser, answer)


def _reader(method: Method) -> Callable[[bytes], Any]:
    """A function from bytes to a request, or to its cached reply: bytes, or a KnownReply if access must be checked."""
    decode, small_bytes, known = method.request.FromString, method.intake.small_bytes, method.known
    anyone, replies = method.guard is None, method.admission.replies

    def read(data: bytes) -> Any:
        if len(data) > small_bytes:
            return Large(data)
        if known is not None:
            reply = known(data)
            replies[reply is not None] += 1
            if reply is not None:
                return reply if anyone else KnownReply(data, reply)
        try:
            return decode(data)
        except (DecodeError, UnicodeDecodeError):
            return UNDECODABLE

    return read


def _waiting(
    path: str, method: Method, queue: AdmissionQueue, answer: Callable[..., Awaitable[bytes]]
) -> Callable[..., Awaitable[bytes]]:
    """The handler of a method with one reply that waits for a permit, or is refused, before the message is received."""

    async def handle(requests: AsyncIterator[Any], context: Context) -> bytes:
        principal = await admit_caller(path, method, context)
        request, permit = await _receive(path, method, queue, requests, context, principal)
        return await answer(request, context, permit, principal)

    return handle


def _waiting_stream(
    path: str, method: Method, queue: AdmissionQueue, answer: Callable[..., AsyncGenerator[bytes, None]]
) -> Callable[..., AsyncGenerator[bytes, None]]:
    """The same for a method with many replies."""

    async def handle(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[bytes, None]:
        principal = await admit_caller(path, method, context)
        request, permit = await _receive(path, method, queue, requests, context, principal)
        async with aclosing(answer(request, context, permit, principal)) as messages:
            async for message in messages:
                yield message

    return handle


async def _receive(
    path: str,
    method: Method,
    queue: AdmissionQueue,
    requests: AsyncIterator[Any],
    context: Context,
    principal: Principal,
) -> tuple[Any, Permit]:
    """The message of a call, and its permit. A call without a message loses its permit after ``READING_S``."""
    permit = await acquire(path, method, queue, context, principal)
    late = asyncio.get_running_loop().call_later(READING_S, permit.release)
    try:
        request = await anext(requests, UNDECODABLE)
        if permit.is_released:
            permit = await acquire(path, method, queue, context, principal)
    except BaseException:
        permit.release()
        raise
    finally:
        late.cancel()
    return request, permit
