"""Delays before a process that died is restarted, and when to give up."""

from __future__ import annotations

from typing import Final

__all__ = ["Backoff"]

FORGIVEN_PER_S: Final = 0.5
"""Deaths that a second of service offsets: two seconds offset one death, so only faults that keep processes from
serving add up."""
FIRST_DELAY_S: Final = 0.5
"""Seconds before the second restart in a row (the first is immediate); doubled before each further one."""
LONGEST_DELAY_S: Final = 30.0
"""Largest delay, so that the end of a fault is noticed in time."""


class Backoff:
    """Counts deaths of processes; time in service offsets earlier deaths.

    Parameters
    ----------
    budget : float
        Number of deaths, not offset by service, at which to give up.
    """

    def __init__(self, budget: float) -> None:
        self._budget = budget
        self._deaths = 0.0

    def record_death(self, served_s: float) -> float:
        """Count the death of a process that served for so long; returns the seconds to wait before the next start."""
        self._deaths = max(0.0, self._deaths - served_s * FORGIVEN_PER_S) + 1.0
        if self._deaths < 2.0:
            return 0.0
        doublings = min(self._deaths - 2.0, 64.0)  # avoids overflow; the longest delay is reached long before
        return float(min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0**doublings))

    @property
    def is_spent(self) -> bool:
        """Whether to give up."""
        return self._deaths >= self._budget
