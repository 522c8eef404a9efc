"""What stands before a method's wrapper where callers are told apart: who calls, and may he ask this.

Composed where methods are registered, so that a server that asks nobody pays nothing.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from nodewise.domain.errors import NodewiseError
from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.access import Guard
from nodewise.rpc.admission import Permit
from nodewise.rpc.calls import REQUEST_ID, Call, Context, Method, metadata_of, named_in, request_id
from nodewise.rpc.handlers import abort

__all__ = ["KnownReply", "admitted", "guarded", "guarded_stream", "guarded_unary"]


class KnownReply:
    """The reply to a request of these bytes, for who may see it."""

    __slots__ = ("reply", "request")

    def __init__(self, request: bytes, reply: bytes) -> None:
        self.request = request
        self.reply = reply

    def for_caller(self, method: Method, guard: Guard, principal: Principal) -> Any:
        """The reply; the request instead, to be refused as any other, if it is about what is not the caller's."""
        if principal.everywhere:
            return self.reply
        request = method.request.FromString(self.request)
        return self.reply if guard.permits(principal, request) else request


async def admitted(path: str, method: Method, context: Context) -> Principal:
    """The caller, who may call the method. Ends the call if he may not."""
    if method.guard is None:
        return ANYONE
    try:
        return await method.guard.admitted(context)
    except NodewiseError as error:
        await abort(context, path, request_id(context), error, method.admission)


def guarded_unary(
    path: str, method: Method, guard: Guard, answer: Callable[..., Awaitable[bytes]]
) -> Callable[..., Awaitable[bytes]]:
    """The wrapper of a method with one reply, for callers that were not let in yet, or were (``principal``)."""

    async def handle(
        request: Any, context: Context, permit: Permit | None = None, principal: Principal | None = None
    ) -> bytes:
        metadata = metadata_of(context)
        if principal is None:
            principal = guard.known(metadata) or await admitted(path, method, context)
        if request.__class__ is KnownReply:
            request = request.for_caller(method, guard, principal)
            if request.__class__ is bytes and permit is None:
                context.set_trailing_metadata(((REQUEST_ID, named_in(metadata)),))
                return request
        return await answer(request, context, permit, principal, named_in(metadata))

    return handle


def guarded_stream(
    path: str, method: Method, answer: Callable[..., AsyncGenerator[bytes, None]]
) -> Callable[..., AsyncGenerator[bytes, None]]:
    """The same with many replies."""

    async def handle(
        request: Any, context: Context, permit: Permit | None = None, principal: Principal | None = None
    ) -> AsyncGenerator[bytes, None]:
        caller = await admitted(path, method, context) if principal is None else principal
        async with aclosing(answer(request, context, permit, caller)) as messages:
            async for message in messages:
                yield message

    return handle


def guarded(method: Method, guard: Guard) -> Method:
    """A method whose behaviour is asked about the caller's profiles alone, and for as long as he may ask."""
    behaviour = method.behaviour

    async def one(request: Any, call: Call) -> Any:
        guard.check(call.principal, request)
        return await behaviour(request, call)

    async def many(request: Any, call: Call) -> AsyncIterator[Any]:
        staying = _Staying(guard, call)
        if method.streams_in:
            request = _checked(request, call, method, staying)
        else:
            guard.check(call.principal, request)
        async with aclosing(behaviour(request, call)) as messages:
            async for message in messages:
                await staying.check()
                yield message

    return replace(method, behaviour=many if method.streams_out or method.streams_in else one)


class _Staying:
    """Whether the caller of a stream may go on."""

    def __init__(self, guard: Guard, call: Call) -> None:
        self.guard = guard
        self._call = call
        self._epoch = guard.identity.epoch

    async def check(self) -> None:
        """Look anew where rights were taken away, or time is over. Raises NodewiseError."""
        call, epoch = self._call, self.guard.identity.epoch
        if call.context is not None and (epoch != self._epoch or call.principal.expired()):
            call.principal = await self.guard.admitted(call.context)
            self._epoch = epoch


async def _checked(requests: AsyncIterator[Any], call: Call, method: Method, staying: _Staying) -> AsyncIterator[Any]:
    """The messages of a stream that the caller may send; replies that he may see stand in for their requests."""
    guard = staying.guard
    async for request in requests:
        await staying.check()
        if request.__class__ is KnownReply:
            request = request.for_caller(method, guard, call.principal)  # noqa: PLW2901  # as a reply, or as it came
        elif not guard.rule.each:
            guard.check(call.principal, request)
        yield request
