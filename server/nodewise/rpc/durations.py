"""How long calls take, and by which status they end, whatever transport they come by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Any

import grpc

from nodewise.rpc.classes import Observe

__all__ = ["Timed", "timed_stream", "timed_unary"]


class Timed:
    """Observes one call, from entering to leaving the context.

    Parameters
    ----------
    observe : callable or None
        None = nobody wants to know.
    context : object
        Of gRPC, or what stands in for it: its code says how the call was ended.
    """

    __slots__ = ("_began_s", "_context", "_observe", "_path", "_transport")

    def __init__(self, observe: Observe | None, path: str, transport: str, context: Any) -> None:
        self._observe, self._path, self._transport, self._context = observe, path, transport, context

    def __enter__(self) -> None:
        self._began_s = time.perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._observe is not None:
            code = "OK" if kind is None else self._code(kind)
            self._observe(self._path, self._transport, time.perf_counter() - self._began_s, code)

    def _code(self, kind: type[BaseException]) -> str:
        code = self._context.code()
        if isinstance(code, grpc.StatusCode):
            return code.name
        if not issubclass(kind, (asyncio.CancelledError, GeneratorExit, ConnectionError)):
            return "UNKNOWN"
        return "DEADLINE_EXCEEDED" if self._context.time_remaining() == 0 else "CANCELLED"


def timed_unary(observe: Observe | None, path: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of gRPC with one reply whose calls are observed."""
    if observe is None:
        return handler

    async def timed(request: Any, context: Any) -> bytes:
        with Timed(observe, path, "grpc", context):
            reply: bytes = await handler(request, context)
            return reply

    return timed


def timed_stream(observe: Observe | None, path: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """The same with many replies."""
    if observe is None:
        return handler

    async def timed(request: Any, context: Any) -> AsyncGenerator[bytes, None]:
        with Timed(observe, path, "grpc", context):
            async with aclosing(handler(request, context)) as replies:
                async for reply in replies:
                    yield reply

    return timed
