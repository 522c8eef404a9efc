"""Paths of google.api.http annotations: `/v1/profiles/{profile_id=**}:append` and the like, matched by rule."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

__all__ = ["Template"]

_VARIABLE: Final = re.compile(r"\{([a-z0-9_.]+)(?:=([^{}]+))?\}")
_PATTERNS: Final = {"*": r"[^/:]+", "**": r"[^/:]+(?:/[^/:]+)*"}
"""A segment, and one or more. None holds a colon, which begins a verb; what a name has of its own is written %3A."""


@dataclass(frozen=True, slots=True)
class Template:
    """A path with variables.

    Attributes
    ----------
    text : str
        As annotated.
    variables : tuple of str
        Paths of fields, in the order of the path.
    """

    text: str
    variables: tuple[str, ...]
    _pattern: re.Pattern[str]

    @classmethod
    def of(cls, text: str) -> Template:
        """Of an annotation. Raises ValueError for a pattern that none of the contract's has."""
        variables, parts, at = [], [], 0
        for found in _VARIABLE.finditer(text):
            parts.append(re.escape(text[at : found.start()]))
            kind = found[2] or "*"
            if kind not in _PATTERNS:
                raise ValueError(f"{text}: {kind} is no pattern that is known")
            parts.append(f"({_PATTERNS[kind]})")
            variables.append(found[1])
            at = found.end()
        parts.append(re.escape(text[at:]))
        return cls(text, tuple(variables), re.compile("".join(parts)))

    def match(self, path: str) -> dict[str, str] | None:
        """Values of the variables in a path as it was asked for; None = it is another path."""
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        return {name: unquote(value) for name, value in zip(self.variables, found.groups(), strict=True)}
