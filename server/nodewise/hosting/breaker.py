"""A circuit breaker: calls to a plugin that fails repeatedly pause for a while, and one trial call ends the pause.

The trial is the request that failed, sent again by a thread of the breaker: no caller waits for it. A request that
cannot be repeated, such as to read a consumed stream, is tried by the next caller.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

__all__ = ["Breaker"]

FAILURES: Final = 3
"""Failures within WINDOW_S that open it: one may be chance, each may cost its caller the whole budget of a call."""
WINDOW_S: Final = 60.0
OPEN_S: Final = 5.0
"""How long it stays open the first time; twice as long after each trial that fails, up to MOST_OPEN_S."""
MOST_OPEN_S: Final = 300.0
SOON_S: Final = 0.1
"""Seconds after which callers that ask during a trial may retry: most calls take milliseconds."""

Later = Callable[[float, Callable[[], None]], Callable[[], None]]
"""Schedules work after so many seconds, and returns a function that cancels it."""


def later(seconds: float, work: Callable[[], None]) -> Callable[[], None]:
    """Run work later in a daemon thread; returns a function that cancels it."""
    timer = threading.Timer(seconds, work)
    timer.name, timer.daemon = "nodewise-breaker", True
    timer.start()
    return timer.cancel


class Breaker:
    """The circuit breaker of one plugin. Threads share it.

    Closed, it counts failures. Open, it rejects every call until its time is over; then it admits one thread, that of
    the trial or, where there can be none, of a caller. It closes when the method that failed succeeds: an assessment
    says nothing about a prediction. Another failure opens it for twice as long.

    Parameters
    ----------
    clock_s : callable
        A monotonic clock, in seconds.
    later : callable
        Schedules trials.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic, later: Later = later) -> None:
        self._clock_s = clock_s
        self._later = later
        self._again: Callable[[], object] | None = None
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._failures: deque[float] = deque(maxlen=FAILURES)
        self._open_s = OPEN_S
        self._opened_s: float | None = None
        self._trying_s: float | None = None
        self._trying = 0
        self._is_ended = False
        self._method = ""
        self._listeners: list[Callable[[bool], None]] = []
        self.epoch = 0
        """Another number after each change."""

    @property
    def is_closed(self) -> bool:
        """Whether every caller may call the plugin."""
        return self._opened_s is None

    def listen(self, listener: Callable[[bool], None]) -> Callable[[], None]:
        """Call a listener at each change, in the thread of the change: True = the breaker is closed now.

        Returns a function that removes it: generations of plugins may share a breaker, and a listener belongs to one.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def wait_s(self) -> float:
        """0 = call now, and record the outcome; else seconds until a call may succeed again."""
        if self.is_closed:
            return 0.0
        with self._lock:
            if self._opened_s is None:
                return 0.0
            now_s, caller = self._clock_s(), threading.get_ident()
            left_s = self._opened_s + self._open_s - now_s
            if self._again is not None:
                is_trial = self._trying_s is not None and caller == self._trying
                return 0.0 if is_trial else max(left_s, SOON_S)
            if left_s > 0.0:
                return left_s
            if self._trying_s is not None and now_s - self._trying_s < self._open_s and caller != self._trying:
                return self._open_s - (now_s - self._trying_s)
            self._trying_s, self._trying = now_s, caller
            return 0.0

    def record_failure(self, method: str, retry: Callable[[], object] | None = None) -> bool:
        """Record a failed call; returns whether this opened the breaker.

        ``retry`` repeats the call and records its outcome here; None = the call cannot be repeated.
        """
        now_s = self._clock_s()
        with self._lock:
            if self._opened_s is not None:
                if self._trying_s is not None:
                    self._open_s = min(2.0 * self._open_s, MOST_OPEN_S)
                    self._opened_s, self._trying_s = now_s, None
                return False
            self._failures.append(now_s)
            self._method = method
            if len(self._failures) < FAILURES or now_s - self._failures[0] > WINDOW_S:
                return False
            self._opened_s = now_s
            self._again = retry
            self.epoch += 1
            self._plan()
        self._notify(is_closed=False)
        return True

    def _plan(self) -> None:
        """Schedule a trial for the end of the pause."""
        if self._again is not None and not self._is_ended:
            self._cancel = self._later(self._open_s, self._try)

    def _try(self) -> None:
        """Repeat the failed call."""
        with self._lock:
            retry = self._again
            if retry is None or self._is_ended:
                return
            self._trying_s, self._trying = self._clock_s(), threading.get_ident()
        try:
            retry()
        finally:
            with self._lock:
                if self._again is retry:  # it is open as before
                    self._trying_s = None
                    self._plan()

    def end(self) -> None:
        """Make no further trials."""
        with self._lock:
            self._is_ended = True
            self._again = None
            if self._cancel is not None:
                self._cancel()

    def record_success(self, method: str) -> bool:
        """Record a successful call; returns whether this closed the breaker."""
        if self.is_closed:
            return False
        with self._lock:
            if self._opened_s is None or self._trying_s is None or method != self._method:
                return False
            self._opened_s = self._trying_s = self._again = None
            self._open_s = OPEN_S
            self._failures.clear()
            self.epoch += 1
        self._notify(is_closed=True)
        return True

    def _notify(self, *, is_closed: bool) -> None:
        for listener in tuple(self._listeners):
            listener(is_closed)
