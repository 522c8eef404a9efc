"""The gate: every call passes it; what would wait too long is refused before its message is read, typed and cheaply.

Whoever computes in the event loop lets it turn between two calls, so that what has arrived meanwhile comes here. What
stays in gRPC's own queue is refused there by a bare CANCELLED, which says neither why nor how long to wait.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import grpc
import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.rpc.errors import status_of
from nodewise.rpc.lanes import Lane
from nodewise.rpc.loop_lag import LoopLag
from nodewise.rpc.overload import LONGEST_DELAY_S, OverloadedError

__all__ = ["LANES", "Gate", "Refusals", "overloaded", "pushback"]

_log = structlog.get_logger("nodewise.rpc")

TURNS: Final = 4
"""Calls of a lane at work at a time: one that computes, and some that wait for the store meanwhile."""
INGEST_TURNS: Final = 64
"""Writes at a time: they wait for the disk together, and are written together."""
COMPUTING_WAITS: Final = 10.0
"""How much longer a call may wait for a thread than for the loop: a fit takes tens of milliseconds where an
answer takes one."""
BREATH_TURNS: Final = 6
"""Turns of the loop in which what gRPC has handed over reaches the gate, and what is refused there is answered."""
LONGEST_BREATH_S: Final = 0.01
"""Of taking in what arrives faster than it is refused, before the next turn. What is not taken in grows old in gRPC's
queue, where nobody refuses it; what is, costs turns."""
LONG_WAITS: Final = 40.0
"""How much longer a long call may wait for the pool: it takes seconds itself, and who asks for it knows."""
LONG_WAITING: Final = 64
"""Long calls that wait for the pool; what they are about takes memory."""
LOG_EVERY_S: Final = 1.0
"""Refusals are logged in sums: a line each would cost more than the refusal."""

LANES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Predict": "questions",
        "BatchPredict": "questions",
        "Schedule": "questions",
        "SuggestMeasurements": "questions",
        "EstimateCompletion": "questions",
        "PredictSharing": "questions",
        "Simulate": "questions",
        "Plan": "questions",
        "Replay": "questions",
        "Diagnose": "questions",
        "Backtest": "questions",
        "GetProfile": "questions",
        "ListProfiles": "questions",
        "ListUsage": "questions",
        "StreamPredict": "questions",
        "IngestProfile": "ingest",
        "AppendProfile": "ingest",
        "IngestBatch": "ingest",
        "ReportSteps": "ingest",
        "RetractEvidence": "ingest",
        "DeleteProfile": "ingest",
        "UndeleteProfile": "ingest",
    }
)
"""The lane of each method; the others (listings of plugins and devices, watches) are always let in."""


Told = tuple[str, tuple[tuple[str, str | bytes], ...]]
"""Text and trailers of a status."""


class Refusals:
    """Statuses of refusals, made once for each delay, and a line of the log for those of a second."""

    _DELAYS_S: Final = (*(0.05 * 1.5**step for step in range(13)), LONGEST_DELAY_S)
    """Delays that are told, from 50 ms on."""

    def __init__(self) -> None:
        self._trailers: dict[float, Told] = {}
        self._refused: Counter[str] = Counter()
        self._logging: asyncio.TimerHandle | None = None

    def _status(self, error: OverloadedError) -> Told:
        """Text and trailers.

        The delay is drawn between one and two times the expected wait, so that who was refused together does not come
        back together.
        """
        wanted_s = error.wait_s * (1.0 + random.random())  # noqa: S311  # jitter, no secret
        delay_s = next((each for each in self._DELAYS_S if each >= wanted_s), self._DELAYS_S[-1])
        known = self._trailers.get(delay_s)
        if known is None:
            made = status_of(overloaded(delay_s))
            details: tuple[str, str | bytes] = ("grpc-status-details-bin", made.SerializeToString())
            known = self._trailers[delay_s] = (made.message, (details, pushback(delay_s)))
        return known

    def told(self, method: str, request_id: str, error: OverloadedError) -> Told:
        """Text and trailers of a refusal, which is counted for the log."""
        self._refused[method] += 1
        if self._logging is None:
            self._logging = asyncio.get_running_loop().call_later(LOG_EVERY_S, self._log)
        text, trailers = self._status(error)
        return text, (*trailers, ("x-request-id", request_id))

    def _log(self) -> None:
        self._logging = None
        _log.warning("calls_refused", reason=str(Reason.OVERLOADED), calls=dict(self._refused))
        self._refused.clear()


def pushback(delay_s: float) -> tuple[str, str]:
    """The trailer by which gRPC's own retries wait as told."""
    return "grpc-retry-pushback-ms", str(int(delay_s * 1e3))


def overloaded(delay_s: float) -> NodewiseError:
    """A call that would have waited too long."""
    return NodewiseError(
        Reason.OVERLOADED,
        "more is asked than this server can answer in time; retry after the delay",
        retry_after_s=delay_s,
    )


class Gate:
    """Lanes of a server, and how its loop keeps up.

    Parameters
    ----------
    wait_s : float
        Longest expected wait for the loop of a call that is taken.
    threads : int
        That compute what is not computed in the loop.
    hands : int
        That the pool for long calls has.
    """

    def __init__(self, wait_s: float, threads: int, hands: int) -> None:
        self.arrivals = 0
        """Calls that gRPC handed over so far."""
        self.refusals = Refusals()
        self.turned_away: Callable[[str, Any, str, NodewiseError], None] | None = None
        """Told of each call that ends by an error: its path, context and request id."""
        self.lag = LoopLag()
        self.questions = Lane("questions", TURNS, wait_s, self.breathe, unseen_s=lambda: self.lag.now_s)
        self.ingest = Lane("ingest", INGEST_TURNS, wait_s, self.breathe, unseen_s=lambda: self.lag.now_s)
        self.computing = Lane("computing", threads, COMPUTING_WAITS * wait_s, None)
        self.pool = Lane("pool", hands, LONG_WAITS * wait_s, None, LONG_WAITING)

    def lane(self, method: str) -> Lane | None:
        """The lane of a method, by its name; None = always let in."""
        name = LANES.get(method)
        return None if name is None else getattr(self, name)

    async def breathe(self) -> None:
        """Let the loop take in what has arrived, and what arrives meanwhile, but not for ever."""
        end_s, seen = time.monotonic() + LONGEST_BREATH_S, -1
        while self.arrivals != seen and time.monotonic() < end_s:
            seen = self.arrivals
            for _ in range(BREATH_TURNS):
                os.sched_yield()  # the thread that reads sockets may have no other core
                await asyncio.sleep(0)

    async def refuse(self, context: Any, method: str, request_id: str, error: OverloadedError) -> NoReturn:
        """End a call that is not taken."""
        await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, *self.refusals.told(method, request_id, error))
        raise AssertionError("abort always raises")
