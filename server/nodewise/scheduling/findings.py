"""What is wrong in a question, collected and raised at once."""

from __future__ import annotations

from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, Violation

__all__ = ["Findings"]

MAX_VIOLATIONS: Final = 20
"""Violations that one error lists: a caller mends the first few, and replies stay small."""
LARGEST_NUMBER: Final = 1e18
"""Of samples, seconds and the like: beyond it products of such numbers would leave the range of a double."""
LONGEST_NAME: Final = 256
"""Characters of a job's, pool's or queue's name."""


class Findings:
    """Collects what is wrong; ``finish`` raises it."""

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

    def number(self, path: str, value: float, *, above_zero: bool = False) -> None:
        """A number of 0 or more (or above 0), and no larger than any that can be meant."""
        if not (value > 0 if above_zero else value >= 0) or value > LARGEST_NUMBER:
            least = "above 0" if above_zero else "0 or more"
            self.wrong(path, f"must be {least} and at most {LARGEST_NUMBER:g}, found {value:g}")

    def name(self, path: str, value: str) -> None:
        """A name chosen by the caller."""
        if not value or len(value) > LONGEST_NAME:
            self.wrong(path, f"must have 1 to {LONGEST_NAME} characters, found {len(value)}")

    def finish(self) -> None:
        """Raise INVALID_FIELD, else CONTRADICTORY_FACTS, if anything was wrong."""
        if self._wrong:
            raise NodewiseError.invalid(self._wrong)
        if self._contradictions:
            raise NodewiseError.invalid(self._contradictions, Reason.CONTRADICTORY_FACTS)
