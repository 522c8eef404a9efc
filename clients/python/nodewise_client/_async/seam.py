"""What asyncio needs of its own: channels, streams, waiting. `_sync.seam` offers threads the same by the same names."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Iterable
from functools import cached_property
from typing import Any, Final, Protocol, Self, TypeAlias, TypeVar

import grpc
import grpc.aio

from nodewise_client._connection import (
    HEALTH_CHECK,
    Connection,
    HealthStatus,
    decode_health_response,
    encode_health_request,
    methods_of,
)
from nodewise_client._ingest_core import Given, GivenPhases
from nodewise_protos.v1 import profile_service_pb2 as wire
from nodewise_values import Observations, PhaseTimings

Item = TypeVar("Item")
Request = TypeVar("Request")
Reply = TypeVar("Reply")

RpcError: Final = grpc.aio.AioRpcError
Failure: TypeAlias = grpc.aio.AioRpcError
UnaryCall: TypeAlias = grpc.aio.UnaryUnaryMultiCallable[Request, Reply]
Many: TypeAlias = Iterable[Item] | AsyncIterable[Item]
ManyObservations: TypeAlias = Given | AsyncIterable[Observations]
ManyPhases: TypeAlias = GivenPhases | AsyncIterable[PhaseTimings]

sleep: Final = asyncio.sleep


class Services:
    """The channel and its methods. A channel belongs to the event loop that is running: the first call makes it."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Final = connection

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        target, options, credentials = self._connection.target, self._connection.options, self._connection.credentials
        if credentials is None:
            return grpc.aio.insecure_channel(target, options)
        return grpc.aio.secure_channel(target, credentials, options)

    @cached_property
    def methods(self) -> dict[str, Any]:
        """The methods of all services."""
        return methods_of(self._channel)

    @cached_property
    def health(self) -> grpc.aio.UnaryUnaryMultiCallable[str, HealthStatus]:
        """Check of grpc.health.v1."""
        return self._channel.unary_unary(
            HEALTH_CHECK, request_serializer=encode_health_request, response_deserializer=decode_health_response
        )

    async def close(self) -> None:
        """End every call and the connection."""
        if "_channel" in self.__dict__:
            await self._channel.close()


# --- iterables -----------------------------------------------------------------------------------------------------


async def each(items: Many[Item]) -> AsyncIterator[Item]:
    """Yield the items, also those that have to be awaited."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item


async def parts(source: ManyObservations | ManyPhases) -> AsyncIterator[Given | GivenPhases]:
    """Yield rows as they were given, or one by one where they have to be awaited."""
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    else:
        yield source


async def collect(items: AsyncIterator[Item]) -> list[Item]:
    """All items."""
    return [item async for item in items]


# --- the ingest writer's stream and its waiting --------------------------------------------------------------------


class IngestCall(Protocol):
    """A stream that was opened."""

    def __aiter__(self) -> AsyncIterator[wire.IngestProfileResponse]: ...
    def cancel(self) -> bool: ...
    def cancelled(self) -> bool: ...


OpenStream = Callable[[AsyncIterator[wire.IngestProfileRequest]], IngestCall]


async def replies(call: IngestCall) -> AsyncIterator[wire.IngestProfileResponse]:
    """Yield what the server says. A stream that was cancelled from here ends; gRPC would cancel the task that reads."""
    try:
        async for reply in call:
            yield reply
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if not call.cancelled() or (task is not None and task.cancelling()):
            raise


class Notifier:
    """Wakes all waiting tasks. No other task runs between two awaits, so no lock is needed."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        """Wake all that wait."""
        self._event.set()
        self._event = asyncio.Event()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Wait until something changes, or the time is over."""
        event = self._event
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()

    async def wait_for(self, condition: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait until something holds, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not condition():
                    await self._event.wait()


class Runner:
    """Runs the writer's stream beside its user."""

    def __init__(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._task: Final = asyncio.create_task(run(), name=name)

    async def join(self, timeout_s: float) -> None:
        """Wait until it has ended, or the time is over."""
        await asyncio.wait([self._task], timeout=timeout_s)

    async def end(self, timeout_s: float) -> None:
        """The same, and make it end."""
        await self.join(timeout_s)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
