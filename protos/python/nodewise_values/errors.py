"""What is wrong in a value, with the path of each field and what would be right in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["InvalidValueError", "Violation"]

LISTED: Final = 5
"""Violations that the error's text lists; all of them are in its attribute."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A field and what would be right in it.

    Attributes
    ----------
    field : str
        Its path from the value that was mapped, e.g. ``configurations.nodes[3]``; empty = the whole.
    description : str
        What would be right, and what was found.
    """

    field: str
    description: str


class InvalidValueError(ValueError):
    """A value that the contract does not allow. ``violations`` lists all that was found, in order of the fields."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        listed = [f"{each.field or 'value'}: {each.description}" for each in self.violations[:LISTED]]
        if len(self.violations) > LISTED:
            listed.append(f"and {len(self.violations) - LISTED} more")
        super().__init__("; ".join(listed))
