"""A method as registered, and a call of it. Behaviours depend on the transport through :class:`Call` alone.

All calls share the event loop, so work in many small parts yields it between them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final, cast

import grpc
from google.protobuf.message import Message

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import ANYONE, Principal
from nodewise.rpc.access import Guard
from nodewise.rpc.admission import AdmissionQueue, Permit
from nodewise.rpc.classes import STINT_S, Admission
from nodewise.rpc.intake import InFlight, Intake

__all__ = [
    "REQUEST_ID",
    "Call",
    "Context",
    "Method",
    "Stint",
    "caller_of",
    "computed_in",
    "metadata_of",
    "named_in",
    "remaining_s",
    "request_id",
    "run_in",
]


class Stint:
    """Yields the event loop every few milliseconds, and ends a call whose time is over.

    A call that its caller cancelled ends there too, since the cancellation arrives only while the loop is free.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self._ends_s = time.monotonic() + STINT_S

    async def over(self, stage: str) -> bool:
        """Yield if the stint is over, and return whether it was; ``stage`` says how far the work is.

        Raises
        ------
        NodewiseError
            DEADLINE_EXCEEDED.
        """
        if time.monotonic() <= self._ends_s:
            return False
        if self._call.remaining_s() <= 0:
            raise NodewiseError(Reason.DEADLINE_EXCEEDED, f"the call's time was over: {stage}", {"progress": stage})
        if self._call.admission is None:
            await asyncio.sleep(0)
        else:
            await self._call.admission.accept_arrivals()
        self._ends_s = time.monotonic() + STINT_S
        return True


REQUEST_ID: Final = "x-request-id"
"""Key of a call's id in its metadata and in its trailers."""
_LONGEST_REQUEST_ID: Final = 128
COMPUTING_S: Final = 1.0
"""Seconds for which a computation keeps its permit: fits take tens of milliseconds, and must not wait for a search."""

Context = grpc.aio.ServicerContext[Any, Any]
Metadata = Iterable[tuple[str, str | bytes]]


@dataclass(slots=True)
class Call:
    """A call, for its behaviour.

    Attributes
    ----------
    context : object
        Of gRPC; None = there is none.
    permit : Permit or None
        Its permit: of the event loop, or of the threads that compute.
    admission : Admission or None
        Admission queues; None = work starts at once.
    in_stream : bool
        Whether it is a message of a stream, which is never refused: the next message is not received meanwhile.
    principal : Principal
        The caller, and what it may do.
    guard : Guard or None
        Knows which profiles a message names; None = every caller may do everything.
    computes : bool
        Whether its permit is of the threads that compute.
    """

    request_id: str
    deadline_monotonic_s: float | None
    context: Context | None = None
    permit: Permit | None = None
    admission: Admission | None = None
    in_stream: bool = False
    principal: Principal = ANYONE
    guard: Guard | None = None
    computes: bool = False

    def check(self, message: Message) -> None:
        """Refuse a message that names a profile outside of the caller's prefixes. Raises PERMISSION_DENIED."""
        if self.guard is not None:
            self.guard.check(self.principal, message)

    @property
    def caller(self) -> str:
        """The caller in whose line the call waits."""
        return "" if self.context is None else caller_of(self.context, self.principal)

    @property
    def threads_are_busy(self) -> bool:
        """Whether work in a thread would wait."""
        return self.admission is not None and self.admission.computing.free == 0

    def step_aside(self) -> None:
        """Release the permit, since this call waits for something, or computes elsewhere."""
        if self.permit is not None:
            self.permit.release()
            self.permit = None
            self.computes = False

    def remaining_s(self) -> float:
        """Seconds until the deadline; infinite without one."""
        if self.deadline_monotonic_s is None:
            return float("inf")
        return self.deadline_monotonic_s - time.monotonic()


