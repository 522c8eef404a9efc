"""Long calls: computed in a pool, with progress, and ended as soon as the caller cancels.

A behaviour checks its request and returns the work as a :class:`LongCall`; :func:`stream_result` and :func:`unary` run
it.
"""

from __future__ import annotations

import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from functools import wraps
from typing import Any, Final, Protocol, TypeVar

from nodewise.estimation.answer.answers import Answers
from nodewise.ports.compute import Compute, Work
from nodewise.ports.limits import Limits
from nodewise.profiles.reading import TraceLoader
from nodewise.rpc.calls import Call
from nodewise.rpc.sources import ProfileSources

__all__ = ["ANSWER_SHARE", "JobService", "LongCall", "Workshop", "stream_result", "unary"]

ANSWER_SHARE: Final = 0.95
"""Share of a call's time for computing; the rest is for the reply."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Workshop:
    """The objects that long work needs; they are equal in every process, and so give the same answers.

    Attributes
    ----------
    answers : Answers
        Plugins, catalogue, and lessons.
    traces : TraceLoader
        Reads the traces that profiles name.
    limits : Limits
        Caps of a call.
    """

    answers: Answers
    traces: TraceLoader
    limits: Limits


@dataclass(frozen=True, slots=True, eq=False)
class LongCall:
    """The work of a call.

    Attributes
    ----------
    work : Work
        Yields the messages, the result last.
    argument : object
        Its argument: checked values, or the request's bytes where checking takes long.
    most_s : float
        Seconds after which the work must return the best result so far, if that is before the deadline.
    """

    work: Work[Workshop]
    argument: Any
    most_s: float = math.inf


@dataclass(slots=True, eq=False)
class JobService:
    """A service with long calls about jobs.

    Attributes
    ----------
    answers : Answers
        Has the plugins and the catalogue.
    sources : ProfileSources
        Finds profiles.
    limits : Limits
        Caps of a call.
    compute : Compute
        The pool that computes long calls.
    """

    answers: Answers
    sources: ProfileSources
    limits: Limits
    compute: Compute[Workshop]


class LongService(Protocol):
    """A service with long calls."""

    compute: Compute[Workshop]


ServiceT = TypeVar("ServiceT", bound=LongService)
RequestT = TypeVar("RequestT")
Asking = Callable[[ServiceT, RequestT, Call], Awaitable[LongCall]]


def stream_result(
    asking: Asking[ServiceT, RequestT],
) -> Callable[[ServiceT, RequestT, Call], AsyncGenerator[bytes, None]]:
    """The behaviour of a method that replies with progress first, then with its result."""

    @wraps(asking)
    async def behaviour(service: ServiceT, request: RequestT, call: Call) -> AsyncGenerator[bytes, None]:
        now_s, remaining_s = time.monotonic(), call.remaining_s()
        long_call = await asking(service, request, call)
        call.step_aside()
        end_s = now_s + min(remaining_s * ANSWER_SHARE, long_call.most_s)
        permit = None
        if call.admission is not None:
            queue = call.admission.long_calls
            permit = await queue.acquire(call.caller, call.remaining_s(), never_refuse=call.in_stream)
        try:
            # A cancellation arrives wherever this waits, and ends the work.
            running = service.compute.run(long_call.work, long_call.argument, end_s, now_s + remaining_s)
            async with aclosing(running) as messages:
                async for message in messages:
                    yield message
        finally:
            if permit is not None:
                permit.release()

    return behaviour


def unary(asking: Asking[ServiceT, RequestT]) -> Callable[[ServiceT, RequestT, Call], Coroutine[Any, Any, bytes]]:
    """The behaviour of a method that replies with its result alone."""
    every = stream_result(asking)

    @wraps(asking)
    async def behaviour(service: ServiceT, request: RequestT, call: Call) -> bytes:
        reply = b""
        async with aclosing(every(service, request, call)) as messages:
            async for message in messages:
                reply = message
        return reply

    return behaviour
