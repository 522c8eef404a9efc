"""Checks that every part of a schedule question shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodewise.domain import findings
from nodewise.domain.schedule import PolicyParameter

__all__ = ["Findings"]

LARGEST_NUMBER: Final = 1e18
"""Of samples, seconds and the like: beyond it products of such numbers would leave the range of a double."""
LONGEST_NAME: Final = 256
"""Characters of a job's, pool's or queue's name."""


class Findings(findings.Findings):
    """What is wrong in a schedule question."""

    def number(self, path: str, value: float, *, above_zero: bool = False) -> None:
        """A number of 0 or more (or above 0), and no larger than any that can be meant."""
        if not (value > 0 if above_zero else value >= 0) or value > LARGEST_NUMBER:
            least = "above 0" if above_zero else "0 or more"
            self.wrong(path, f"must be {least} and at most {LARGEST_NUMBER:g}, found {value:g}")

    def name(self, path: str, value: str) -> None:
        """A name chosen by the caller."""
        if not value or len(value) > LONGEST_NAME:
            self.wrong(path, f"must have 1 to {LONGEST_NAME} characters, found {len(value)}")

    def parameters(self, stated: Mapping[str, float], of: Sequence[PolicyParameter], path: str) -> dict[str, float]:
        """A policy's parameters with the defaults of those that are not stated; ``path`` has a place for the name."""
        known = {parameter.name: parameter for parameter in of}
        for name, value in sorted(stated.items()):
            if name not in known:
                listed = ", ".join(map(repr, known)) or "none"
                self.wrong(path.format(name), f"is no parameter of this policy, which has: {listed}")
            elif not known[name].minimum <= value <= known[name].maximum:
                bounds = f"{known[name].minimum:g} to {known[name].maximum:g}"
                self.wrong(path.format(name), f"must be {bounds}, found {value:g}")
        return {name: stated.get(name, parameter.default) for name, parameter in known.items()}
