"""How the client for asyncio calls: methods by their requests, pages, streams of progress, and what went wrong."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import nodewise_values as values
from nodewise_client._async.seam import Failure, RpcError, Services, UnaryCall, collect, sleep
from nodewise_client._connection import Connection
from nodewise_client._errors import Code, FailedCall, InternalError, NodewiseError, from_call
from nodewise_client._pages import join_parts
from nodewise_client._requests import message_of, method_of
from nodewise_client._resume import restart_pause_s
from nodewise_values.value import Value
from nodewise_values.wire import from_own_message

Result = TypeVar("Result")
Reply = TypeVar("Reply", bound=Value)
ReplyT = TypeVar("ReplyT")


class AsyncCalls:
    """A connection, for as long as it is open."""

    def __init__(self, connection: Connection) -> None:
        self._connection: Final = connection
        self._services: Final = Services(connection)
        self._is_closed = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.target!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every call and the connection. Ingest writers are to be left before."""
        self._is_closed = True
        await self._services.close()

    @property
    def _rpc(self) -> Services:
        # Nothing may reach a closed channel: gRPC would make a method on it, and break the process's memory.
        if self._is_closed:
            raise RuntimeError("the client is closed")
        return self._services

    async def _unary(self, request: Value, kind: type[Reply], timeout_s: float | None) -> Reply:
        return from_own_message(await self._request_reply(request, timeout_s), kind)

    async def _request_reply(self, request: Value, timeout_s: float | None) -> Any:
        """The message of a reply."""
        method = method_of(request)
        return await self._call(method, self._rpc.methods[method], message_of(request), timeout_s)

    async def _call(self, method: str, call: UnaryCall[Any, ReplyT], request: Any, timeout_s: float | None) -> ReplyT:
        timeout_s = self._connection.timeout_of(method) if timeout_s is None else timeout_s
        try:
            return await call(request, timeout=timeout_s, metadata=self._connection.metadata)
        except RpcError as failure:
            raise self._error_of(failure, method) from failure

    async def _pages(self, request: Value, kind: type[Reply], timeout_s: float | None) -> AsyncIterator[Reply]:
        """Yield the pages of a listing, each as it is asked for."""
        method = method_of(request)
        call = self._rpc.methods[method]
        message = message_of(request)
        while True:
            page = await self._call(method, call, message, timeout_s)
            yield from_own_message(page, kind)
            if not page.next_page_token:
                return
            message.page_token = page.next_page_token

    async def _list_all(self, request: Value, kind: type[Reply], timeout_s: float | None) -> Reply:
        """All pages of a listing as one reply."""
        return join_parts(await collect(self._pages(request, kind, timeout_s)))

    async def _answer(
        self,
        request: Value,
        on_progress: Callable[[Any], None] | None,
        result: Callable[[Sequence[Any]], Result],
        timeout_s: float,
    ) -> Result:
        """What a stream of progress ends with. It changes nothing: where it was cut, it is begun again, a few times."""
        method = method_of(request)
        call = self._rpc.methods[method]
        message = message_of(request)
        end = time.monotonic() + timeout_s
        attempt = 1
        while True:
            events: list[Any] = []
            has_reply = False
            stream = call(message, timeout=max(0.0, end - time.monotonic()), metadata=self._connection.metadata)
            try:
                async for event in stream:
                    has_reply = True
                    if not event.HasField("progress"):
                        events.append(event)
                    elif on_progress is not None:
                        kind = getattr(values, event.progress.DESCRIPTOR.name)
                        on_progress(from_own_message(event.progress, kind))
            except RpcError as failure:
                error = self._error_of(failure, method)
                # gRPC itself tries again what was cut before its first message.
                again = has_reply and self._connection.retry
                pause_s = restart_pause_s(error, attempt, end - time.monotonic()) if again else None
                if pause_s is None:
                    raise error from failure
            else:
                if not events or not events[-1].HasField("result"):
                    raise InternalError(f"the server ended {method} without a result", code=Code.INTERNAL)
                return result(events)
            finally:
                stream.cancel()
            attempt += 1
            await sleep(pause_s)

    def _error_of(self, failure: Failure, method: str) -> NodewiseError:
        return from_call(cast("FailedCall", failure), target=self._connection.target, method=method)
