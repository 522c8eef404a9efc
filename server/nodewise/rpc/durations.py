"""Observation of calls of every transport: their duration and status."""

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
        None = the server has no metrics.
    context : object
        Of gRPC, or its substitute for HTTP; its code is the status that ended the call.
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
    """A handler of gRPC with one reply whose calls are observed. It is written without a context manager, for speed."""
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
    """A handler of gRPC with many replies whose calls are observed."""
    if observe is None:
        return handler

    async def handle(request: Any, context: Any) -> AsyncGenerator[bytes, None]:
        with observe_call(observe, path, "grpc", context):
            async with aclosing(handler(request, context)) as replies:
                async for reply in replies:
                    yield reply

    return handle
