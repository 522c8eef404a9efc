"""Generations as they are kept: which distributions and which catalogue are served together, and who serves whom."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import orjson

__all__ = ["Canary", "Generation", "Installed", "Rule", "State"]

MOST_PREVIOUS: Final = 16
"""Stable generations that are remembered in order; older ones can still be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
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
    distributions: tuple[Installed, ...] = ()
    catalogue_digest: str = ""

    def written(self) -> bytes:
        """As JSON."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def read(cls, data: bytes) -> Generation:
        """From JSON.

        Raises
        ------
        ValueError, TypeError, KeyError
            It is none.
        """
        held: dict[str, Any] = orjson.loads(data)
        return cls(**{**held, "distributions": tuple(Installed(**each) for each in held["distributions"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a canary is promoted or rolled back without anybody's call.

    Attributes
    ----------
    calls : int
        On the canary, before anything is decided.
    most_failures : float
        Share of calls that fail by a fault of the server or of a plugin, beyond the stable track's share.
    most_latency_ratio : float
        Median seconds of a call over the stable track's.
    most_log_ratio : float
        Median |ln(throughput of the canary / of the stable track)| on the same questions.
    promotes : bool
        Whether a canary within all bounds takes over; else it waits for a call.
    """

    calls: int = 200
    most_failures: float = 0.01
    most_latency_ratio: float = 2.0
    most_log_ratio: float = 0.5
    promotes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A generation that answers a share of the jobs.

    Attributes
    ----------
    rule : Rule or None
        None = only calls decide.
    since : int
        Sequence of the state that set it: one that is set again is another one.
    """

    number: int
    share: float
    rule: Rule | None = None
    since: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Who serves.

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

    def promoted(self, number: int) -> State:
        """With another stable generation."""
        if number == self.stable:
            return replace(self, candidate=0)
        before = tuple(each for each in (self.stable, *self.previous) if each != number)
        canary = self.canary if self.canary is not None and self.canary.number != number else None
        return replace(self, stable=number, candidate=0, canary=canary, previous=before[:MOST_PREVIOUS])

    def beside(self, canary: Canary) -> State:
        """With a canary, from now on."""
        return replace(self, canary=replace(canary, since=self.sequence + 1))

    def without(self, number: int) -> State:
        """With no reload that waits for a generation."""
        return replace(self, candidate=0) if self.candidate == number else self

    def written(self) -> bytes:
        """As JSON."""
        return orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2)

    @classmethod
    def read(cls, data: bytes) -> State:
        """From JSON; raises as :meth:`Generation.read`."""
        held: dict[str, Any] = orjson.loads(data)
        canary = held["canary"]
        if canary is not None:
            rule = canary["rule"]
            canary = Canary(**{**canary, "rule": None if rule is None else Rule(**rule)})
        return cls(**{**held, "canary": canary, "previous": tuple(held["previous"])})
