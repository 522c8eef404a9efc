"""Lanes: whose turn it is where more is asked than can be done, and who is told at once that it will not be.

A lane has so many turns at a time. Who finds none free waits, as long as the wait that is to be expected is bearable:
below the lane's bound and within the time that the call has left. Turns go round among callers by what each was given
lately, so that who asks more waits longer, and where a caller with less finds no room, the newest call of the one with
most makes it.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

__all__ = ["CALLER_WAIT_S", "Lane", "OverloadedError", "Turn"]

CALLER_WAIT_S: Final = 2.0
"""Longest wait that is expected of a caller's only waiting call; above it even that is refused."""
BREATH_AFTER_S: Final = 0.002
"""Work after which the next call waits until the loop has taken in what arrived meanwhile."""
SHORT_TURN_S: Final = 0.001
"""A turn so short holds nothing up: gRPC hands over a call in about the same time."""
_LEAST_WAITING: Final = 4
"""Calls that may wait whatever they take: with fewer a lane would run dry between two of them."""
_NEWEST_WEIGHT: Final = 0.1
"""Of the newest of the times from which the pace is learned: about the last twenty count."""


class OverloadedError(Exception):
    """A call that is not taken.

    Parameters
    ----------
    wait_s : float
        Expected wait for a turn.
    waiting : int
        Calls that wait.
    """

    def __init__(self, wait_s: float, waiting: int) -> None:
        super().__init__()
        self.wait_s = wait_s
        self.waiting = waiting


class _Caller:
    """What a lane knows of a caller that waits, or was given turns lately."""

    __slots__ = ("given_s", "patient", "waiting")

    def __init__(self, given_s: float, *, patient: bool) -> None:
        self.given_s = given_s
        self.patient = patient
        self.waiting: deque[asyncio.Future[None]] = deque()


