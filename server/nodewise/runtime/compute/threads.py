"""A hand that is a thread of this process: at once, and with whatever plugins this process was given."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, Final

from nodewise.domain.budget import Budget
from nodewise.ports.compute import LongRun, Work
from nodewise.rpc.long_call import Workshop
from nodewise.runtime.compute.pool import Tools

__all__ = ["ThreadHand"]

READ_AHEAD: Final = 16
"""Messages that wait to be taken: work that is ahead of its caller waits."""
ENDING_S: Final = 2.0
"""Patience with a thread at the end; one that never looks at its budget cannot be ended."""


class ThreadHand:
    """Implements Hand, each piece of work in a thread of its own."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._budget = Budget()
        self.idle = True

    async def give(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """As the protocol says."""
        self._loop = asyncio.get_running_loop()
        self._messages: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue()
        self._room = threading.Semaphore(READ_AHEAD)
        self._budget = Budget(end_s - time.monotonic())
        self.idle = False
        self._thread = threading.Thread(
            target=self._do,
            args=(work, argument, tools.workshop),
            name=f"nodewise-{work.__name__.strip('_')}",
            daemon=True,
        )
        self._thread.start()

    def _do(self, work: Work[Any], argument: Any, workshop: Workshop) -> None:
        end: BaseException | None = None
        try:
            LongRun(self._budget, self._put).do(work, workshop, argument)
        except BaseException as error:  # noqa: BLE001  # told to whoever waits, who knows what to make of it
            end = error
        self.idle = True
        self._pass_on(end)

    def _put(self, message: bytes) -> None:
        if not self._budget.ended:
            self._room.acquire()
            self._pass_on(message)

    def _pass_on(self, message: bytes | BaseException | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._messages.put_nowait, message)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            self._budget.end()

    async def receive(self) -> bytes | None:
        """As the protocol says."""
        message = await self._messages.get()
        self._room.release()
        if isinstance(message, BaseException):
            raise message
        return message

    def end(self) -> None:
        """As the protocol says."""
        self._budget.end()
        if self._thread is not None:
            self._room.release()

    async def ended(self) -> bool:
        """As the protocol says: another takes the place of a thread that goes on until it looks at its budget."""
        return self.idle

    def close(self) -> None:
        """As the protocol says."""
        if self._thread is not None:
            self._thread.join(ENDING_S)
