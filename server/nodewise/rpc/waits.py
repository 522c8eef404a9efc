"""Waits that are bearable: who may wait for a turn, who makes room for whom, and who is told at once not to.

Waits are counted in work: what each call ahead is expected to cost, times what the lane takes for such work lately. A
short burst may wait long. Where that was not enough and calls were refused, a long queue would only make everybody
late: the lane then keeps no more calls than it takes to be never idle, until nobody was refused for as long as callers
are told to stay away, or it was idle.
"""

from __future__ import annotations

from typing import Final

from nodewise.rpc.breath import Breath
from nodewise.rpc.callers import LATELY_S, Caller, Callers, Waiting
from nodewise.rpc.overload import Overload, OverloadedError
from nodewise.rpc.pace import Pace

__all__ = ["CALLER_WAIT_S", "Waits"]

CALLER_WAIT_S: Final = 2.0
"""Longest wait that is expected of a caller's only waiting call while nobody is refused."""
_LEAST_WAITING: Final = 4
"""Calls that may wait whatever they take: with fewer a lane would run dry between two of them."""
_ONLY_TURNS: Final = 6.0
"""Usual turns that a caller's only waiting call may wait for while a lane is overloaded: so many callers share it
before some of them find no place."""
_LATE: Final = 1.5
"""Times the bound of a lane that refuses, after which a call whose turn comes is refused rather than answered late."""


class Waits:
    """Judges calls that would wait, or have waited.

    Parameters
    ----------
    callers : Callers
        Who wait.
    pace, overload, breath
        Of the lane.
    wait_s : float
        Wait above which no more calls are taken.
    most_waiting : float
        Calls that wait, whatever they take.
    """

    def __init__(  # the parts of a lane
        self, callers: Callers, pace: Pace, overload: Overload, breath: Breath, wait_s: float, most_waiting: float
    ) -> None:
        self.refused = 0
        self._callers = callers
        self._pace = pace
        self._overload = overload
        self._breath = breath
        self._wait_s = wait_s
        self._most_waiting = most_waiting

    @property
    def expected_s(self) -> float:
        """Until all that waits has had its turn."""
        return self._pace.wait_s(self._callers.waiting_cost_s)

    def refusal(self, who: Caller, cost_s: float, remaining_s: float, now_s: float) -> OverloadedError | None:
        """Why a call would be refused itself; counted as a refusal."""
        bound_s, modest = self._bearable(who, now_s)
        wait_s = self._too_long_s(who, cost_s, remaining_s, now_s, bound_s, modest=modest)
        return None if wait_s is None else self._refused(wait_s, who, now_s)

    def admit(self, who: Caller, cost_s: float, remaining_s: float, now_s: float) -> None:
        """Refuse a call that would wait too long; or another one in its stead, of who has more waiting.

        Raises
        ------
        OverloadedError
        """
        callers = self._callers
        bound_s, modest = self._bearable(who, now_s)
        wait_s = self._too_long_s(who, cost_s, remaining_s, now_s, bound_s, modest=modest)
        if wait_s is not None:
            raise self._refused(wait_s, who, now_s)
        if callers.waiting_calls < _LEAST_WAITING or self.expected_s + self._pace.turn_s <= bound_s:
            return
        victim = callers.victim(who, modest=modest)
        if victim is not None:
            newest = callers.newest(victim)
            if not newest.ready.done():
                newest.ready.set_exception(self._refused(self.expected_s, victim, now_s))
        elif who.waiting and not modest:
            raise self._refused(self.expected_s, who, now_s)

    def late(self, who: Caller, waiting: Waiting, now_s: float) -> OverloadedError | None:
        """Why a call whose turn comes had better be refused: others are, and it would be answered late.

        The last one is not, or the lane would run dry.
        """
        if who.patient or not self._callers.waiting_calls or not self._asks_too_much(who, now_s):
            return None
        standing_s = self._overload.standing_s
        if now_s - self._overload.seen_at_s > _LATE * standing_s:
            return None
        patience = 2.0 * _LATE if self._callers.is_modest(who) else _LATE
        waited_s = now_s - waiting.since_s
        if now_s + self._pace.turn_s <= waiting.ends_s and waited_s <= patience * standing_s:
            return None
        self.refused += 1
        return OverloadedError(waited_s, self._callers.waiting_calls)

    def _bearable(self, who: Caller, now_s: float) -> tuple[float, bool]:
        """Longest wait of the lane as it is, and whether a caller was given so little that it is not bound by it."""
        bound_s = self._wait_s
        if self._overload.lasts(now_s):
            bound_s = min(bound_s, self._overload.standing_s)
        return bound_s, len(who.waiting) < _LEAST_WAITING and self._callers.is_modest(who)

    def _too_long_s(  # a call, and what was found of its caller
        self, who: Caller, cost_s: float, remaining_s: float, now_s: float, bound_s: float, *, modest: bool
    ) -> float | None:
        """The wait that is to be expected, if it is longer than bearable."""
        callers, turn_s = self._callers, self._pace.turn_s
        if callers.waiting_calls < _LEAST_WAITING:
            return None
        overloaded = self._overload.lasts(now_s)
        asking = len(callers.waiting()) + (not who.waiting)
        ahead_s = who.cost_s * asking + (asking - 1) * self._pace.usual_cost_s
        if modest or not overloaded:  # else others will come meanwhile, and have their turns before
            ahead_s = min(ahead_s, callers.waiting_cost_s)
        wait_s = self._pace.wait_s(ahead_s + cost_s)
        if self._asks_too_much(who, now_s):  # else it is taken in, whatever held the loop before it came
            wait_s += self._breath.unseen_s()
        own_s = self._wait_s if modest else bound_s
        if not who.waiting:
            own_s = max(own_s, min(CALLER_WAIT_S, _ONLY_TURNS * turn_s) if overloaded else CALLER_WAIT_S)
        too_many = callers.waiting_calls >= self._most_waiting
        return wait_s if wait_s > min(own_s, remaining_s) or too_many else None

    def _asks_too_much(self, who: Caller, now_s: float) -> bool:
        """Whether calls of a caller were refused lately: who asks for one thing at a time is rather answered late."""
        return now_s - who.refused_at_s < LATELY_S

    def _refused(self, wait_s: float, who: Caller, now_s: float) -> OverloadedError:
        self.refused += 1
        who.refused_at_s = now_s
        self._overload.seen(now_s)
        return OverloadedError(wait_s, self._callers.waiting_calls)
