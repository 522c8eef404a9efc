"""Callers of a lane: who waits, what each was given, and who was given little lately."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from dataclasses import dataclass
from typing import Final

__all__ = ["LATELY_S", "Caller", "CallerKey", "Callers", "Waiting"]

CallerKey = tuple[str, bool]
"""Name, and whether it is patient."""
_MODEST_SHARE: Final = 0.5
"""Of what who was given most lately was given: a caller with less pays for nobody's haste. Callers that ask alike are
given that little by chance once in hundreds of times: some ten turns each in the time that is looked at."""
LATELY_S: Final = 2.0
"""Time in which what a caller was given is half forgotten and more (to 1/e)."""
_RESCALED_AFTER_S: Final = 400.0 * LATELY_S
"""Weights of later turns grow instead of those of earlier ones shrinking; a double holds e^400 with room to spare."""
_OWED_TURNS: Final = 16.0
"""Usual turns that a caller who asked nothing meanwhile may have before others: as many as four callers' only calls."""
_FORGET_ABOVE: Final = 4
"""Callers known for each that waits, above which those who owe nothing are forgotten: rarely, as it looks at all."""
_KNOWN: Final = 64
"""Callers that are known in any case: who asks little has nothing waiting most of the time, and is still owed turns."""


class Caller:
    """What a lane knows of a caller that waits, or was given turns lately."""

    __slots__ = ("cost_s", "given_s", "lately", "patient", "refused_at_s", "waiting")

    def __init__(self, given_s: float, lately: float, *, patient: bool) -> None:
        self.given_s = given_s
        self.lately = lately
        self.patient = patient
        self.refused_at_s = -math.inf
        self.cost_s = 0.0
        self.waiting: deque[Waiting] = deque()


@dataclass(slots=True, eq=False)
class Waiting:
    """A call that waits, what it will cost, and what its caller was charged when it was given its turn."""

    ready: asyncio.Future[None]
    cost_s: float
    since_s: float
    ends_s: float
    charged_s: float = 0.0


class Callers:
    """Those that wait, or were given turns lately.

    Parameters
    ----------
    now_s : float
        By the monotonic clock.

    Attributes
    ----------
    waiting_calls : int
    waiting_cost_s : float
        CPU that these are expected to cost.
    """

    def __init__(self, now_s: float) -> None:
        self._known: dict[CallerKey, Caller] = {}
        self._given_s = 0.0
        self._most_lately = 0.0
        self._weighed_from_s = now_s
        self.waiting_calls = 0
        self.waiting_cost_s = 0.0

    def __len__(self) -> int:
        """How many are known."""
        return len(self._known)

    def get(self, key: CallerKey) -> Caller | None:
        """One that is known."""
        return self._known.get(key)

    def known(self, key: CallerKey, turn_s: float) -> Caller:
        """One as it is known, or a new one; who asked nothing for long is owed no more than who asked little."""
        found = self._known.get(key)
        if found is None:
            return Caller(self._given_s, _MODEST_SHARE * self._most_lately, patient=key[1])
        if not found.waiting:
            most_s = max(each.given_s for each in self._known.values())
            found.given_s = max(found.given_s, most_s - _OWED_TURNS * turn_s)
        return found

    def enter(self, key: CallerKey, who: Caller, waiting: Waiting) -> None:
        """A call waits."""
        self._known[key] = who
        who.waiting.append(waiting)
        who.cost_s += waiting.cost_s
        self.waiting_calls += 1
        self.waiting_cost_s += waiting.cost_s

    def next(self, who: Caller) -> Waiting:
        """The oldest call of one that waits, which waits no more."""
        oldest = who.waiting.popleft()
        self._left(who, oldest)
        return oldest

    def newest(self, who: Caller) -> Waiting:
        """The newest one, which waits no more."""
        newest = who.waiting.pop()
        self._left(who, newest)
        return newest

    def gone(self, who: Caller, waiting: Waiting) -> bool:
        """A call goes while it waits; False = it does not any more."""
        if waiting not in who.waiting:
            return False
        who.waiting.remove(waiting)
        self._left(who, waiting)
        return True

    def _left(self, who: Caller, waiting: Waiting) -> None:
        who.cost_s -= waiting.cost_s
        self.waiting_calls -= 1
        self.waiting_cost_s = self.waiting_cost_s - waiting.cost_s if self.waiting_calls else 0.0

    def clear(self) -> None:
        """Nobody waits, and nobody is owed anything."""
        self._known.clear()

    def waiting(self) -> list[Caller]:
        """Those that wait."""
        return [each for each in self._known.values() if each.waiting]

    def is_modest(self, who: Caller) -> bool:
        """Whether it was given much less lately than another one."""
        return who.lately < _MODEST_SHARE * self._most_lately

    def given(self, who: Caller, charged_s: float, waiting: int) -> None:
        """A turn begins; so many callers wait."""
        who.given_s += charged_s
        # Who comes anew begins here: nobody saves up turns by asking nothing, nor comes before those who wait.
        self._given_s = max(self._given_s, who.given_s)
        if len(self._known) > max(_KNOWN, _FORGET_ABOVE * waiting):
            self._known = {
                key: each for key, each in self._known.items() if each.waiting or each.given_s > self._given_s
            }

    def charge(self, who: Caller, held_s: float, charged_s: float, now_s: float) -> None:
        """A turn is over, for which so much was charged when it began."""
        if now_s - self._weighed_from_s > _RESCALED_AFTER_S:
            scale = math.exp((self._weighed_from_s - now_s) / LATELY_S)
            for each in self._known.values():
                each.lately *= scale
            self._most_lately *= scale
            self._weighed_from_s = now_s
        who.given_s += held_s - charged_s
        who.lately += held_s * math.exp((now_s - self._weighed_from_s) / LATELY_S)
        self._most_lately = max(self._most_lately, who.lately)

    def victim(self, who: Caller, *, modest: bool) -> Caller | None:
        """Whose newest call makes room: for the modest, of whom was given most; else of whom has more waiting."""
        others = [each for each in self.waiting() if not each.patient]
        if not others:
            return None
        if modest:
            most = max(others, key=lambda each: each.lately)
            return most if who.lately < _MODEST_SHARE * most.lately else None
        most = max(others, key=lambda each: each.cost_s)
        return most if len(most.waiting) > len(who.waiting) + 1 else None
