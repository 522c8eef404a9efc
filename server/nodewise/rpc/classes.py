"""Classes of work, each with its admission queue."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any, Final

from nodewise.domain.errors import NodewiseError
from nodewise.rpc.admission import AdmissionQueue
from nodewise.rpc.refusals import Refusals

__all__ = ["QUESTIONS_AT_WORK", "STINT_S", "Admission", "Observe"]

QUESTIONS_AT_WORK: Final = 2
"""Concurrent questions in the event loop: one that computes, and one that waits for the store meanwhile."""
INGEST_AT_WORK: Final = 64
"""Concurrent writes: they wait for the disk together, and are written together."""
COMPUTING_AT_WORK: Final = 1
"""Concurrent calls that compute in a thread. More gain nothing, since one interpreter runs one thread at a time, and
they delay the event loop, which refuses calls under overload."""
COMPUTING_WAITS: Final = 10.0
"""Factor on the wait for a thread, compared with the event loop: a fit takes tens of milliseconds, an answer one."""
LONG_CALL_WAITS: Final = 40.0
"""Factor on the wait of a long call for the pool: it takes seconds itself."""
LONG_CALLS_WAITING: Final = 64
"""Most long calls that wait for the pool; their requests take memory."""
STINT_S: Final = 0.002
"""Seconds of computing after which a call yields the event loop, and arrivals are accepted."""
_ACCEPTING_TURNS: Final = 6
"""Turns of the event loop in which gRPC hands over a call that has arrived."""
_ACCEPTING_S: Final = 0.01
"""Longest time in which only arrivals are accepted."""


Observe = Callable[[str, str, float, str], None]


class Admission:
    """Admission queues of a server.

    Parameters
    ----------
    wait_s : float
        Longest expected wait of a question or a write, in seconds.
    pool : int
        Processes of the pool for long calls.
    """

    def __init__(self, wait_s: float, pool: int) -> None:
        self.arrivals = 0
        """Calls that gRPC has handed over so far."""
        self.replies = [0, 0]
        """Small requests without and with a cached reply."""
        self.observe: Observe | None = None
        """Called with path, transport, seconds and status code of each call that ends; set before the start."""
        self.refusals = Refusals()
        self.on_error: Callable[[str, Any, str, NodewiseError], None] | None = None
        """Called with path, context, request id and error of each call that ends by an error."""
        self.questions = AdmissionQueue(QUESTIONS_AT_WORK, wait_s)
        self.ingest = AdmissionQueue(INGEST_AT_WORK, wait_s)
        self.computing = AdmissionQueue(COMPUTING_AT_WORK, COMPUTING_WAITS * wait_s)
        self.long_calls = AdmissionQueue(pool, LONG_CALL_WAITS * wait_s, LONG_CALLS_WAITING)

    async def accept_arrivals(self) -> None:
        """Let gRPC hand over calls that have arrived before more is computed; only then can queues refuse them."""
        ends_s, last_count = time.monotonic() + _ACCEPTING_S, -1
        while self.arrivals != last_count and time.monotonic() < ends_s:
            last_count = self.arrivals
            for _ in range(_ACCEPTING_TURNS):
                os.sched_yield()  # the thread that reads sockets may have no other core
                await asyncio.sleep(0)
