"""Checks that every part of a schedule question shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from nodewise.domain import findings
from nodewise.domain.policy_parameters import PolicyParameter

__all__ = ["Findings"]

LARGEST_NUMBER: Final = 1e18
"""Of samples, seconds and the like: products of larger numbers would leave the range of a double."""
LONGEST_NAME: Final = 256
"""Most characters of a job's, pool's or queue's name."""


class Findings(findings.Findings):
    """What is wrong in a schedule question."""

    def number(self, path: str, value: float, *, above_zero: bool = False) -> None:
        """Check that a number is 0 or more (or above 0), and at most ``LARGEST_NUMBER``."""
        if not (value > 0 if above_zero else value >= 0) or value > LARGEST_NUMBER:
            least = "above 0" if above_zero else "0 or more"
            self.wrong(path, f"must be {least} and at most {LARGEST_NUMBER:g}, found {value:g}")

    def name(self, path: str, value: str) -> None:
        """Check a name that the caller chose."""
        if not value or len(value) > LONGEST_NAME:
            self.wrong(path, f"must have 1 to {LONGEST_NAME} characters, found {len(value)}")

    def parameters(self, values: Mapping[str, float], of: Sequence[PolicyParameter], path: str) -> dict[str, float]:
        """A policy's parameters, the stated ones and defaults; ``path`` is a template that takes the name."""
        by_name = {parameter.name: parameter for parameter in of}
        for name, value in sorted(values.items()):
            if name not in by_name:
                names = ", ".join(map(repr, by_name)) or "none"
                self.wrong(path.format(name), f"must be a parameter of this policy ({names})")
            elif not by_name[name].minimum <= value <= by_name[name].maximum:
                bounds = f"{by_name[name].minimum:g} to {by_name[name].maximum:g}"
                self.wrong(path.format(name), f"must be {bounds}, found {value:g}")
        return {name: values.get(name, parameter.default) for name, parameter in by_name.items()}
