"""A circuit breaker: a plugin that fails again and again is left alone for a while, and then tried with one call.

The trial is the request that failed, sent again by a thread of the breaker: no caller waits for it. What cannot be
asked again, such as to read a stream that was read, is tried by the next caller.
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
"""Has something done after so many seconds, and gives what cancels that."""


def later(seconds: float, work: Callable[[], None]) -> Callable[[], None]:
    """In a thread of its own, which keeps no process from its end."""
    timer = threading.Timer(seconds, work)
    timer.name, timer.daemon = "nodewise-breaker", True
    timer.start()
    return timer.cancel


class Breaker:
    """Of one plugin. Threads share it.

    Closed, it counts failures. Open, it rejects every call until its time is over; then it admits one thread, that of
    the trial or, where there can be none, of a caller. It closes when the method that failed succeeds: an assessment
    says nothing about a prediction. Another failure opens it for twice as long.

    Parameters
    ----------
    clock_s : callable
        A clock that never goes back, in seconds.
    later : callable
        Where trials are made.
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
        """Whether every caller may ask."""
        return self._opened_s is None

    def listen(self, listener: Callable[[bool], None]) -> Callable[[], None]:
        """Call a listener at each change, in the thread of the change: True = it is closed now.

        Returns what ends that: generations of plugins may share a breaker, and the listener belongs to one.
        """
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def wait_s(self) -> float:
        """0 = ask now, and say what came of it; else seconds until it may be worth asking again."""
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
        """A call failed; whether it is open since now.

        ``again`` asks the same once more, and says here what came of it; None = that cannot be done.
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
        """Have a trial made when the time is over."""
        if self._again is not None and not self._is_ended:
            self._cancel = self._later(self._open_s, self._try)

    def _try(self) -> None:
        """Ask what failed once more."""
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
        """Make no trial any more."""
        with self._lock:
            self._is_ended = True
            self._again = None
            if self._cancel is not None:
                self._cancel()

    def record_success(self, method: str) -> bool:
        """A call succeeded; whether it is closed since now."""
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
