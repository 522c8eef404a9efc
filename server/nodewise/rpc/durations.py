"""How long calls take, and by which status they end, whatever transport they come by."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

import grpc

from nodewise.rpc.classes import Observe

__all__ = ["observe_call", "observe_stream", "observe_unary"]


@contextmanager
def observe_call(observe: Observe | None, path: str, transport: str, context: Any) -> Iterator[None]:
    """Observe one call, from entering to leaving the context.

    Parameters
    ----------
    observe : callable or None
        None = there are no metrics.
    context : object
        Of gRPC, or of HTTP in its place: its code is the status of a call that was ended.
    """
    began_s = time.perf_counter()
    try:
        yield
    except BaseException as error:
        if observe is not None:
            observe(path, transport, time.perf_counter() - began_s, _code_of(context, error))
        raise
    if observe is not None:
        observe(path, transport, time.perf_counter() - began_s, "OK")


def _code_of(context: Any, error: BaseException) -> str:
    code = context.code()
    if isinstance(code, grpc.StatusCode):
        return code.name
    if not isinstance(error, (asyncio.CancelledError, GeneratorExit, ConnectionError)):
        return "UNKNOWN"
    return "DEADLINE_EXCEEDED" if context.time_remaining() == 0 else "CANCELLED"


def observe_unary(observe: Observe | None, path: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of gRPC with one reply whose calls are observed. It spells the context out: every call passes it."""
    if observe is None:
        return handler

    async def handle(request: Any, context: Any) -> bytes:
        began_s = time.perf_counter()
        try:
            reply: bytes = await handler(request, context)
        except BaseException as error:
            observe(path, "grpc", time.perf_counter() - began_s, _code_of(context, error))
            raise
        observe(path, "grpc", time.perf_counter() - began_s, "OK")
        return reply

    return handle


def observe_stream(observe: Observe | None, path: str, handler: Callable[..., Any]) -> Callable[..., Any]:
    """The same with many replies."""
    if observe is None:
        return handler

    async def handle(request: Any, context: Any) -> AsyncGenerator[bytes, None]:
        with observe_call(observe, path, "grpc", context):
            async with aclosing(handler(request, context)) as replies:
                async for reply in replies:
                    yield reply

    return handle
