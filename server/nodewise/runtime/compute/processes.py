"""A hand that is a process: what it does holds neither the event loop nor the interpreter of the one that serves."""

from __future__ import annotations

import asyncio
import atexit
import pickle
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from ctypes import c_int64
from pathlib import Path
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.estimation.lessons.lessons import Teachings
from nodewise.ports.compute import Work
from nodewise.runtime.compute.pool import HandLostError, Tools
from nodewise.runtime.compute.process import WORKSHOPS, Frame, serve
from nodewise.runtime.compute.recent import Recent
from nodewise.runtime.processes import CONTEXT, Child, started

__all__ = ["PATIENCE_S", "ProcessHand", "WorkFailedError"]

_log = structlog.get_logger(__name__)

PATIENCE_S: Final = 0.015
"""Time on a processor that work may still take that nobody waits for; then its process is killed, and another takes its
place, which costs two seconds of a processor."""
LONGEST_PATIENCE_S: Final = 0.5
"""The same by the clock: work that waits for a processor on a busy machine, or for a disk, harms nobody for so long."""
SHORTEST_WAIT_S: Final = 0.002
STARTING_S: Final = 60.0
"""How long a process may take to start on a machine under load: two seconds on an idle one."""


class WorkFailedError(Exception):
    """A fault of ours or of a library, in a process; the text is its traceback."""


class ProcessHand:
    """Implements Hand: a process that is started with the first work, and again after it was lost.

    Values travel pickled (arrays stay read-only), messages as bytes. Nothing is sent but while work is done.

    What the serving process has learned is sent along whenever it is not what was sent before for the same workshop.
    """

    def __init__(self) -> None:
        self._sent: Recent[Any, Teachings] = Recent(WORKSHOPS)
        """The workshops that the process has, with what was sent for each; it forgets them in the same order."""
        self._child: Child | None = None
        self._ready = False
        # Writing and reading block: in a thread, one after the other.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nodewise-compute")
        self._reading: asyncio.Future[bytes] | None = None
        self._number = 0
        self._gone = CONTEXT.RawValue(c_int64, 0)
        """Number of the last piece of work that nobody waits for any more; the process looks at it."""
        self.idle = True

    async def give(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """As the protocol says."""
        teachings = tools.workshop.answers.teachings
        if self._child is None or not self._child.process.is_alive():
            self._sent.clear()
        sent = self._sent.get(tools.opening)
        news = None if teachings is sent else teachings
        self._ready = sent is not None
        self._number += 1
        self.idle = False
        giving = self._in_thread(self._give, tools.opening, (self._number, work, argument, end_s, news))
        try:
            await asyncio.shield(giving)
        except OSError as error:
            raise HandLostError(f"it could not be given work: {error}") from None
        self._sent.put(tools.opening, teachings)

    def _give(self, opening: object, given: tuple[Any, ...]) -> None:
        try:
            data = pickle.dumps(opening), pickle.dumps(given, protocol=5)
        except Exception:
            self.idle = True
            raise
        if self._child is None or not self._child.process.is_alive():
            self.close()
            child = self._child = started(serve, self._gone, name="nodewise-compute")
            atexit.register(child.process.kill)  # multiprocessing would wait for it
            _log.info("compute_started", pid=child.process.pid)
        for each in data:
            self._child.pipe.send_bytes(each)

    async def receive(self) -> bytes | None:
        """As the protocol says."""
        frame = b""
        while not frame or frame[:1] == Frame.READY:
            frame = await self._frame()
        kind, content = frame[:1], frame[1:]
        if kind == Frame.MESSAGE:
            return content
        self.idle = True
        if kind == Frame.REFUSED:
            refusal: NodewiseError = pickle.loads(content)  # noqa: S301  # from a process of ours
            raise refusal
        if kind == Frame.FAILED:
            raise WorkFailedError(content.decode())
        return None

    async def _frame(self) -> bytes:
        if self._reading is None:
            self._reading = self._in_thread(self._read)
        # Who stops waiting leaves the reading to whoever waits next.
        frame = await asyncio.shield(self._reading)
        self._reading = None
        self._ready |= frame[:1] == Frame.READY
        return frame

    def _read(self) -> bytes:
        assert self._child is not None
        try:
            return self._child.pipe.recv_bytes()
        except (EOFError, OSError):
            self._child.process.join(LONGEST_PATIENCE_S)
            raise HandLostError(f"its process ended with status {self._child.process.exitcode}") from None

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    def end(self) -> None:
        """As the protocol says."""
        self._gone.value = self._number

    async def ended(self) -> bool:
        """As the protocol says: a process that starts may go on, one that works has little time to look up."""
        try:
            if not self._ready:
                async with asyncio.timeout(STARTING_S):
                    await self._ended_by(Frame.READY)
            loop, used_s = asyncio.get_running_loop(), self._cpu_s()
            end_s = loop.time() + LONGEST_PATIENCE_S
            left_s = PATIENCE_S
            while not self.idle:
                try:
                    async with asyncio.timeout(left_s):
                        await self._ended_by()
                except TimeoutError:
                    left_s = min(PATIENCE_S - (self._cpu_s() - used_s), end_s - loop.time())
                    if left_s <= 0.0:
                        raise
                    left_s = max(left_s, SHORTEST_WAIT_S)
        except (TimeoutError, HandLostError, OSError):
            _log.info("compute_killed", pid=None if self._child is None else self._child.process.pid)
            if self._child is not None:
                self._child.process.kill()
            if self._reading is not None:
                await asyncio.gather(self._reading, return_exceptions=True)  # ends with the process
            await asyncio.to_thread(self.close)
            self.idle = True
            return False
        return True

    async def _ended_by(self, *kinds: bytes) -> None:
        """Read until the work has ended, or a frame of one of some kinds came."""
        while not self.idle:
            frame = await self._frame()
            self.idle = frame[:1] in {Frame.DONE, Frame.REFUSED, Frame.FAILED}
            if frame[:1] in kinds:
                return

    def _cpu_s(self) -> float:
        """Time that the process has worked; where the system does not tell, that of the clock."""
        try:
            assert self._child is not None
            return int(Path(f"/proc/{self._child.process.pid}/schedstat").read_text().split()[0]) * 1e-9
        except (OSError, ValueError, IndexError):
            return time.monotonic()

    def close(self) -> None:
        """As the protocol says."""
        if self._child is None:
            return
        atexit.unregister(self._child.process.kill)
        if not self.idle:
            self._child.kill()
        self._child.end()
        self._child, self._ready = None, False
