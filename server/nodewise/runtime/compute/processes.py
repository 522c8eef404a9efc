"""A runner that is a process: its work blocks neither the event loop nor the interpreter of the server."""

from __future__ import annotations

import asyncio
import pickle
import time
from contextlib import suppress
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.lessons.lessons import Teachings
from nodewise.ports.compute import Work
from nodewise.processes.channel import AsyncChannel
from nodewise.processes.process import Process, status_text
from nodewise.processes.spawning import spawn_connected
from nodewise.runtime.compute.pool import RunnerLostError, Tools
from nodewise.runtime.compute.process import CANCEL, WORKSHOPS, Frame
from nodewise.runtime.compute.recent import Recent

__all__ = ["PATIENCE_S", "ProcessRunner", "WorkFailedError"]

_log = structlog.get_logger(__name__)

PATIENCE_S: Final = 0.015
"""CPU time that cancelled work may still take. Then its process is killed and replaced, for 2 s of CPU time."""
LONGEST_PATIENCE_S: Final = 0.5
"""Wall-clock time that cancelled work may still take: waiting for a CPU on a busy machine, or for a disk, harms
nothing."""
STARTING_S: Final = 60.0
"""Longest start of a process on a machine under load; on an idle one it takes two seconds."""
NICENESS: Final = 10
"""Niceness of the process: where cores are few, the processes that serve short calls go first."""


class WorkFailedError(Exception):
    """Unexpected error in a process, of the server's code or of a library; the text is its traceback."""


class ProcessRunner:
    """Implements Runner: a process that starts with the first work, and again after it was lost.

    Values are pickled (arrays stay read-only), messages are bytes. The process sends messages only while it does work.

    The server's lessons are sent with the work whenever they differ from those sent before for the same workshop.
    """

    def __init__(self) -> None:
        self._last_teachings: Recent[Any, Teachings] = Recent(WORKSHOPS)
        """The open workshops of the process, with the lessons sent for each. The process drops workshops in the same
        order."""
        self._process: Process | None = None
        self._channel: AsyncChannel | None = None
        self._is_ready = False
        self._number = 0
        self.is_idle = True

    async def start(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """Implement ``Runner.start``."""
        if self._process is None or self._channel is None or self._process.status is not None:
            await self._begin()
        teachings, opening = tools.workshop.answers.teachings, tools.opening
        last_teachings = self._last_teachings.get(opening)
        self._is_ready = last_teachings is not None
        self._number += 1
        arguments = (self._number, work, argument, end_s, None if teachings is last_teachings else teachings)
        order = await asyncio.to_thread(_pickle_order, opening, arguments)
        self.is_idle = False
        assert self._channel is not None
        try:
            await self._channel.send(order)
        except OSError as error:
            raise RunnerLostError(f"it did not accept work: {error}") from None
        finally:
            self._last_teachings.put(opening, teachings)

    async def _begin(self) -> None:
        await self.close()
        self._process, connection = spawn_connected(
            "nodewise.runtime.compute.process:serve", name="nodewise-compute", nice=NICENESS
        )
        self._channel = await AsyncChannel.of(connection)
        _log.info("compute_started", pid=self._process.pid)

    async def receive(self) -> bytes | None:
        """Implement ``Runner.receive``."""
        while (frame := await self._frame())[:1] == Frame.READY:
            pass
        kind, content = frame[:1], frame[1:]
        if kind == Frame.MESSAGE:
            return content
        if kind == Frame.REFUSED:
            refusal: NodewiseError = pickle.loads(content)  # noqa: S301  # from a process of the pool
            raise refusal
        if kind == Frame.FAILED:
            raise WorkFailedError(content.decode())
        return None

    async def _frame(self) -> bytes:
        assert self._process is not None
        assert self._channel is not None
        try:
            frame = await self._channel.receive()
        except EOFError:
            status = await self._process.wait_for_end()
            raise RunnerLostError(f"its process ended: {status_text(status)}") from None
        self._is_ready |= frame[:1] == Frame.READY
        self.is_idle = frame[:1] in {Frame.DONE, Frame.REFUSED, Frame.FAILED}
        return frame

    async def cancel(self) -> None:
        """Implement ``Runner.cancel``: a starting process may go on, a working one gets little time."""
        try:
            assert self._channel is not None
            await self._channel.send(CANCEL + str(self._number).encode())
            async with asyncio.timeout(STARTING_S):
                while not self._is_ready and not self.is_idle:
                    await self._frame()
            end_s, used_s = time.monotonic() + LONGEST_PATIENCE_S, self._cpu_s()
            while not self.is_idle and self._cpu_s() - used_s < PATIENCE_S and time.monotonic() < end_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(PATIENCE_S):
                        await self._frame()
        except (TimeoutError, RunnerLostError, OSError):
            """The process is killed below."""
        if not self.is_idle:
            _log.info("compute_killed", pid=None if self._process is None else self._process.pid)
            await self.close()

    def _cpu_s(self) -> float:
        """Return the CPU time of the process in seconds, or the clock's time where the system does not report it."""
        assert self._process is not None
        try:
            return time.clock_gettime(~self._process.pid << 3 | 2)  # Linux's number of a process's CPU clock
        except (OSError, AttributeError):
            return time.monotonic()

    async def close(self) -> None:
        """Implement ``Runner.close``. The process has no state that must be saved."""
        process, self._process = self._process, None
        if self._channel is not None:
            self._channel.close()
        if process is not None:
            process.kill()
            await process.wait_for_end()
        self._last_teachings.clear()
        self.is_idle = True


def _pickle_order(opening: object, arguments: tuple[Any, ...]) -> bytes:
    """Encode an order for :func:`~nodewise.runtime.compute.process.serve`; the opening is decodable alone."""
    return pickle.dumps((pickle.dumps(opening), pickle.dumps(arguments, protocol=5)))
