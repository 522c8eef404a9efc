"""Every method of a whole application without a socket: bytes in, what the wire would carry out.

The handlers are those that the application registers with gRPC, deserialisers and refusals included; only HTTP/2 is
left out, which costs more than most calls. What gRPC itself does is done here: a caller's deadline cancels the handler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import grpc
from google.rpc import error_details_pb2, status_pb2
from grpc import aio

from nodewise.hosting.registry import Registry
from nodewise.runtime.assembly import application_of
from nodewise.runtime.settings import Settings

REPLIES_MOST = 64
"""Replies that are read of a stream before the caller goes; some streams have no end."""
ENDS_WITHIN_S = 30.0
"""Patience with a handler that was cancelled; longer means that it holds on to its work."""


class HeldError(AssertionError):
    """A handler went on although it was cancelled."""


@dataclass(slots=True)
class Outcome:
    """What a caller sees of a call."""

    code: grpc.StatusCode
    seconds: float
    replies: list[bytes] = field(default_factory=list)
    status: status_pb2.Status = field(default_factory=status_pb2.Status)

    @property
    def reason(self) -> str:
        """Of the ErrorInfo; empty without one."""
        return self._info().reason

    @property
    def metadata(self) -> dict[str, str]:
        """Of the ErrorInfo."""
        return dict(self._info().metadata)

    @property
    def fields(self) -> list[str]:
        """Paths of the field violations."""
        request = error_details_pb2.BadRequest()
        return [
            violation.field
            for detail in self.status.details
            if detail.Unpack(request)
            for violation in request.field_violations
        ]

    def _info(self) -> error_details_pb2.ErrorInfo:
        info = error_details_pb2.ErrorInfo()
        for detail in self.status.details:
            if detail.Unpack(info):
                break
        return info


class _Context:
    """What handlers ask of a call's context."""

    def __init__(self, deadline_s: float) -> None:
        self._ends = time.monotonic() + deadline_s
        self.code = grpc.StatusCode.OK
        self.details = ""
        self.trailers: dict[str, Any] = {}

    def invocation_metadata(self) -> tuple[Any, ...]:
        return ()

    def time_remaining(self) -> float:
        return self._ends - time.monotonic()

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    def cancelled(self) -> bool:
        return False

    def done(self) -> bool:
        return False

    def add_done_callback(self, callback: Any) -> None:
        """The call has no life of its own: what is answered is read."""
        callback(self)

    def set_trailing_metadata(self, metadata: Any) -> None:
        self.trailers |= dict(metadata)

    async def send_initial_metadata(self, metadata: Any) -> None:
        """Nobody reads it."""

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing_metadata: Any = ()) -> None:
        self.code, self.details = code, details
        self.set_trailing_metadata(trailing_metadata)
        raise aio.AbortError


class DirectDoor:
    """An application with its own event loop, in the caller's thread.

    Parameters
    ----------
    settings : Settings
        Of the application.
    registry : Registry or None
        Plugins; None = those installed.
    """

    def __init__(self, settings: Settings, registry: Registry | None = None) -> None:
        self._loop = asyncio.new_event_loop()
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._application = application_of(settings, registry)
        made = aio.server

        def recorded(*arguments: Any, **options: Any) -> Any:
            server = made(*arguments, **options)
            add = server.add_generic_rpc_handlers

            def added(handlers: Sequence[grpc.GenericRpcHandler]) -> None:
                self._handlers.extend(handlers)
                add(handlers)

            server.add_generic_rpc_handlers = added  # type: ignore[method-assign]  # what gRPC is told is what is asked here
            return server

        with patch.object(grpc.aio, "server", recorded):
            self._loop.run_until_complete(self._application.start("127.0.0.1:0"))

    def ask(self, path: str, messages: Sequence[bytes], deadline_s: float) -> Outcome:
        """Call ``/service/Method`` with the messages of its caller; one, unless it streams.

        Raises
        ------
        HeldError
            If the handler goes on after its deadline.
        Exception
            What no caller may ever meet: gRPC would make UNKNOWN of it.
        """
        (outcome,) = self.ask_together([(path, messages, deadline_s)])
        return outcome

    def ask_together(self, calls: Sequence[tuple[str, Sequence[bytes], float]], at_once: int = 1) -> list[Outcome]:
        """Call methods with messages and deadlines, so many at once; what they come to, in their order.

        Raises
        ------
        As :meth:`ask`.
        """

        async def asked() -> list[Outcome]:
            turns = asyncio.Semaphore(at_once)

            async def in_turn(path: str, messages: Sequence[bytes], deadline_s: float) -> Outcome:
                async with turns:
                    return await self._asked(self._handler(path), messages, deadline_s)

            return await asyncio.gather(*(in_turn(*call) for call in calls))

        return self._loop.run_until_complete(asked())

    def _handler(self, path: str) -> Any:
        details = _Details(path)
        return next(found for each in self._handlers if (found := each.service(details)) is not None)

    async def _asked(self, handler: Any, messages: Sequence[bytes], deadline_s: float) -> Outcome:
        context, began = _Context(deadline_s), time.monotonic()
        outcome = Outcome(grpc.StatusCode.OK, 0.0)
        asking = asyncio.ensure_future(_replies(handler, messages, context, outcome.replies))
        try:
            done, _ = await asyncio.wait((asking,), timeout=deadline_s)
            if done:
                await asking
            else:
                outcome.code = grpc.StatusCode.DEADLINE_EXCEEDED
                asking.cancel()
                done, _ = await asyncio.wait((asking,), timeout=ENDS_WITHIN_S)
                if not done:
                    raise HeldError(f"the handler went on for {ENDS_WITHIN_S} s after it was cancelled")
                if not asking.cancelled():
                    await asking
        except aio.AbortError:
            outcome.code = context.code
            outcome.status.ParseFromString(context.trailers.get("grpc-status-details-bin", b""))
        outcome.seconds = time.monotonic() - began
        return outcome

    def __enter__(self) -> DirectDoor:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._application.stop())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


@dataclass(frozen=True)
class _Details(grpc.HandlerCallDetails):
    """What a registry of handlers is asked with."""

    method: str
    invocation_metadata: tuple[Any, ...] = ()


async def _replies(handler: Any, messages: Sequence[bytes], context: _Context, replies: list[bytes]) -> None:
    """As gRPC asks: a handler may read the one message of its caller itself, once it is the call's turn."""
    read = handler.request_deserializer or bytes

    async def sent() -> AsyncIterator[Any]:
        for message in messages:
            yield read(message)

    asked = sent() if handler.request_streaming else read(messages[0])
    if not handler.response_streaming:
        replies.append(await (handler.stream_unary or handler.unary_unary)(asked, context))
        return
    answering = (handler.stream_stream or handler.unary_stream)(asked, context)
    try:
        async for reply in answering:
            replies.append(reply)
            if len(replies) >= REPLIES_MOST:
                return
    finally:
        await answering.aclose()