@dataclass(slots=True, eq=False)
class Turn:
    """A call's turn, from its beginning until it is given up; more than once does no harm."""

    lane: Lane
    caller: tuple[str, bool]
    began_s: float

    def over(self) -> None:
        """Give it up."""
        if self.lane is not _NOWHERE:
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
    breathe : callable
        Awaited before a turn that was waited for: lets the loop take in what has arrived meanwhile.
    """

    def __init__(self, name: str, turns: int, wait_s: float, breathe: Callable[[], Awaitable[None]]) -> None:
        self.name = name
        self.free = turns
        self.refused = 0
        self._turns = turns
        self._wait_s = wait_s
        self._breathe = breathe
        self._callers: dict[tuple[str, bool], _Caller] = {}
        self._waiting = 0
        self._pace_s = 0.0
        self._last_s = 0.0
        self._given_s = 0.0
        self._worked_s = 0.0
        self._dispatching: asyncio.Task[None] | None = None
        self._freed = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Calls that wait."""
        return self._waiting

    @property
    def pressed(self) -> bool:
        """Whether a call that comes now would wait."""
        return self.free <= 0 or self._waiting > 0 or self._worked_s > BREATH_AFTER_S

    @property
    def pace_s(self) -> float:
        """Seconds from one turn to the next while calls wait."""
        return self._pace_s

    def learn(self, apart_s: float) -> None:
        """Two turns began so many seconds apart while calls waited."""
        # From nothing upwards: a server that just started is slow, and soon is not.
        self._pace_s += _NEWEST_WEIGHT * (apart_s - self._pace_s)

    def taken(self) -> Turn:
        """A turn at once; there must be one free."""
        self.free -= 1
        return Turn(self, _NOBODY, time.monotonic())

    async def turn(self, caller: str, remaining_s: float = math.inf, *, patient: bool = False) -> Turn:
        """A turn, after others.

        Parameters
        ----------
        caller : str
            Who shares alike.
        remaining_s : float
            Of the call's time.
        patient : bool
            Whether it waits however long it takes: a message of a stream, of which the next is not read meanwhile.

        Raises
        ------
        OverloadedError
        """
        if not self.pressed:
            return self.taken()
        key = (caller, patient)
        asking = self._callers.get(key)
        if not patient:
            self._admit(len(asking.waiting) if asking is not None else 0, remaining_s)
        if asking is None:
            asking = self._callers[key] = _Caller(self._given_s, patient=patient)
        ready = asyncio.get_running_loop().create_future()
        asking.waiting.append(ready)
        self._waiting += 1
        if self._dispatching is None:
            self._last_s = 0.0
            self._dispatching = asyncio.get_running_loop().create_task(self._dispatch())
        try:
            await ready
        except BaseException:
            self._left(asking, ready)
            raise
        return Turn(self, key, time.monotonic())

    def _left(self, asking: _Caller, ready: asyncio.Future[None]) -> None:
        """Who waited goes: with a turn that it was just given, or without."""
        if ready in asking.waiting:
            asking.waiting.remove(ready)
            self._waiting -= 1
        elif ready.done() and not ready.cancelled() and ready.exception() is None:
            self.free += 1
            self._freed.set()

    def _admit(self, mine: int, remaining_s: float) -> None:
        """Refuse a call that would wait too long; or another one in its stead, of who has more waiting."""
        asking = sum(1 for each in self._callers.values() if each.waiting) + (mine == 0)
        ahead = min(self._waiting, mine * asking + asking - 1)
        wait_s = (ahead + 1) * self._pace_s
        longest_s = min(self._wait_s if mine else max(self._wait_s, CALLER_WAIT_S), remaining_s)
        if wait_s > longest_s and ahead >= _LEAST_WAITING:
            self.refused += 1
            raise OverloadedError(wait_s, self._waiting)
        if self._waiting < _LEAST_WAITING or (self._waiting + 1) * self._pace_s <= self._wait_s:
            return
        impatient = (each for each in self._callers.values() if not each.patient)
        most = max(impatient, key=lambda each: len(each.waiting), default=None)
        if most is not None and len(most.waiting) > mine + 1:
            newest = most.waiting.pop()
            self._waiting -= 1
            if not newest.done():
                newest.set_exception(OverloadedError(self._waiting * self._pace_s, self._waiting))
                self.refused += 1
        elif mine:
            self.refused += 1
            raise OverloadedError(self._waiting * self._pace_s, self._waiting)

    async def _dispatch(self) -> None:
        """Give turns while calls wait."""
        while self._waiting:
            if self._worked_s > BREATH_AFTER_S or not self._last_s:
                await self._breathe()
                self._worked_s = 0.0
            else:
                await asyncio.sleep(0)  # the call that was given a turn begins
            if self.free <= 0:
                self._freed.clear()
                await self._freed.wait()
                continue
            self._give()
        self._dispatching = None
        self._callers.clear()

    def _give(self) -> None:
        """A turn to whom was given least."""
        asking = [each for each in self._callers.values() if each.waiting]
        if not asking:
            return
        least = min(asking, key=lambda each: each.given_s)
        ready = least.waiting.popleft()
        self._waiting -= 1
        if ready.done():  # its caller has gone
            return
        now_s = time.monotonic()
        if self._last_s:
            self.learn(now_s - self._last_s)
        self._last_s = now_s
        # Who comes anew begins here: nobody saves up turns by asking nothing.
        self._given_s = least.given_s
        least.given_s += self._pace_s
        self.free -= 1
        ready.set_result(None)

    def _over(self, turn: Turn) -> None:
        self.free += 1
        held_s = time.monotonic() - turn.began_s
        if held_s > SHORT_TURN_S:
            self._worked_s += held_s
        if self._dispatching is not None:
            self._freed.set()
            asking = self._callers.get(turn.caller)
            if asking is not None:
                asking.given_s += held_s


_NOBODY: Final = ("", False)
"""Who had not to wait is charged nothing."""
_NOWHERE: Final = Lane("", 0, 0.0, lambda: asyncio.sleep(0))
"""The lane of turns that are over."""