def _without_count(_: Call) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A method as registered.

    Attributes
    ----------
    behaviour : callable
        unary-unary: ``async (request, call) -> reply``, or a function that returns the bytes of a reply for which
        nothing is waited for, else an awaitable; unary-stream: ``(request, call) -> async iterator``; stream-stream:
        ``(async iterator of requests, call) -> async iterator``.
    request : type
        Message class of the request.
    intake : Intake
        Reads large requests.
    admission : Admission
        Of the server.
    guard : Guard or None
        Checks the access of callers; None = every caller may do everything.
    queue : AdmissionQueue or None
        Where its calls, or a stream's messages, wait for a permit; None = they need none.
    streams_in, streams_out : bool
        Cardinality.
    default_deadline_s : float or None
        Seconds for calls without a deadline; None = no limit.
    reply_bytes : int
        Largest reply.
    holding : callable
        Of methods with many replies: from a call to a context that counts it while it is open. A layer around the
        behaviour would cost time for each reply.
    known : callable or None
        From the bytes of a small request to its cached reply, if there is one. A method with one reply then does not
        call its behaviour; a method with one reply to each request passes the reply to its behaviour instead.
    unread : InFlight or None
        Counts large replies until their callers have read them; None = they are not counted.
    """

    behaviour: Callable[..., Any]
    request: type[Message]
    intake: Intake
    admission: Admission
    guard: Guard | None = None
    queue: AdmissionQueue | None = None
    streams_in: bool = False
    streams_out: bool = False
    default_deadline_s: float | None = 60.0
    reply_bytes: int = 4 * 1024 * 1024
    holding: Callable[[Call], AbstractContextManager[None]] = _without_count
    known: Callable[[bytes], bytes | None] | None = None
    unread: InFlight | None = None


_PREFIX: Final = os.urandom(6).hex()
_numbers = itertools.count()


def request_id(context: Context) -> str:
    """The id that the caller stated, or a new one."""
    return named_in(metadata_of(context))


def metadata_of(context: Context) -> Metadata:
    """The metadata of a call; each access builds it again."""
    return context.invocation_metadata() or ()


def named_in(metadata: Metadata) -> str:
    """The request id that a caller stated, or a new one."""
    for key, value in metadata:
        if key == REQUEST_ID and isinstance(value, str) and len(value) <= _LONGEST_REQUEST_ID:
            return value
    return f"{_PREFIX}-{os.getpid():x}-{next(_numbers):x}"


def caller_of(context: Context, principal: Principal) -> str:
    """The caller in whose line a call waits: the principal, over all its connections, else the connection."""
    return principal.subject or context.peer()


def remaining_s(context: Context) -> float:
    """Seconds left of the time that the caller stated; infinite if it stated none."""
    remaining = cast("float | None", context.time_remaining())  # the stub forgets calls without deadline
    return float("inf") if remaining is None else remaining


async def run_in(executor: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a blocking function in an executor's thread."""
    return await asyncio.get_running_loop().run_in_executor(executor, copy_context().run, function, *arguments)


async def computed_in(executor: Any, call: Call, function: Callable[..., Any], *arguments: Any) -> Any:
    """Compute in an executor's thread with a permit of the threads, which the call keeps until it ends or steps aside.

    A call with several computations releases its permit in between, and is not refused again.

    Raises
    ------
    OverloadedError
        If the call would wait too long.
    """
    late = None
    if call.admission is not None:
        queue, was_admitted = call.admission.computing, call.computes
        if not was_admitted or queue.waiting or call.permit is None or call.permit.is_released:
            call.step_aside()
            never_refuse = was_admitted or call.in_stream
            call.permit = await queue.acquire(call.caller, call.remaining_s(), never_refuse=never_refuse)
            call.computes = True
        late = asyncio.get_running_loop().call_later(COMPUTING_S, call.permit.release)
    try:
        return await run_in(executor, function, *arguments)
    finally:
        if late is not None:
            late.cancel()
        if call.in_stream:  # a stream has no permit between its messages
            call.step_aside()
