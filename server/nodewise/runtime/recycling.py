"""Which worker has grown so large that another is to take its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from nodewise.runtime.members import Member
from nodewise.runtime.settings import Settings
from nodewise.runtime.vitals import memory_bytes, rss_bytes

__all__ = ["Recycling", "limit_bytes"]

_log = structlog.get_logger(__name__)

LEAST_BYTES: Final = 1 << 30
"""Least limit that is not stated: a worker takes 250 MB, its caches some hundreds, and while one takes another's place
there is room for both in a machine of twice as much."""
LEAST_LIFE_S: Final = 60.0
"""Of a worker that is replaced: a limit below what serving takes costs a restart a minute and not all the time."""


def limit_bytes(settings: Settings, memory: int | None) -> int:
    """Memory beyond which a worker is replaced; 0 = none.

    Parameters
    ----------
    memory : int or None
        Of the machine, or what its container may use.
    """
    if settings.recycle_bytes is not None:
        return settings.recycle_bytes
    if memory is None or settings.store.startswith("memory:"):  # which would be lost with its worker
        return 0
    return max(LEAST_BYTES, memory // 2 // settings.workers)


class Recycling:
    """Looks at workers' memory.

    Parameters
    ----------
    settings : Settings
        Of the workers.
    """

    def __init__(self, settings: Settings) -> None:
        self._limit_bytes = limit_bytes(settings, memory_bytes())

    def mark(self, serving: Sequence[Member]) -> None:
        """Mark the largest worker beyond the limit as stale, so that another takes its place first."""
        if not self._limit_bytes:
            return
        sized = [(rss_bytes(member.pid), member) for member in serving if member.served_s() >= LEAST_LIFE_S]
        found, member = max(sized, key=lambda each: each[0], default=(0, None))
        if member is not None and found > self._limit_bytes:
            member.stale = True
            _log.warning("worker_recycled", pid=member.pid, rss_bytes=found, limit_bytes=self._limit_bytes)
