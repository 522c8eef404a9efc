"""What is wrong in a request, collected and raised at once."""

from __future__ import annotations

from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["Findings"]

MAX_VIOLATIONS: Final = 20
"""Violations that one error lists: a caller mends the first few, and replies stay small."""


class Findings:
    """Collects what is wrong; :meth:`finish` raises it. Readers of one kind of request add their own checks."""

    def __init__(self) -> None:
        self._wrong: list[Violation] = []
        self._contradictions: list[Violation] = []

    @property
    def clean(self) -> bool:
        """Whether nothing wrong was found so far."""
        return not self._wrong and not self._contradictions

    def wrong(self, path: str, description: str) -> None:
        """A field holds what it must not."""
        if len(self._wrong) < MAX_VIOLATIONS:
            self._wrong.append(Violation(path, description))

    def contradicts(self, path: str, description: str) -> None:
        """A field contradicts another."""
        if len(self._contradictions) < MAX_VIOLATIONS:
            self._contradictions.append(Violation(path, description))

    def finish(self) -> None:
        """Raise INVALID_FIELD, else CONTRADICTORY_FACTS, if anything was wrong."""
        if self._wrong:
            raise NodewiseError.invalid(self._wrong)
        if self._contradictions:
            raise NodewiseError.invalid(self._contradictions, Reason.CONTRADICTORY_FACTS)
