"""A bounded pool for long work: it orders callers, applies deadlines, and ends work that no caller waits for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.compute import Work
from nodewise.rpc.long_call import Workshop

__all__ = ["ComputePool", "GenerationCompute", "Runner", "RunnerLostError", "Tools"]

_log = structlog.get_logger(__name__)
ResultT = TypeVar("ResultT")


class RunnerLostError(Exception):
    """The process that did the work has ended; the text gives the cause."""


@dataclass(frozen=True, slots=True, eq=False)
class Tools:
    """The workshop that work needs, in this process and in others.

    Attributes
    ----------
    workshop : Workshop
        The workshop of this process.
    how_opened : callable or None
        Returns :attr:`opening`. It is called when a process first needs it, so that a store in memory makes no
        directory earlier. None = the work can only run in threads of this process.
    """

    workshop: Workshop
    how_opened: Callable[[], Callable[[], Workshop]] | None = None

    @property
    def opening(self) -> Callable[[], Workshop] | None:
        """A picklable callable that opens the same workshop in another process; equal ones open the same workshop."""
        return None if self.how_opened is None else self.how_opened()


class Runner(Protocol):
    """Does one piece of work at a time, and is reused."""

    @property
    def is_idle(self) -> bool:
        """Whether the runner has no work: its work has ended, or it was given none."""
        ...

    async def start(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """Start work. Raises as :meth:`receive`."""
        ...

    async def receive(self) -> bytes | None:
        """Return the next message of the work; None = the work has ended.

        Raises
        ------
        NodewiseError
            The error that the work raises.
        RunnerLostError
            The work was lost with its process.
        """
        ...

    async def cancel(self) -> None:
        """End the work, which no caller waits for any more. The runner can then start other work."""
        ...

    async def close(self) -> None:
        """Close the runner, and end its work."""
        ...


class ComputePool:
    """Runs work in a limited number of runners; :class:`GenerationCompute` implements Compute with it.

    Parameters
    ----------
    runner : callable
        Makes a runner, when one is first needed.
    runners : int
        Most runners at a time. The admission queue of long calls limits the work that waits for one.
    """

    def __init__(self, runner: Callable[[], Runner], runners: int) -> None:
        self._make = runner
        self._permits = asyncio.Semaphore(runners)
        self._idle: list[Runner] = []
        self._runners: list[Runner] = []
        self._cancelling: set[asyncio.Task[None]] = set()

    async def run(
        self, work: Work[Any], argument: Any, end_s: float, late_s: float, tools: Tools
    ) -> AsyncGenerator[bytes, None]:
        """Implement ``Compute.run`` with these tools."""
        await _before(late_s, self._permits.acquire())
        if not self._idle:
            self._idle.append(self._make())
            self._runners.append(self._idle[-1])
        runner = self._idle.pop()
        try:
            await _before(late_s, runner.start(work, argument, end_s, tools))
            while (message := await _before(late_s, runner.receive())) is not None:
                yield message
        except RunnerLostError as error:
            _log.error("compute_lost", work=work.__name__, how=str(error))
            raise NodewiseError(
                Reason.COMPUTE_LOST, "the process that computed the answer died; another one replaces it: retry"
            ) from None
        finally:
            cancelling = asyncio.get_running_loop().create_task(self._free(runner))
            self._cancelling.add(cancelling)
            cancelling.add_done_callback(self._cancelling.discard)

    async def _free(self, runner: Runner) -> None:
        if not runner.is_idle:
            await runner.cancel()
        self._idle.append(runner)
        self._permits.release()

    async def close(self) -> None:
        """Close all runners."""
        if self._cancelling:
            await asyncio.wait(self._cancelling)
        await asyncio.gather(*(runner.close() for runner in self._runners))


@dataclass(frozen=True, slots=True, eq=False)
class GenerationCompute:
    """Implements Compute: the pool's runners, with the tools of one generation of plugins."""

    pool: ComputePool
    tools: Tools

    def run(self, work: Work[Workshop], argument: Any, end_s: float, late_s: float) -> AsyncGenerator[bytes, None]:
        """Implement ``Compute.run``."""
        return self.pool.run(work, argument, end_s, late_s, self.tools)


async def _before(late_s: float, result: Awaitable[ResultT]) -> ResultT:
    """Return the result, unless no caller waits for it any more.

    Raises
    ------
    NodewiseError
        DEADLINE_EXCEEDED.
    """
    try:
        async with asyncio.timeout(None if late_s == float("inf") else max(0.0, late_s - time.monotonic())):
            return await result
    except TimeoutError:
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready") from None
