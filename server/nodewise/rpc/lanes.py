"""Lanes: whose turn it is where more is asked than can be done, and who is told at once that it will not be.

A lane has so many turns at a time. Who finds none free waits, as long as the wait that is to be expected is bearable:
below the lane's bound and within the time that the call has left. Turns go round among callers by what each was given
lately, so that who asks more waits longer, and where a caller with less finds no room, the newest call of the one with
most makes it.

Waits are counted in work: what each call ahead is expected to cost, times what the lane takes for such work lately. A
short burst may wait long. Where that was not enough and calls were refused, a long queue would only make everybody
late: the lane then keeps no more calls than it takes to be never idle, until nobody was refused for as long as callers
are told to stay away, or it was idle.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import thread_time
from typing import Final

from nodewise.rpc.callers import LATELY_S, Caller, CallerKey, Callers, Waiting
from nodewise.rpc.loop_lag import LATE_S
from nodewise.rpc.pace import Growth, Pace

__all__ = ["CALLER_WAIT_S", "LONGEST_DELAY_S", "Lane", "OverloadedError", "Turn"]

LONGEST_DELAY_S: Final = 10.0
"""Longest delay that who is refused is told. Until it has passed some of them are still to come back, and a lane that
ran empty for a moment is overloaded as it was."""
_IDLE_SHARE: Final = 0.1
"""Of the last two seconds in which nobody was at work, that shows that a lane is not overloaded any more. At twice its
capacity one with a short queue is idle for less than a fiftieth."""
CALLER_WAIT_S: Final = 2.0
"""Longest wait that is expected of a caller's only waiting call while nobody is refused."""
BREATH_AFTER_S: Final = 0.002
"""Work after which the next call waits until the loop has taken in what arrived meanwhile."""
SHORT_TURN_S: Final = 0.002
"""A turn so short holds nothing up as long as the loop keeps up: whose turn it is costs such a call as much again as it
shares out. Turns that follow each other so soon are of such calls."""
REFUSAL_S: Final = 0.00012
"""What a refusal takes, which who is refused is charged: gRPC's part is most of it."""
_LEAST_WAITING: Final = 4
"""Calls that may wait whatever they take: with fewer a lane would run dry between two of them."""
_STANDING_TURNS: Final = 4.0
"""Usual turns that may wait while a lane is overloaded: as many as are at work, which lets it never run dry."""
_ONLY_TURNS: Final = 6.0
"""Usual turns that a caller's only waiting call may wait for while a lane is overloaded: so many callers share it
before some of them find no place."""
_LATE: Final = 1.5
"""Times the bound of a lane that refuses, after which a call whose turn comes is refused rather than answered late."""
_STANDING_S: Final = 0.05
"""So long a queue may always be: with less a lane of quick calls runs dry while the loop does something else."""


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
        self.name = name
        self.free = turns
        self.reading = 0
        self.refused = 0
        self._turns = turns
        self._wait_s = wait_s
        self._most_waiting = most_waiting
        self._breathe = breathe
        self._unseen_s = unseen_s
        self._waiting = 0
        self._waiting_cost_s = 0.0
        self._short_until_s = self._refused_at_s = -math.inf
        self._growth = Growth()
        self._breathe_first = False
        self._ran_out = False
        self.pace = Pace()
        self._last_over_s = 0.0
        self._idle_from_s = self._idle_told_s = time.monotonic()
        self._callers = Callers(self._idle_from_s)
        self._idle_s = 0.0
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
        if self._worked_s > BREATH_AFTER_S:
            return True
        return (self.free <= 0 or self._waiting > 0) and not (self.free + self.reading > 0 and self._is_quick)

    @property
    def _is_quick(self) -> bool:
        """Whether those who wait do so for the loop's breath alone, of calls so short that it keeps up.

        Who comes then does not wait behind them: waiting costs more than it shares out, and with enough calls in
        flight it would never end.
        """
        return (
            not self._ran_out
            and self._breathe is not None
            and self.pace.turn_s < SHORT_TURN_S
            and self._unseen_s() < LATE_S
            and not self.overloaded
        )

    @property
    def overloaded(self) -> bool:
        """Whether calls were refused lately, so that only a short queue is kept."""
        return time.monotonic() < self._short_until_s

    @property
    def expected_wait_s(self) -> float:
        """Until all that waits has had its turn."""
        return self.pace.wait_s(self._waiting_cost_s)

    def taken(self) -> Turn:
        """A turn at once; there must be one free."""
        now_s = time.monotonic()
        if self.free == self._turns and self._short_until_s > now_s:
            self._was_idle(now_s)
        self.free -= 1
        return Turn(self, _NOBODY, now_s, thread_time())

    def _was_idle(self, now_s: float) -> None:
        """Until now, since its last turn was over."""
        self._idle_s = self._idle_s * math.exp((self._idle_told_s - now_s) / LATELY_S) + now_s - self._idle_from_s
        self._idle_told_s = self._idle_from_s = now_s
        if self._idle_s > _IDLE_SHARE * LATELY_S:
            self._short_until_s = -math.inf

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
        waiting = Waiting(
            asyncio.get_running_loop().create_future(),
            cost_s or self.pace.usual_cost_s,
            now_s,
            now_s + remaining_s,
        )
        if self._growth.seen(now_s, self.expected_wait_s, self._standing_s):
            self._shorten(now_s)
        if not patient:
            self._admit(asking, waiting.cost_s, remaining_s)
        self._callers.keep(key, asking)
        self._enter(asking, waiting)
        if self._dispatching is None:
            self._last_over_s = time.monotonic()
            self._breathe_first = True
            self._dispatching = asyncio.get_running_loop().create_task(self._dispatch())
        try:
            await waiting.ready
        except BaseException:
            self._gone(asking, waiting)
            raise
        return Turn(self, key, time.monotonic(), thread_time(), waiting.cost_s, waiting.charged_s)

    def _shorten(self, now_s: float) -> None:
        """Keep only a short queue from now on."""
        self._refused_at_s = now_s
        self._short_until_s = now_s + LONGEST_DELAY_S

    def _enter(self, asking: Caller, waiting: Waiting) -> None:
        asking.waiting.append(waiting)
        asking.cost_s += waiting.cost_s
        self._waiting += 1
        self._waiting_cost_s += waiting.cost_s

    def _left(self, asking: Caller, waiting: Waiting) -> None:
        """It was taken out of what waits."""
        asking.cost_s -= waiting.cost_s
        self._waiting -= 1
        self._waiting_cost_s = self._waiting_cost_s - waiting.cost_s if self._waiting else 0.0

    def _gone(self, asking: Caller, waiting: Waiting) -> None:
        """Who waited goes: with a turn that it was just given, or without."""
        ready = waiting.ready
        if waiting in asking.waiting:
            asking.waiting.remove(waiting)
            self._left(asking, waiting)
        elif ready.done() and not ready.cancelled() and ready.exception() is None:
            self.free += 1
            self._freed.set()

    def _expect(self, turn: Turn, cost_s: float) -> None:
        charged_s = self.pace.wait_s(cost_s)
        asking = self._callers.get(turn.caller)
        if asking is not None:
            asking.given_s += charged_s - turn.charged_s
        turn.cost_s, turn.charged_s = cost_s, charged_s

    def refusal(self, caller: str, remaining_s: float, cost_s: float | None = None) -> OverloadedError | None:
        """Why a call that has just arrived would be refused itself; None = it may ask for a turn.

        The answer is counted as a refusal. What :meth:`turn` would let in in another's stead is not refused here.
        """
        if not self.pressed:
            return None
        who = self._callers.known((caller, False), self.pace.turn_s)
        wait_s = self._too_long_s(who, cost_s or self.pace.usual_cost_s, remaining_s, *self._bearable(who))
        if wait_s is None:
            return None
        self._callers.charge(who, REFUSAL_S, 0.0, time.monotonic())
        return self._refused(wait_s, who)

    @property
    def _standing_s(self) -> float:
        """Wait that keeps a lane from running dry."""
        return max(_STANDING_S, _STANDING_TURNS * self.pace.turn_s)

    def _bearable(self, who: Caller) -> tuple[float, bool]:
        """Longest wait of the lane as it is, and whether a caller was given so little that it is not bound by it."""
        bound_s = self._wait_s
        if self.overloaded:
            bound_s = min(bound_s, self._standing_s)
        return bound_s, len(who.waiting) < _LEAST_WAITING and self._callers.is_modest(who)

    def _too_long_s(
        self,
        who: Caller,
        cost_s: float,
        remaining_s: float,
        bound_s: float,
        modest: bool,  # noqa: FBT001
    ) -> float | None:
        """The wait that is to be expected, if it is longer than bearable."""
        if self._waiting < _LEAST_WAITING:
            return None
        asking = len(self._callers.waiting()) + (not who.waiting)
        ahead_s = who.cost_s * asking + (asking - 1) * self.pace.usual_cost_s
        if modest or not self.overloaded:  # else others will come meanwhile, and have their turns before
            ahead_s = min(ahead_s, self._waiting_cost_s)
        wait_s = self.pace.wait_s(ahead_s + cost_s)
        if self._asks_too_much(who, time.monotonic()):  # else it is taken in, whatever held the loop before it came
            wait_s += self._unseen_s()
        own_s = self._wait_s if modest else bound_s
        if not who.waiting:
            own_s = max(own_s, min(CALLER_WAIT_S, _ONLY_TURNS * self.pace.turn_s) if self.overloaded else CALLER_WAIT_S)
        return wait_s if wait_s > min(own_s, remaining_s) or self._waiting >= self._most_waiting else None

    def _admit(self, who: Caller, cost_s: float, remaining_s: float) -> None:
        """Refuse a call that would wait too long; or another one in its stead, of who has more waiting."""
        bound_s, modest = self._bearable(who)
        wait_s = self._too_long_s(who, cost_s, remaining_s, bound_s, modest)
        if wait_s is not None:
            raise self._refused(wait_s, who)
        if self._waiting < _LEAST_WAITING or self.expected_wait_s + self.pace.turn_s <= bound_s:
            return
        victim = self._callers.victim(who, modest=modest)
        if victim is not None:
            newest = victim.waiting.pop()
            self._left(victim, newest)
            if not newest.ready.done():
                newest.ready.set_exception(self._refused(self.expected_wait_s, victim))
        elif who.waiting and not modest:
            raise self._refused(self.expected_wait_s, who)

    def _refused(self, wait_s: float, who: Caller) -> OverloadedError:
        self.refused += 1
        who.refused_at_s = time.monotonic()
        self._shorten(who.refused_at_s)
        return OverloadedError(wait_s, self._waiting)

    async def _dispatch(self) -> None:
        """Give turns while calls wait."""
        while self._waiting:
            if self._breathe is None:
                pass
            elif self._worked_s > BREATH_AFTER_S or self._breathe_first:
                self._worked_s = 0.0
                self._breathe_first = False
                await self._breathe()
            else:
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
            waiting = least.waiting.popleft()
            self._left(least, waiting)
            if waiting.ready.done():  # its caller has gone
                continue
            if self._is_late(least, waiting, now_s):
                self.refused += 1
                waiting.ready.set_exception(OverloadedError(now_s - waiting.since_s, self._waiting))
                continue
            waiting.charged_s = self.pace.wait_s(waiting.cost_s)  # until it is known what it took
            self._callers.given(least, waiting.charged_s, len(asking))
            self.free -= 1
            waiting.ready.set_result(None)
            return

    def _asks_too_much(self, who: Caller, now_s: float) -> bool:
        """Whether calls of a caller were refused lately: who asks for one thing at a time is rather answered late."""
        return now_s - who.refused_at_s < LATELY_S

    def _is_late(self, who: Caller, waiting: Waiting, now_s: float) -> bool:
        """Whether a call whose turn comes had better be refused: others are, and it would be answered late.

        The last one is not, or the lane would run dry.
        """
        if who.patient or not self._waiting or not self._asks_too_much(who, now_s):
            return False
        if now_s - self._refused_at_s > _LATE * self._standing_s:
            return False
        patience = 2.0 * _LATE if self._callers.is_modest(who) else _LATE
        return now_s + self.pace.turn_s > waiting.ends_s or now_s - waiting.since_s > patience * self._standing_s

    def _over(self, turn: Turn) -> None:
        self.free += 1
        now_s = time.monotonic()
        held_s = now_s - turn.began_s
        if self.free == self._turns:
            self._idle_from_s = now_s
        late = self._unseen_s() >= LATE_S
        if self._breathe is not None and (late or held_s > SHORT_TURN_S):
            worked_s = thread_time() - turn.cpu_s  # who had to wait for a core has not worked longer
            if late or worked_s > SHORT_TURN_S:
                self._worked_s += worked_s
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
