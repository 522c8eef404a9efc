"""The interface to the time of day."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Source of the time of day."""

    def now_s(self) -> float:
        """Seconds since 1970 (UTC)."""


class SystemClock:
    """The machine's own clock."""

    def now_s(self) -> float:
        """Seconds since 1970 (UTC)."""
        return time.time()
