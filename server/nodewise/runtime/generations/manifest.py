"""Generations as they are kept: which distributions and which catalogue are served together, and to which jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pydantic import TypeAdapter

__all__ = ["Canary", "Generation", "InstalledDistribution", "State"]

MOST_PREVIOUS: Final = 16
"""Stable generations that are remembered in order; older ones can still be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledDistribution:
    """A distribution as a generation has it.

    Attributes
    ----------
    name : str
        Canonical: lower case, dashes.
    folder : str
        Name of its folder, which holds nothing but it and what it needs beyond what the server brings.
    digest : str
        Of all files in the folder.
    """

    name: str
    version: str
    folder: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What is served together. Immutable.

    Attributes
    ----------
    number : int
        From 1 upwards.
    created_unix_s : float
        Seconds since 1970 (UTC).
    why : str
        What made it, for people.
    distributions : tuple of Installed
        Besides those of the server's own environment, in whose place they stand; by name.
    catalogue_digest : str
        Of the file of devices and links that is kept with it; "" = the shipped facts alone.
    """

    number: int
    created_unix_s: float
    why: str
    distributions: tuple[InstalledDistribution, ...] = ()
    catalogue_digest: str = ""

    def to_json(self) -> bytes:
        """As JSON."""
        return _GENERATION.dump_json(self, indent=2)

    @classmethod
    def read(cls, data: bytes) -> Generation:
        """From JSON. Raises ValueError if it is none."""
        return _GENERATION.validate_json(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A generation that answers a share of the jobs."""

    number: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Which generations serve.

    Attributes
    ----------
    sequence : int
        Grows with every change.
    stable : int
        Generation of the default track; 0 = the server's own environment, as it is.
    candidate : int
        Generation that the next reload takes; 0 = none waits.
    canary : Canary or None
        None = there is none.
    previous : tuple of int
        Stable generations before this one, the last first: what rollbacks return to.
    """

    sequence: int = 0
    stable: int = 0
    candidate: int = 0
    canary: Canary | None = None
    previous: tuple[int, ...] = ()

    def with_stable(self, number: int) -> State:
        """With another stable generation."""
        if number == self.stable:
            return replace(self, candidate=0)
        before = tuple(each for each in (self.stable, *self.previous) if each != number)
        canary = self.canary if self.canary is not None and self.canary.number != number else None
        return replace(self, stable=number, candidate=0, canary=canary, previous=before[:MOST_PREVIOUS])

    def without(self, number: int) -> State:
        """With no reload that waits for a generation."""
        return replace(self, candidate=0) if self.candidate == number else self

    def to_json(self) -> bytes:
        """As JSON."""
        return _STATE.dump_json(self, indent=2)

    @classmethod
    def read(cls, data: bytes) -> State:
        """From JSON, of an older version too. Raises ValueError if it is none."""
        return _STATE.validate_json(data)


_GENERATION: Final = TypeAdapter(Generation)
_STATE: Final = TypeAdapter(State)
