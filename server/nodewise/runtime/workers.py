"""A worker as its supervisor sees it."""

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
"""Patience with a worker that ends, beyond the delay and the grace that it was promised: its pool and threads."""


class Worker:
    """A worker process, started with it: a spare that has imported what it needs, until :meth:`messages` is iterated.

    Parameters
    ----------
    settings : Settings
        That it is to serve with.
    listen, http : str
        HOST:PORT to share; the one for HTTP empty = none.
    metrics : str
        Folder of the metrics of all workers.

    Attributes
    ----------
    is_stale : bool
        Whether it is to go as soon as another serves in its place.
    is_draining : bool
        Whether the supervisor has asked it to end.
    is_patient : bool
        Whether others serve, so that it may wait until all plugins are loaded.
    serving_since_s : float or None
        By the monotonic clock; None = it does not answer calls yet.

    Raises
    ------
    OSError
        There is no process to be had.
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
        """How long ago it was started."""
        return time.monotonic() - self._started_s

    @property
    def served_s(self) -> float:
        """How long it has answered calls."""
        return 0.0 if self.serving_since_s is None else time.monotonic() - self.serving_since_s

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """What it tells, after it was told what to do; ends when it tells nothing more."""
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
        """Let it see whether other plugins can take over in place."""
        assert self._channel is not None
        with suppress(OSError):
            await self._channel.send(b"reload")

    async def drain(self) -> None:
        """Let it end, with the patience that it was promised."""
        promised_s = self.settings.drain_delay_s + self.settings.grace_s + ENDING_S
        if await self.process.stop(promised_s) == -signal.SIGKILL:
            _log.error("worker_killed", pid=self.process.pid, reason="it did not end in time")

    def close(self) -> None:
        """Let go of the channel, once the process has ended."""
        if self._channel is not None:
            self._channel.close()
        self._socket.close()
