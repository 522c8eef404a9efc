"""Stored records of generations: distributions and catalogue that are served together, and for which jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from pydantic import TypeAdapter

__all__ = ["Canary", "Generation", "InstalledDistribution", "State"]

MOST_PREVIOUS: Final = 16
"""Stable generations that are remembered in order; older ones can still be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledDistribution:
    """A distribution of a generation.

    Attributes
    ----------
    name : str
        Canonical: lower case, dashes.
    folder : str
        Name of its folder, which contains the distribution and the dependencies that the server lacks.
    digest : str
        Digest of all files in the folder.
    """

    name: str
    version: str
    folder: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Plugins and a catalogue that are served together. Immutable.

    Attributes
    ----------
    number : int
        Number, from 1.
    created_unix_s : float
        Seconds since 1970 (UTC).
    why : str
        Reason for its creation, for people.
    distributions : tuple of Installed
        Distributions that replace or extend those of the server's environment, by name.
    catalogue_digest : str
        Digest of its file of devices and links; "" = shipped facts only.
    """

    number: int
    created_unix_s: float
    why: str
    distributions: tuple[InstalledDistribution, ...] = ()
    catalogue_digest: str = ""

    def to_json(self) -> bytes:
        """Write it as JSON."""
        return _generations().dump_json(self, indent=2)

    @classmethod
    def read(cls, data: bytes) -> Generation:
        """Read it from JSON. Raises ValueError if the text is invalid."""
        return _generations().validate_json(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A generation that answers a share of the jobs."""

    number: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The generations that serve.

    Attributes
    ----------
    sequence : int
        Increases with every change.
    stable : int
        Generation of the default track; 0 = the server's environment.
    candidate : int
        Generation that the next reload activates; 0 = none.
    canary : Canary or None
        None = there is none.
    previous : tuple of int
        Earlier stable generations, the latest first, for rollbacks.
    """

    sequence: int = 0
    stable: int = 0
    candidate: int = 0
    canary: Canary | None = None
    previous: tuple[int, ...] = ()

    def with_stable(self, number: int) -> State:
        """Return a state with another stable generation."""
        if number == self.stable:
            return replace(self, candidate=0)
        before = tuple(each for each in (self.stable, *self.previous) if each != number)
        canary = self.canary if self.canary is not None and self.canary.number != number else None
        return replace(self, stable=number, candidate=0, canary=canary, previous=before[:MOST_PREVIOUS])

    def without(self, number: int) -> State:
        """Return a state without a candidate."""
        return replace(self, candidate=0) if self.candidate == number else self

    def to_json(self) -> bytes:
        """As JSON."""
        return _states().dump_json(self, indent=2)

    @classmethod
    def read(cls, data: bytes) -> State:
        """Read it from JSON of this or an older version. Raises ValueError if the text is invalid."""
        return _states().validate_json(data)


@cache
def _generations() -> TypeAdapter[Generation]:
    """Reads and writes a generation. Made when it is needed, as it takes a while."""
    return TypeAdapter(Generation)


@cache
def _states() -> TypeAdapter[State]:
    """Reads and writes a state."""
    return TypeAdapter(State)
