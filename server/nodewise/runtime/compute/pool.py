"""A bounded pool of hands that do long work: whose turn it is, until when, and what becomes of a hand afterwards."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.compute import Work
from nodewise.rpc.long_call import Workshop

__all__ = ["MOST_WAITING", "ComputePool", "Equipped", "Hand", "HandLostError", "Tools"]

_log = structlog.get_logger(__name__)

MOST_WAITING: Final = 64
"""Pieces of work that wait for their turn; what they are about takes memory."""


class HandLostError(Exception):
    """What did the work is gone; the text says how."""


@dataclass(frozen=True, slots=True, eq=False)
class Tools:
    """What work is done with, in this process and in others.

    Attributes
    ----------
    workshop : Workshop
        Of this process.
    how_opened : callable or None
        Answers :attr:`opening`, once a process needs it: a store in memory makes no directory before. None = only
        threads of this process can.
    """

    workshop: Workshop
    how_opened: Callable[[], Callable[[], Workshop]] | None = None

    @property
    def opening(self) -> Callable[[], Workshop] | None:
        """Makes the same in another process: a value that can be pickled, equal where it makes the same."""
        return None if self.how_opened is None else self.how_opened()


class Hand(Protocol):
    """Does one piece of work at a time."""

    @property
    def idle(self) -> bool:
        """Whether its work has ended, or it was given none."""
        ...

    async def give(self, work: Work[Any], argument: Any, end_s: float, tools: Tools) -> None:
        """Have it begin. Raises as :meth:`receive`."""
        ...

    async def receive(self) -> bytes | None:
        """Its next message; None = it has ended.

        Raises
        ------
        NodewiseError
            What the work raises.
        HandLostError
            If it will never end.
        """
        ...

    def end(self) -> None:
        """Tell it that nobody waits any more."""
        ...

    async def ended(self) -> bool:
        """See to it that it ends, after :meth:`end`; returns whether the hand can be used again."""
        ...

    def close(self) -> None:
        """End it, and what it does. Blocks for up to seconds."""
        ...


class ComputePool:
    """What Compute needs, but for the tools: see :class:`Equipped`.

    Parameters
    ----------
    hand : callable
        Makes a hand: when it is first needed. It is used again and again, and replaced when it is lost.
    hands : int
        At most so many at a time.
    most_waiting : int
        Work that waits; what comes on top is refused.
    """

    def __init__(self, hand: Callable[[], Hand], hands: int, most_waiting: int = MOST_WAITING) -> None:
        self._hand = hand
        self._most_waiting = most_waiting
        self._waiting = 0
        self._turns = asyncio.Semaphore(hands)
        self._idle: list[Hand] = []
        self._hands: set[Hand] = set()
        self._lost: list[Hand] = []
        """Replaced, and not at their end yet."""
        self._ending: set[asyncio.Task[None]] = set()

    async def run(
        self, work: Work[Any], argument: Any, end_s: float, late_s: float, tools: Tools
    ) -> AsyncGenerator[bytes, None]:
        """As the port says, with these tools."""
        hand = await self._taken(late_s)
        try:
            await _before(late_s, hand.give(work, argument, end_s, tools))
            while (message := await _before(late_s, hand.receive())) is not None:
                yield message
        except HandLostError as error:
            _log.error("compute_lost", work=work.__name__, how=str(error))
            raise NodewiseError(
                Reason.COMPUTE_LOST, "the process that computed the answer died; another takes its place: retry"
            ) from None
        finally:
            if hand.idle:
                self._free(hand)
            else:
                hand.end()
                ending = asyncio.get_running_loop().create_task(self._end(hand))
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    async def _taken(self, late_s: float) -> Hand:
        """A hand, after those who came before."""
        if self._turns.locked() and self._waiting >= self._most_waiting:
            raise NodewiseError(
                Reason.OVERLOADED,
                f"{self._waiting} calls wait for their turn to compute already; retry",
                {"waiting": str(self._waiting)},
            )
        self._waiting += 1
        try:
            await _before(late_s, self._turns.acquire())
        finally:
            self._waiting -= 1
        if not self._idle:
            self._idle.append(self._hand())
        hand = self._idle.pop()
        self._hands.add(hand)
        return hand

    async def _end(self, hand: Hand) -> None:
        if await hand.ended():
            self._free(hand)
            return
        self._hands.discard(hand)
        self._lost = [each for each in (*self._lost, hand) if not each.idle]
        self._turns.release()

    def _free(self, hand: Hand) -> None:
        self._idle.append(hand)
        self._turns.release()

    async def close(self) -> None:
        """End everything."""
        if self._ending:
            await asyncio.wait(self._ending)
        await asyncio.gather(*(asyncio.to_thread(hand.close) for hand in (*self._hands, *self._lost)))


@dataclass(frozen=True, slots=True, eq=False)
class Equipped:
    """Implements Compute: the pool's hands, with the tools of one generation of plugins."""

    pool: ComputePool
    tools: Tools

    def run(self, work: Work[Workshop], argument: Any, end_s: float, late_s: float) -> AsyncGenerator[bytes, None]:
        """As the port says."""
        return self.pool.run(work, argument, end_s, late_s, self.tools)


async def _before(late_s: float, awaited: Any) -> Any:
    """What is awaited, unless nobody waits for it any more.

    Raises
    ------
    NodewiseError
        DEADLINE_EXCEEDED.
    """
    try:
        async with asyncio.timeout(None if late_s == float("inf") else max(0.0, late_s - time.monotonic())):
            return await awaited
    except TimeoutError:
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the call's time was over before the answer was ready") from None
