"""A server inside this process, for the command line and for tests: the same service over a real socket."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType

import structlog

from nodewise.hosting.registry import Registry
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.serve import application_of, new_event_loop
from nodewise.runtime.settings import Settings

__all__ = ["EmbeddedServer"]


class EmbeddedServer:
    """Serves on loopback, on a port that the system picks, from entering to leaving the context.

    Parameters
    ----------
    settings : Settings or None
        None = a store in memory.
    registry : Registry or None
        Plugins; None = those installed.
    """

    def __init__(self, settings: Settings | None = None, registry: Registry | None = None) -> None:
        self._settings = settings or Settings(store="memory:", grace_s=1.0)
        self._registry = registry
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nodewise-embedded", daemon=True)
        self.target = ""

    def __enter__(self) -> EmbeddedServer:
        if not structlog.is_configured():
            configure_logging("warning")
        self._application = application_of(self._settings, self._registry)
        self._thread.start()
        starting = asyncio.run_coroutine_threadsafe(self._application.start("127.0.0.1:0"), self._loop)
        self.target = f"127.0.0.1:{starting.result()}"
        return self

    def wait_until_scored(self, timeout_s: float) -> bool:
        """Wait until every commit so far is scored; False = some were left after so many seconds."""
        scoring = self._application.scoring
        return scoring is None or scoring.wait_until_idle(timeout_s)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._application.stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
