"""Violations of a request, collected and raised together."""

from __future__ import annotations

from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["Findings"]

MAX_VIOLATIONS: Final = 20
"""Most violations that one error lists, so that replies stay small."""


class Findings:
    """Collects violations; :meth:`finish` raises them. Readers of one kind of request add their own checks."""

    def __init__(self) -> None:
        self._wrong: list[Violation] = []
        self._contradictions: list[Violation] = []

    @property
    def clean(self) -> bool:
        """Whether there is no violation so far."""
        return not self._wrong and not self._contradictions

    def wrong(self, path: str, description: str) -> None:
        """Add a field with an invalid value."""
        if len(self._wrong) < MAX_VIOLATIONS:
            self._wrong.append(Violation(path, description))

    def contradicts(self, path: str, description: str) -> None:
        """Add a field that contradicts another one."""
        if len(self._contradictions) < MAX_VIOLATIONS:
            self._contradictions.append(Violation(path, description))

    def finish(self) -> None:
        """Raise INVALID_FIELD, else CONTRADICTORY_FACTS, if there are violations."""
        if self._wrong:
            raise NodewiseError.invalid(self._wrong)
        if self._contradictions:
            raise NodewiseError.invalid(self._contradictions, Reason.CONTRADICTORY_FACTS)
