"""Admission: how many calls of a class are at work at a time, which wait, and which are refused.

Each class of work has one bounded queue of permits. A call that finds none free waits in its caller's line. Permits go
round the callers, so that a caller with many calls delays mostly its own. One test refuses a call: it would wait longer
than the queue allows, or than a quarter of the time that the call has left.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from typing import Final

__all__ = ["AdmissionQueue", "OverloadedError", "Permit"]

WAIT_SHARE: Final = 0.25
"""Most of a call's remaining time that it may wait. The rest is for the work, and for a line that slows down."""
_NEWEST_SHARE: Final = 1.0 / 8.0
"""Weight of the newest interval between two permits in their mean: an eighth follows a change within ten calls."""


class OverloadedError(Exception):
    """A call is refused.

    Parameters
    ----------
    wait_s : float
        Expected wait for a permit, in seconds.
    """

    def __init__(self, wait_s: float) -> None:
        super().__init__()
        self.wait_s = wait_s


class Permit:
    """The right of one call to be at work, until it is released. A second release does nothing."""

    __slots__ = ("_queue",)

    def __init__(self, queue: AdmissionQueue) -> None:
        self._queue: AdmissionQueue | None = queue

    @property
    def is_released(self) -> bool:
        """Whether another call may have it now."""
        return self._queue is None

    def release(self) -> None:
        """Give it to the next call that waits."""
        queue, self._queue = self._queue, None
        if queue is not None:
            queue._release()  # noqa: SLF001  # two halves of one thing


class AdmissionQueue:
    """Permits of a class of work, and the calls that wait for one. Belongs to the event loop's thread.

    Parameters
    ----------
    permits : int
        Calls at work at a time. As many more may always wait, so that the queue never runs dry.
    wait_s : float
        Longest expected wait of a call, in seconds.
    most_waiting : int
        Calls that wait. Above it a caller may have no more waiting than its equal share.

    Attributes
    ----------
    free : int
        Permits that a call may take at once. 0 while any call waits.
    waiting, refused : int
        Calls that wait; that were refused so far.
    waited_s : float
        Time that calls have waited so far, together, in seconds.
    permits : int
        As given.
    """

    def __init__(self, permits: int, wait_s: float, most_waiting: int = 1024) -> None:
        self.free = self.permits = permits
        self.waiting = self.refused = 0
        self.waited_s = 0.0
        self._wait_s = wait_s
        self._most_waiting = most_waiting
        self._lines: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns
        self._interval_s = 0.0
        self._released_s = 0.0

    def take(self) -> Permit:
        """A free permit; ``free`` must be above 0."""
        self.free -= 1
        return Permit(self)

    async def acquire(self, caller: str, remaining_s: float = math.inf, *, never_refuse: bool = False) -> Permit:
        """A permit, after the calls before this one.

        Parameters
        ----------
        caller : str
            Whose line it waits in.
        remaining_s : float
            Time that the call has left, in seconds.
        never_refuse : bool
            Wait however long it takes. For messages of a stream: the next message is not received meanwhile.

        Raises
        ------
        OverloadedError
            The call would wait too long.
        """
        if self.free > 0:
            return self.take()
        if not never_refuse:
            self._check(caller, remaining_s)
        if not self.waiting:
            self._released_s = time.monotonic()
        ready = asyncio.get_running_loop().create_future()
        self._lines.setdefault(caller, deque()).append(ready)
        self.waiting += 1
        begin_s = time.monotonic()
        try:
            await ready
        except BaseException:
            self._leave(caller, ready)
            raise
        finally:
            self.waited_s += time.monotonic() - begin_s
        return Permit(self)

    def expected_wait_s(self, caller: str) -> float:
        """Wait of one more call of a caller, in seconds: the calls before it times the mean interval of permits."""
        own = len(self._lines.get(caller, ())) + 1
        ahead = sum(min(len(line), own) for line in self._lines.values())
        return (ahead + 1) * self._interval_s

    def _check(self, caller: str, remaining_s: float) -> None:
        if self.waiting < self.permits:
            return
        wait_s = self.expected_wait_s(caller)
        is_full = self.waiting >= self._most_waiting
        if wait_s > min(self._wait_s, WAIT_SHARE * remaining_s) or (
            is_full and len(self._lines.get(caller, ())) >= self._most_waiting // len(self._lines)
        ):
            self.refused += 1
            raise OverloadedError(wait_s)

    def _leave(self, caller: str, ready: asyncio.Future[None]) -> None:
        """A call ends before it is at work."""
        line = self._lines.get(caller)
        if line is not None and ready in line:
            line.remove(ready)
            self.waiting -= 1
            if not line:
                del self._lines[caller]
        elif not ready.cancelled():  # it was given a permit at the same moment
            self._release()

    def _release(self) -> None:
        now_s = time.monotonic()
        if self.waiting:
            self._interval_s += _NEWEST_SHARE * (now_s - self._released_s - self._interval_s)
        self._released_s = now_s
        while self._lines:
            caller, line = next(iter(self._lines.items()))
            del self._lines[caller]
            ready = line.popleft()
            self.waiting -= 1
            if line:
                self._lines[caller] = line
            if not ready.done():
                ready.set_result(None)
                return
        self.free += 1
