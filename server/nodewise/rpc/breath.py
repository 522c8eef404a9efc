"""The loop's breath: after so much work of turns it takes in what arrived meanwhile, before the next one begins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import thread_time
from typing import Final

from nodewise.rpc.loop_lag import LATE_S

__all__ = ["BREATH_AFTER_S", "SHORT_TURN_S", "Breath"]

BREATH_AFTER_S: Final = 0.002
"""Work after which the next call waits until the loop has taken in what arrived meanwhile."""
SHORT_TURN_S: Final = 0.002
"""A turn so short holds nothing up as long as the loop keeps up: whose turn it is costs such a call as much again as it
shares out. Turns that follow each other so soon are of such calls."""


class Breath:
    """What counts as work, and whether a breath is due.

    Parameters
    ----------
    take : callable or None
        Awaited for a breath. None = turns are not held in the loop, and no work is counted.
    unseen_s : callable
        How long a call that is seen now may have waited where it could not be seen.
    """

    __slots__ = ("_first", "_take", "_worked_s", "unseen_s")

    def __init__(self, take: Callable[[], Awaitable[None]] | None, unseen_s: Callable[[], float]) -> None:
        self._take = take
        self.unseen_s = unseen_s
        self._worked_s = 0.0
        self._first = False

    @property
    def in_loop(self) -> bool:
        """Whether turns are held in the loop."""
        return self._take is not None

    @property
    def late(self) -> bool:
        """Whether the loop does not keep up."""
        return self.unseen_s() >= LATE_S

    @property
    def overdue(self) -> bool:
        """Whether who comes now waits for one."""
        return self._worked_s > BREATH_AFTER_S

    def wants(self) -> None:
        """The next turn comes after one, whatever was worked."""
        self._first = True

    async def taken(self) -> bool:
        """Take one if it is due; whether it was."""
        if self._take is None or not (self._first or self.overdue):
            return False
        self._worked_s = 0.0
        self._first = False
        await self._take()
        return True

    def worked(self, held_s: float, from_cpu_s: float) -> None:
        """A turn is over: short ones are no work, unless the loop is late.

        Parameters
        ----------
        held_s : float
            By the clock; that of the processor is read only if this is long.
        from_cpu_s : float
            CPU that the loop's thread had had when it began: who had to wait for a core has not worked longer.
        """
        if self._take is None:
            return
        late = self.late
        if late or held_s > SHORT_TURN_S:
            worked_s = thread_time() - from_cpu_s
            if late or worked_s > SHORT_TURN_S:
                self._worked_s += worked_s
