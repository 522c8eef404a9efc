"""Lanes: whose turn it is where more is asked than can be done.

A lane has so many turns at a time. Who finds none free waits, as long as the wait that is to be expected is bearable
(:mod:`nodewise.rpc.waits`). Turns go round among callers by what each was given lately, so that who asks more waits
longer, and where a caller with less finds no room, the newest call of the one with most makes it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import thread_time
from typing import Final

from nodewise.rpc.breath import SHORT_TURN_S, Breath
from nodewise.rpc.callers import Caller, CallerKey, Callers, Waiting
from nodewise.rpc.overload import Overload, OverloadedError
from nodewise.rpc.pace import Pace
from nodewise.rpc.waits import Waits

__all__ = ["REFUSAL_S", "Lane", "Turn"]

REFUSAL_S: Final = 0.00012
"""What a refusal takes, which who is refused is charged: gRPC's part is most of it."""


@dataclass(slots=True, eq=False)
class Turn:
    """A call's turn, from its beginning until it is given up; more than once does no harm."""

    lane: Lane
    caller: CallerKey
    began_s: float
    cpu_s: float
    cost_s: float | None = None
    charged_s: float = 0.0
    reading: bool = False

    def read(self, *, begins: bool) -> None:
        """Its message is waited for from now on, or is there: nobody is at work meanwhile."""
        if self.reading is not begins and self.lane is not _NOWHERE:
            self.reading = begins
            self.lane.reading += 1 if begins else -1
            self.cpu_s = thread_time() - self.cpu_s  # what others did meanwhile is not this call's

    @property
    def waited(self) -> bool:
        """Whether others were before it."""
        return self.caller is not _NOBODY

    @property
    def given_up(self) -> bool:
        """Whether it is over."""
        return self.lane is _NOWHERE

    def expect(self, cost_s: float) -> None:
        """Its call was read, and should cost so much: its caller is charged that from now on."""
        if self.waited and self.lane is not _NOWHERE and cost_s:
            self.lane._expect(self, cost_s)  # noqa: SLF001  # two halves of one thing

    def over(self) -> None:
        """Give it up."""
        if self.lane is not _NOWHERE:
            self.read(begins=False)
            lane, self.lane = self.lane, _NOWHERE
            lane._over(self)  # noqa: SLF001  # two halves of one thing


