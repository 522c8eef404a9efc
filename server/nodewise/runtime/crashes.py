"""How soon a worker that died is replaced, and when that is no use any more: budgets by cause."""

from __future__ import annotations

import signal
from typing import Final

__all__ = ["Crashes", "cause_of"]

FORGIVEN_PER_S: Final = 0.5
"""Deaths that each second of serving makes forgotten: who served for two seconds starts with a clean slate. What comes
now and then is answered at once, for ever, and only what keeps a worker from serving adds up."""
FIRST_DELAY_S: Final = 0.5
"""Before the second restart in a row (the first is at once); twice as long before each one after it."""
LONGEST_DELAY_S: Final = 30.0
"""What delays grow to: whatever was missing is found within so long of its coming back."""
OF_ALL_CAUSES: Final = 4
"""Budgets of one cause that all causes have together: what dies in ever new ways is given up too."""


def cause_of(status: int, doing: str = "") -> str:
    """What a death is counted under: how the process ended, and what it had said that it was at.

    Parameters
    ----------
    status : int
        Exit status; negative = the signal that ended it.
    """
    if status >= 0:
        how = f"exit status {status}"
    else:
        try:
            how = signal.Signals(-status).name
        except ValueError:
            how = f"signal {-status}"
    return f"{how} in {doing}" if doing else how


class Crashes:
    """Counts deaths by cause, and forgets them as time is served.

    Parameters
    ----------
    budget : int
        Deaths of one cause, not forgotten by serving, after which restarting is no use.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._levels: dict[str, float] = {}
        self._level = 0.0

    def died(self, cause: str, served_s: float) -> float:
        """A worker died after it had served for so long; returns the seconds to wait before another is started."""
        forgiven = served_s * FORGIVEN_PER_S
        self._level = max(0.0, self._level - forgiven) + 1.0
        # Forgiven is whatever else it could have died of meanwhile.
        self._levels = {known: level - forgiven for known, level in self._levels.items() if level > forgiven}
        level = self._levels[cause] = self._levels.get(cause, 0.0) + 1.0
        if level < 2.0:
            return 0.0
        exponent = min(level - 2.0, 64.0)  # beyond it a float has no room, and the longest delay is long reached
        return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**exponent))

    def spent(self) -> str | None:
        """The cause whose budget is spent; None = there is none."""
        for cause, level in self._levels.items():
            if level >= self._budget:
                return cause
        return "many causes" if self._level >= OF_ALL_CAUSES * self._budget else None
