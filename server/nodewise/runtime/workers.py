"""A worker process, as its supervisor controls it."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

import structlog

from nodewise.processes.channel import AsyncChannel
from nodewise.processes.spawning import spawn_connected
from nodewise.runtime.settings import Settings

__all__ = ["Worker"]

_log = structlog.get_logger(__name__)

ENDING_S: Final = 5.0
"""Seconds for a worker to end its pool and threads, after the drain delay and the grace."""


class Worker:
    """A worker process. The constructor starts it as a spare, which imports what it needs; :meth:`messages` begins it.

    Parameters
    ----------
    settings : Settings
        Settings to serve with.
    listen, http : str
        HOST:PORT to share; an empty ``http`` = no HTTP.
    metrics : str
        Folder of the metrics of all workers.

    Attributes
    ----------
    is_stale : bool
        Whether it must end as soon as another worker serves in its place.
    is_draining : bool
        Whether the supervisor has asked it to end.
    is_patient : bool
        Whether other workers serve, so that it may wait until all plugins are loaded.
    serving_since_s : float or None
        When it began to answer calls, by the monotonic clock; None = not yet.

    Raises
    ------
    OSError
        If the system cannot start a process.
    """

    def __init__(self, settings: Settings, listen: str, http: str, metrics: str) -> None:
        self.settings = settings
        self._order = {"settings": settings.model_dump(mode="json"), "listen": listen, "http": http, "metrics": metrics}
        self.process, self._socket = spawn_connected(
            "nodewise.runtime.worker:main",
            not settings.plugins_folder,
            name="nodewise-spare",
            death_signal=signal.SIGTERM,
        )
        self._channel: AsyncChannel | None = None
        self._started_s = time.monotonic()
        self.serving_since_s: float | None = None
        self.is_stale = self.is_draining = self.is_patient = False

    @property
    def is_serving(self) -> bool:
        """Whether it answers calls, and has not been asked to end."""
        return self.serving_since_s is not None and not self.is_draining

    @property
    def age_s(self) -> float:
        """Seconds since its start."""
        return time.monotonic() - self._started_s

    @property
    def served_s(self) -> float:
        """Seconds for which it has answered calls."""
        return 0.0 if self.serving_since_s is None else time.monotonic() - self.serving_since_s

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Send the worker its settings, and yield its messages until the channel ends."""
        self._started_s = time.monotonic()
        self._channel = await AsyncChannel.of(self._socket)
        with suppress(EOFError, OSError):
            await self._channel.send(json.dumps({**self._order, "patient": self.is_patient}).encode())
            while True:
                message = json.loads(await self._channel.receive())
                if message["say"] == "serving":
                    self.serving_since_s = time.monotonic()
                yield message

    async def reload(self) -> None:
        """Ask it to swap plugins in place."""
        assert self._channel is not None
        with suppress(OSError):
            await self._channel.send(b"reload")

    async def drain(self) -> None:
        """Ask it to end; kill it after the drain delay, the grace and ``ENDING_S``."""
        promised_s = self.settings.drain_delay_s + self.settings.grace_s + ENDING_S
        if await self.process.stop(promised_s) == -signal.SIGKILL:
            _log.error("worker_killed", pid=self.process.pid, reason="it did not end in time")

    def close(self) -> None:
        """Close the channel, after the process has ended."""
        if self._channel is not None:
            self._channel.close()
        self._socket.close()
