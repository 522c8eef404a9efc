"""Access control of streams and of cached replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from nodewise.domain.principal import Principal
from nodewise.rpc.access import Guard
from nodewise.rpc.calls import Call, Method

__all__ = ["KnownReply", "with_guard"]


class KnownReply:
    """The cached reply to a request, for callers that may see it."""

    __slots__ = ("reply", "request")

    def __init__(self, request: bytes, reply: bytes) -> None:
        self.request = request
        self.reply = reply

    def for_caller(self, method: Method, guard: Guard, principal: Principal) -> Any:
        """The reply, if the caller has access to all profiles of the request; else the request, to be refused."""
        if principal.everywhere:
            return self.reply
        request = method.request.FromString(self.request)
        return self.reply if guard.permits(principal, request) else request


def with_guard(method: Method, guard: Guard) -> Callable[..., AsyncIterator[Any]]:
    """The behaviour of a stream, with checks that the caller may call it and has access to the profiles."""

    async def many(request: Any, call: Call) -> AsyncIterator[Any]:
        staying = _Staying(guard, call)
        if method.streams_in:
            request = _check(request, call, method, staying)
        else:
            guard.check(call.principal, request)
        async with aclosing(method.behaviour(request, call)) as messages:
            async for message in messages:
                await staying.check()
                yield message

    return many


class _Staying:
    """Checks whether the caller of a stream still has access."""

    def __init__(self, guard: Guard, call: Call) -> None:
        self.guard = guard
        self._call = call
        self._epoch = guard.identity.epoch

    async def check(self) -> None:
        """Identify the caller again if rights have changed or have expired. Raises NodewiseError."""
        call, epoch = self._call, self.guard.identity.epoch
        if call.context is not None and (epoch != self._epoch or call.principal.is_expired()):
            call.principal = await self.guard.admit(call.context)
            self._epoch = epoch


async def _check(requests: AsyncIterator[Any], call: Call, method: Method, staying: _Staying) -> AsyncIterator[Any]:
    """The messages of a stream, if the caller may send them; cached replies that the caller may see stay replies."""
    guard = staying.guard
    async for request in requests:
        await staying.check()
        if request.__class__ is KnownReply:
            request = request.for_caller(method, guard, call.principal)  # noqa: PLW2901  # as a reply, or as it came
        elif not guard.rule.each:
            guard.check(call.principal, request)
        yield request
