"""A runner that is a thread of this process: at once, and with whatever plugins this process was given."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Final

from nodewise.domain.budget import Budget
from nodewise.ports.compute import LongRun, Work
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.compute.pool import Tools

__all__ = ["ThreadRunner"]

READ_AHEAD: Final = 16
"""Messages that wait to be taken: work that is ahead of its caller waits."""
ENDING_S: Final = 2.0
"""Patience with a thread at the end; one that never looks at its budget cannot be ended."""


class _Run:
    """One piece of work, in a thread of its own."""

    def __init__(self, work: Work[Any], argument: Any, budget: Budget, workshop: Workshop) -> None:
        self._loop = asyncio.get_running_loop()
        self.messages: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self.room = threading.Semaphore(READ_AHEAD)
        self.budget = budget
        self.thread = threading.Thread(
            target=self._do, args=(work, argument, workshop), name=f"nodewise-{work.__name__.strip('_')}", daemon=True
        )
        self.thread.start()

    def _do(self, work: Work[Any], argument: Any, workshop: Workshop) -> None:
        end: BaseException | None = None
        try:
            LongRun(self.budget, self._send).do(work, workshop, argument)
        except BaseException as error:  # noqa: BLE001  # told to whoever waits, who knows what to make of it
            end = error
        self._pass_on(end)

    def _send(self, message: bytes) -> None:
        if not self.budget.ended:
            self.room.acquire()
            self._pass_on(message)

    def _pass_on(self, message: bytes | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self.messages.put_nowait, message)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            self.budget.end()


class ThreadRunner:
    """Implements Runner, each piece of work in a thread of its own."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.is_idle = True

    async def start(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """As the protocol says."""
        self._runs = [run for run in self._runs if run.thread.is_alive()]
        self._runs.append(_Run(work, argument, Budget(end_s - time.monotonic()), tools.workshop))
        self.is_idle = False

    async def receive(self) -> bytes | None:
        """As the protocol says."""
        run = self._runs[-1]
        message = await run.messages.get()
        run.room.release()
        if isinstance(message, bytes):
            return message
        self.is_idle = True
        if message is not None:
            raise message
        return None

    async def cancel(self) -> None:
        """As the protocol says; a thread goes on until it looks at its budget."""
        self._runs[-1].budget.end()
        self._runs[-1].room.release()
        self.is_idle = True

    async def close(self) -> None:
        """As the protocol says."""
        for run in self._runs:
            await asyncio.to_thread(run.thread.join, ENDING_S)
