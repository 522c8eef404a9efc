"""A runner that is a thread of the server's process: it starts at once and uses the plugins of this process."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Final

from nodewise.domain.budget import Budget
from nodewise.ports.compute import LongRun, Work
from nodewise.runtime.compute.pool import Tools

__all__ = ["ThreadRunner"]

READ_AHEAD: Final = 16
"""Most messages that wait for the caller; work that is further ahead blocks."""
ENDING_S: Final = 2.0
"""Seconds to wait for a thread when the runner closes. A thread that never checks its budget cannot be ended."""


class ThreadRunner:
    """Implements Runner with one thread for each piece of work."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.is_idle = True

    async def start(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """Implement ``Runner.start``."""
        loop, self._budget = asyncio.get_running_loop(), (budget := Budget(end_s - time.monotonic()))
        messages: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._messages, self._room = messages, (room := threading.Semaphore(READ_AHEAD))

        def pass_on(message: bytes | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(messages.put_nowait, message)
            except RuntimeError:  # the event loop has ended, and its caller with it
                budget.end()

        def send(message: bytes) -> None:
            if not budget.ended:
                room.acquire()
                pass_on(message)

        def do() -> None:
            end: BaseException | None = None
            try:
                LongRun(budget, send).do(work, tools.workshop, argument)
            except BaseException as error:  # noqa: BLE001  # the waiting caller receives it
                end = error
            pass_on(end)

        thread = threading.Thread(target=do, name=f"nodewise-{work.__name__.strip('_')}", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        self.is_idle = False
        thread.start()

    async def receive(self) -> bytes | None:
        """Implement ``Runner.receive``."""
        message = await self._messages.get()
        self._room.release()
        if isinstance(message, bytes):
            return message
        self.is_idle = True
        if message is not None:
            raise message
        return None

    async def cancel(self) -> None:
        """Implement ``Runner.cancel``; the thread continues until it checks its budget."""
        self._budget.end()
        self._room.release()
        self.is_idle = True

    async def close(self) -> None:
        """Implement ``Runner.close``."""
        for thread in self._threads:
            await asyncio.to_thread(thread.join, ENDING_S)
