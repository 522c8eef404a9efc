"""A runner that is a thread of this process: at once, and with whatever plugins this process was given."""

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
"""Messages that wait to be taken: work that is ahead of its caller waits."""
ENDING_S: Final = 2.0
"""Patience with a thread at the end; one that never looks at its budget cannot be ended."""


class ThreadRunner:
    """Implements Runner, each piece of work in a thread of its own."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []
        self.is_idle = True

    async def start(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """As the protocol says."""
        loop, self._budget = asyncio.get_running_loop(), (budget := Budget(end_s - time.monotonic()))
        messages: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._messages, self._room = messages, (room := threading.Semaphore(READ_AHEAD))

        def pass_on(message: bytes | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(messages.put_nowait, message)
            except RuntimeError:  # the loop has ended, and with it the caller
                budget.end()

        def send(message: bytes) -> None:
            if not budget.ended:
                room.acquire()
                pass_on(message)

        def do() -> None:
            end: BaseException | None = None
            try:
                LongRun(budget, send).do(work, tools.workshop, argument)
            except BaseException as error:  # noqa: BLE001  # the caller that waits gets it
                end = error
            pass_on(end)

        thread = threading.Thread(target=do, name=f"nodewise-{work.__name__.strip('_')}", daemon=True)
        self._threads = [each for each in self._threads if each.is_alive()] + [thread]
        self.is_idle = False
        thread.start()

    async def receive(self) -> bytes | None:
        """As the protocol says."""
        message = await self._messages.get()
        self._room.release()
        if isinstance(message, bytes):
            return message
        self.is_idle = True
        if message is not None:
            raise message
        return None

    async def cancel(self) -> None:
        """As the protocol says; a thread goes on until it looks at its budget."""
        self._budget.end()
        self._room.release()
        self.is_idle = True

    async def close(self) -> None:
        """As the protocol says."""
        for thread in self._threads:
            await asyncio.to_thread(thread.join, ENDING_S)
