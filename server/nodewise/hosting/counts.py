"""Numbers of calls to plugins, of failures, and their durations."""

from __future__ import annotations

import threading
from dataclasses import dataclass

__all__ = ["CallCounts", "Tally"]


@dataclass(frozen=True, slots=True)
class Tally:
    """Calls of one method: all of them, those that failed, and the seconds spent in all.

    A refusal is an answer; an invalid answer is a failure. The seconds of a call that makes others (a fit that uses
    another estimator's model) include theirs.
    """

    calls: int = 0
    failures: int = 0
    seconds: float = 0.0


class CallCounts:
    """Tallies of one plugin by method. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[str, tuple[int, int, float]] = {}
        self._last_s: dict[str, float] = {}

    def add(self, method: str, seconds: float, *, failed: bool) -> None:
        """Count one call."""
        with self._lock:
            calls, failures, total_s = self._tallies.get(method, (0, 0, 0.0))
            self._tallies[method] = (calls + 1, failures + failed, total_s + seconds)
            self._last_s[method] = seconds

    def longest_last_s(self, methods: tuple[str, ...]) -> float | None:
        """The longest of the last calls of these methods, in seconds; None = one of them was never called."""
        last_s = [self._last_s.get(method) for method in methods]
        durations_s = [each for each in last_s if each is not None]
        return max(durations_s) if len(durations_s) == len(methods) else None

    def by_method(self) -> dict[str, Tally]:
        """The tallies as they are now."""
        with self._lock:
            return {method: Tally(*tally) for method, tally in self._tallies.items()}
