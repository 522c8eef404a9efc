"""How late the event loop is: what arrives while it computes waits in gRPC's queue, where nobody can count it."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Final

import structlog

__all__ = ["LATE_S", "LoopLag"]

_log = structlog.get_logger("nodewise.rpc")

EVERY_S: Final = 0.05
"""Between two looks."""
MEMORY_S: Final = 10.0
"""In which the worst lag is half forgotten and more (to 1/e)."""
LATE_S: Final = 0.25
"""Lag that is logged, once in ``MEMORY_S``: a call that computes in the loop lets others have it every few
milliseconds, so something else holds it, or the machine has no processor for it."""


class LoopLag:
    """A timer's time against the time when it was called."""

    def __init__(self) -> None:
        self._due_s = math.inf
        self._last_s = self._worst_s = 0.0
        self._logged_s = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def now_s(self) -> float:
        """Seconds that a call which is seen now may have waited unseen."""
        return max(self._last_s, time.monotonic() - self._due_s)

    @property
    def worst_s(self) -> float:
        """The most of the last seconds, what is older counting less and less."""
        return max(self._worst_s, self.now_s)

    def start(self) -> None:
        """Look from now on; in the loop."""
        self._due_s = time.monotonic() + EVERY_S
        self._timer = asyncio.get_running_loop().call_later(EVERY_S, self._look)

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._due_s, self._last_s = math.inf, 0.0

    def _look(self) -> None:
        now_s = time.monotonic()
        self._last_s = max(0.0, now_s - self._due_s)
        self._worst_s = max(self._last_s, self._worst_s * math.exp(-(self._last_s + EVERY_S) / MEMORY_S))
        if self._last_s > LATE_S and now_s - self._logged_s > MEMORY_S:
            self._logged_s = now_s
            _log.warning("loop_late", lag_ms=round(self._last_s * 1e3))
        self.start()
