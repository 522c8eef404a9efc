"""Doors: gRPC's way from a call to its handler, which for calls that must wait decides before it reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.access import Guard
from nodewise.rpc.calls import Context, Method, caller_of, metadata_of, remaining_s, request_id
from nodewise.rpc.costs import Expected
from nodewise.rpc.gate import Gate, Told
from nodewise.rpc.guarding import KnownReply, admitted, guarded, guarded_stream, guarded_unary
from nodewise.rpc.handlers import UNDECODABLE, stream_handler, unary_handler, waited_turn
from nodewise.rpc.intake import Large
from nodewise.rpc.lanes import Lane, Turn

__all__ = ["Door", "Doorway", "generic_handler"]

READING_S: Final = 0.1
"""How long a turn waits for its message, which as a rule is there; who sends it later is given another turn then."""


def generic_handler(service: str, methods: Mapping[str, Method]) -> Door:
    """Handlers of a service, wrapped."""
    return Door(service, {name: _doorway(f"/{service}/{name}", method) for name, method in methods.items()})


class Door(grpc.GenericRpcHandler):
    """Finds a call's handler: the usual one, or where calls wait for their turn one that decides before it reads.

    gRPC asks before it receives the message. A handler of streams gets its call at once, without one: who is refused
    then costs neither the receiving nor the decoding of what nobody will look at.
    """

    def __init__(self, service_name: str, doorways: Mapping[str, Doorway]) -> None:
        self.service_name = service_name
        self._doorways = {f"/{service_name}/{name}": each for name, each in doorways.items()}
        # Where nothing can wait, one call accepted at a time is enough.
        self._lanes = {name: each for name, each in doorways.items() if each.lane is not None}

    @property
    def paths(self) -> list[str]:
        """Methods whose calls may have to wait for their turn."""
        return [f"/{self.service_name}/{name}" for name in self._lanes]

    def registered(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Their usual handlers, by the methods' names."""
        return {name: each.usual for name, each in self._lanes.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """As gRPC says."""
        found = self._doorways.get(handler_call_details.method)
        if found is None:
            return None
        found.gate.arrivals += 1
        return found.waiting if found.lane is not None and found.lane.pressed else found.usual

    @property
    def doorways(self) -> dict[str, Doorway]:
        """Every method's, by its path."""
        return dict(self._doorways)

    def overloaded(self, path: str) -> bool:
        """Whether the lane of a method refused calls lately."""
        lane = self._doorways[path].lane
        return lane is not None and lane.overloaded

    def refused(self, path: str, context: Context) -> Told | None:
        """What a call that has just arrived is told where its lane would refuse it; None = let it come."""
        doorway = self._doorways[path]
        if doorway.lane is None or not self.overloaded(path):
            return None
        principal = ANYONE if doorway.guard is None else doorway.guard.known(metadata_of(context)) or ANYONE
        caller = caller_of(context, principal)
        error = doorway.lane.refusal(caller, remaining_s(context), doorway.expected.usual.loop_s)
        if error is None:
            return None
        doorway.gate.arrivals += 1
        return doorway.gate.refusals.told(path, request_id(context), error)


@dataclass(frozen=True, slots=True)
class Doorway:
    """A method, and its ways in: handlers for gRPC, and the parts of these for other transports.

    Attributes
    ----------
    path : str
        ``/package.Service/Method``.
    lane : Lane or None
        Where calls wait before their message is read; None = they do not.
    usual, waiting : RpcMethodHandler
        Of gRPC, while nobody waits, and else.
    read : callable
        From the bytes of a request to what ``answer`` is given.
    answer : callable
        ``(request, context, turn, who calls)``: a reply, or the replies of a stream, as bytes.
    """

    path: str
    method: Method
    lane: Lane | None
    usual: grpc.RpcMethodHandler[Any, Any]
    waiting: grpc.RpcMethodHandler[Any, Any]
    read: Callable[[bytes], Any]
    answer: Callable[..., Any]

    @property
    def gate(self) -> Gate:
        """Of the server."""
        return self.method.gate

    @property
    def guard(self) -> Guard | None:
        """Lets callers in; None = everybody."""
        return self.method.guard

    @property
    def expected(self) -> Expected:
        """What its calls cost."""
        return self.method.expected

    async def let_in(
        self, receive: Callable[[], Awaitable[bytes]], context: Context
    ) -> tuple[Any, Turn | None, Principal]:
        """The way in of a call with one message over another transport than gRPC, in the same order.

        Who calls is asked first, then whether there is a turn for him where calls wait; then the message is received.

        Parameters
        ----------
        receive : callable
            Receives the message's bytes.

        Returns what ``answer`` is given, but the context.
        """
        self.gate.arrivals += 1
        known = None if self.guard is None else self.guard.known(metadata_of(context))
        principal = known or await admitted(self.path, self.method, context)
        if self.lane is None or not self.lane.pressed:
            return self.read(await receive()), None, principal

        async def one() -> AsyncIterator[Any]:
            yield self.read(await receive())

        request, turn = await _read_in_turn(self.path, self.method, self.lane, one(), context, principal)
        return request, turn, principal


def _doorway(path: str, method: Method) -> Doorway:
    deserialiser, lane = _guarded(method), method.lane
    streams = method.streams_in or method.streams_out
    answer: Callable[..., Any] = _stream_handler(path, method) if streams else _unary_handler(path, method)
    usual: grpc.RpcMethodHandler[Any, Any]
    if method.streams_in:
        usual = grpc.stream_stream_rpc_method_handler(answer, deserialiser, None)
        return Doorway(path, method, None, usual, usual, deserialiser, answer)
    usual = (
        grpc.unary_stream_rpc_method_handler(answer, deserialiser, None)
        if method.streams_out
        else grpc.unary_unary_rpc_method_handler(answer, deserialiser, None)
    )
    waiting: grpc.RpcMethodHandler[Any, Any] = usual
    if lane is not None and method.streams_out:
        waiting = grpc.stream_stream_rpc_method_handler(_let_in_stream(path, method, lane, answer), deserialiser, None)
    elif lane is not None:
        waiting = grpc.stream_unary_rpc_method_handler(_let_in(path, method, lane, answer), deserialiser, None)
    return Doorway(path, method, lane, usual, waiting, deserialiser, answer)


def _unary_handler(path: str, method: Method) -> Callable[..., Awaitable[bytes]]:
    guard = method.guard
    if guard is None:
        return unary_handler(path, method)
    return guarded_unary(path, method, guard, unary_handler(path, guarded(method, guard)))


def _stream_handler(path: str, method: Method) -> Callable[..., AsyncGenerator[bytes, None]]:
    guard = method.guard
    if guard is None:
        return stream_handler(path, method)
    return guarded_stream(path, method, stream_handler(path, guarded(method, guard)))


def _guarded(method: Method) -> Callable[[bytes], Any]:
    """From bytes to a request, or to the reply where that is known already: as bytes, or for who may see it."""
    decode, small_bytes, known = method.request.FromString, method.intake.small_bytes, method.known

    anyone = method.guard is None

    def read(data: bytes) -> Any:
        if len(data) > small_bytes:
            return Large(data)
        if known is not None and (reply := known(data)) is not None:
            return reply if anyone else KnownReply(data, reply)
        try:
            return decode(data)
        except (DecodeError, UnicodeDecodeError):
            return UNDECODABLE

    return read


def _let_in(
    path: str, method: Method, lane: Lane, answer: Callable[..., Awaitable[bytes]]
) -> Callable[..., Awaitable[bytes]]:
    """Wait for a turn, or be refused, before the message is read."""

    async def handle(requests: AsyncIterator[Any], context: Context) -> bytes:
        principal = await admitted(path, method, context)
        request, turn = await _read_in_turn(path, method, lane, requests, context, principal)
        return await answer(request, context, turn, principal)

    return handle


async def _read_in_turn(
    path: str, method: Method, lane: Lane, requests: AsyncIterator[Any], context: Context, principal: Principal
) -> tuple[Any, Turn]:
    """The message, and a turn in which it is there: who sends headers alone, or drips, holds no turn of others."""
    turn = await waited_turn(path, method, lane, context, principal)
    late = asyncio.get_running_loop().call_later(READING_S, turn.over)
    turn.read(begins=True)
    try:
        request = await anext(requests, UNDECODABLE)
        turn.read(begins=False)
        if turn.given_up:
            turn = await waited_turn(path, method, lane, context, principal)
    except BaseException:
        turn.over()
        raise
    finally:
        late.cancel()
    return request, turn


def _let_in_stream(
    path: str, method: Method, lane: Lane, answer: Callable[..., AsyncGenerator[bytes, None]]
) -> Callable[..., AsyncGenerator[bytes, None]]:
    async def handle(requests: AsyncIterator[Any], context: Context) -> AsyncGenerator[bytes, None]:
        principal = await admitted(path, method, context)
        request, turn = await _read_in_turn(path, method, lane, requests, context, principal)
        async with aclosing(answer(request, context, turn, principal)) as messages:
            async for message in messages:
                yield message

    return handle
