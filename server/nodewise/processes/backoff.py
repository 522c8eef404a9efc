"""How soon a process that died is started again, and when that is of no use any more."""

from __future__ import annotations

from typing import Final

__all__ = ["Backoff"]

FORGIVEN_PER_S: Final = 0.5
"""Deaths that a second of service makes up for: a process that served two seconds starts with a clean slate. Only what
keeps processes from serving adds up."""
FIRST_DELAY_S: Final = 0.5
"""Before the second start in a row (the first is at once); twice as long before each one after it."""
LONGEST_DELAY_S: Final = 30.0
"""The longest time until a fault that has gone is noticed."""


class Backoff:
    """Counts deaths of processes; time in service makes up for earlier deaths.

    Parameters
    ----------
    budget : float
        Number of deaths, not made up for by service, at which another start is of no use.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._deaths = 0.0

    def record_death(self, served_s: float) -> float:
        """Count the death of a process that served for so long; returns the seconds to wait before the next start."""
        self._deaths = max(0.0, self._deaths - served_s * FORGIVEN_PER_S) + 1.0
        if self._deaths < 2.0:
            return 0.0
        doublings = min(self._deaths - 2.0, 64.0)  # a float has no room beyond, and the longest delay is long reached
        return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**doublings))

    @property
    def is_spent(self) -> bool:
        """Whether another start is of no use."""
        return self._deaths >= self._budget