class Lane:
    """Turns, and who waits for them.

    Parameters
    ----------
    name : str
        Of the class of calls.
    turns : int
        At a time.
    wait_s : float
        Wait above which no more calls are taken.
    breathe : callable or None
        Awaited before a turn that was waited for: lets the loop take in what has arrived meanwhile. None = turns are
        not held in the loop.
    most_waiting : float
        Calls that wait, whatever they take.
    unseen_s : callable
        How long a call that is seen now may have waited where it could not be seen.
    """

    def __init__(
        self,
        name: str,
        turns: int,
        wait_s: float,
        breathe: Callable[[], Awaitable[None]] | None,
        most_waiting: float = math.inf,
        unseen_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        now_s = time.monotonic()
        self.name = name
        self.free = turns
        self.reading = 0
        self.pace = Pace()
        self._turns = turns
        self._callers = Callers(now_s)
        self._breath = Breath(breathe, unseen_s)
        self._overload = Overload(self.pace, now_s)
        self._waits = Waits(self._callers, self.pace, self._overload, self._breath, wait_s, most_waiting)
        self._ran_out = False
        self._last_over_s = 0.0
        self._dispatching: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return self._callers.waiting_calls

    @property
    def refused(self) -> int:
        """Calls that were refused so far."""
        return self._waits.refused

    @property
    def pressed(self) -> bool:
        """Whether a call that comes now would wait."""
        if self._breath.overdue:
            return True
        return (self.free <= 0 or self._callers.waiting_calls > 0) and not (
            self.free + self.reading > 0 and self._is_quick
        )

    @property
    def _is_quick(self) -> bool:
        """Whether those who wait do so for the loop's breath alone, of calls so short that it keeps up.

        Who comes then does not wait behind them: waiting costs more than it shares out, and with enough calls in
        flight it would never end.
        """
        return (
            not self._ran_out
            and self._breath.in_loop
            and self.pace.turn_s < SHORT_TURN_S
            and not self._breath.late
            and not self.overloaded
        )

    @property
    def overloaded(self) -> bool:
        """Whether calls were refused lately, so that only a short queue is kept."""
        return self._overload.lasts(time.monotonic())

    @property
    def expected_wait_s(self) -> float:
        """Until all that waits has had its turn."""
        return self._waits.expected_s

    def taken(self) -> Turn:
        """A turn at once; there must be one free."""
        now_s = time.monotonic()
        if self.free == self._turns:
            self._overload.rested(now_s)
        self.free -= 1
        return Turn(self, _NOBODY, now_s, thread_time())

    async def turn(
        self, caller: str, remaining_s: float = math.inf, cost_s: float | None = None, *, patient: bool = False
    ) -> Turn:
        """A turn, after others.

        Parameters
        ----------
        caller : str
            Who shares alike.
        remaining_s : float
            Of the call's time.
        cost_s : float or None
            CPU that the call is expected to cost; None or 0 = as others.
        patient : bool
            Whether it waits however long it takes: a message of a stream, of which the next is not read meanwhile.

        Raises
        ------
        OverloadedError
        """
        if not self.pressed:
            return self.taken()
        key = (caller, patient)
        asking = self._callers.known(key, self.pace.turn_s)
        now_s = time.monotonic()
        loop = asyncio.get_running_loop()
        waiting = Waiting(loop.create_future(), cost_s or self.pace.usual_cost_s, now_s, now_s + remaining_s)
        self._overload.look(now_s, self._waits.expected_s)
        if not patient:
            self._waits.admit(asking, waiting.cost_s, remaining_s, now_s)
        self._callers.enter(key, asking, waiting)
        if self._dispatching is None:
            self._last_over_s = time.monotonic()
            self._breath.wants()
            self._dispatching = loop.create_task(self._dispatch())
        try:
            await waiting.ready
        except BaseException:
            self._gone(asking, waiting)
            raise
        return Turn(self, key, time.monotonic(), thread_time(), waiting.cost_s, waiting.charged_s)

    def _gone(self, asking: Caller, waiting: Waiting) -> None:
        """Who waited goes: with a turn that it was just given, or without."""
        ready = waiting.ready
        if self._callers.gone(asking, waiting):
            return
        if ready.done() and not ready.cancelled() and ready.exception() is None:
            self.free += 1
            self._freed.set()

    def refusal(self, caller: str, remaining_s: float, cost_s: float | None = None) -> OverloadedError | None:
        """Why a call that has just arrived would be refused itself; None = it may ask for a turn.

        The answer is counted as a refusal. What :meth:`turn` would let in in another's stead is not refused here.
        """
        if not self.pressed:
            return None
        now_s = time.monotonic()
        who = self._callers.known((caller, False), self.pace.turn_s)
        refusal = self._waits.refusal(who, cost_s or self.pace.usual_cost_s, remaining_s, now_s)
        if refusal is not None:
            self._callers.charge(who, REFUSAL_S, 0.0, now_s)
        return refusal

    async def _dispatch(self) -> None:
        """Give turns while calls wait."""
        while self._callers.waiting_calls:
            if not await self._breath.taken() and self._breath.in_loop:
                await asyncio.sleep(0)  # the call that was given a turn begins
            if self.free <= 0:
                self._ran_out |= self.free + self.reading <= 0
                self._freed.clear()
                await self._freed.wait()
                continue
            self._give()
        self._dispatching = None
        self._ran_out = False
        if not self.overloaded:  # else who was given much is still remembered
            self._callers.clear()

    def _give(self) -> None:
        """A turn to whom was given least; who is late by now is refused instead."""
        now_s = time.monotonic()
        while asking := self._callers.waiting():
            least = min(asking, key=lambda each: each.given_s)
            waiting = self._callers.next(least)
            if waiting.ready.done():  # its caller has gone
                continue
            refusal = self._waits.late(least, waiting, now_s)
            if refusal is not None:
                waiting.ready.set_exception(refusal)
                continue
            waiting.charged_s = self.pace.wait_s(waiting.cost_s)  # until it is known what it took
            self._callers.given(least, waiting.charged_s, len(asking))
            self.free -= 1
            waiting.ready.set_result(None)
            return

    def _expect(self, turn: Turn, cost_s: float) -> None:
        charged_s = self.pace.wait_s(cost_s)
        asking = self._callers.get(turn.caller)
        if asking is not None:
            asking.given_s += charged_s - turn.charged_s
        turn.cost_s, turn.charged_s = cost_s, charged_s

    def _over(self, turn: Turn) -> None:
        self.free += 1
        now_s = time.monotonic()
        held_s = now_s - turn.began_s
        if self.free == self._turns:
            self._overload.rests(now_s)
        self._breath.worked(held_s, turn.cpu_s)
        if self._dispatching is not None:
            # Ends, not beginnings: several turns begin at once where several were free.
            self.pace.learn(now_s - self._last_over_s, turn.cost_s)
            self._last_over_s = now_s
            self._freed.set()
            asking = self._callers.get(turn.caller)
            if asking is not None:
                # A message of a stream is answered once its turn was given up: what it should cost is what counts.
                took_s = max(held_s, turn.charged_s) if asking.patient else held_s
                self._callers.charge(asking, took_s, turn.charged_s, now_s)


_NOBODY: Final = ("", False)
"""Who had not to wait is charged nothing."""
_NOWHERE: Final = Lane("", 0, 0.0, None)
"""The lane of turns that are over."""
