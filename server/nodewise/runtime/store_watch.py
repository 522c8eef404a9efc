"""Watching the store: health and the log say what ails it, within a second or so, and when it is well again."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.store import ProfileStore

__all__ = ["LOOK_S", "StoreWatch"]

_log = structlog.get_logger(__name__)

LOOK_S: Final = 0.5
"""Between two looks."""
_UNKNOWN: Final = "unknown"


class StoreWatch:
    """Looks at the store of this process again and again. Other workers have their own view, and tell it themselves.

    Parameters
    ----------
    store : ProfileStore
        Looked at.
    tell : callable
        Told whenever another cause ails the store; empty = it is well.
    executor : Executor
        A thread of its own: a look may take seconds where somebody holds a lock.
    tell_traces : callable or None
        Told the same of where traces are kept.

    Attributes
    ----------
    cause : str
        What ails the store; empty = nothing.
    since_s : float
        Since when that is so, in seconds since 1970.
    counts : Counter of str
        How often it fell ill, by cause: for metrics.
    """

    def __init__(
        self,
        store: ProfileStore,
        tell: Callable[[str], Awaitable[None]],
        executor: Executor,
        tell_traces: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        self._store = store
        self._tell = tell
        self._tell_traces = tell_traces
        self._away = False
        self._executor = executor
        self.cause = ""
        self.since_s = time.time()
        self.counts: Counter[str] = Counter()

    async def run(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            cause = await loop.run_in_executor(self._executor, self._look)
            if cause != self.cause:
                await self._changed(cause)
            problem = await loop.run_in_executor(self._executor, self._store.traces.check)
            if self._tell_traces is not None and bool(problem) != self._away:
                self._away = bool(problem)
                await self._tell_traces(problem)
            await asyncio.sleep(LOOK_S)

    def _look(self) -> str:
        try:
            self._store.check()
        except NodewiseError as error:
            return error.metadata.get("cause") or _UNKNOWN
        except Exception:  # noqa: BLE001 - a store of others may raise anything, and is not well then
            _log.exception("store_check_failed")
            return _UNKNOWN
        return ""

    async def _changed(self, cause: str) -> None:
        now_s = time.time()
        about = {"before": self.cause, "after_s": round(now_s - self.since_s, 3)}
        self.cause, self.since_s = cause, now_s
        if cause:
            self.counts[cause] += 1
            _log.error("store_unwell", cause=cause, **about)
        else:
            _log.info("store_well", **about)
        await self._tell(cause)
