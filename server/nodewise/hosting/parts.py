"""Parts of registries: what one distribution brought, shared by all registries in which that distribution is the same.

A registry is a new snapshot, but what did not change is not loaded again: a module is imported once in a process, and
a host goes on with the models that it has. It ends with the last registry that has it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nodewise.hosting.processes.peer import Listing, Peer
from nodewise.hosting.records import Hook, PluginProblem

__all__ = ["Key", "Part", "unchanged"]


class Key(NamedTuple):
    """The same for two loadings that must come to the same.

    Attributes
    ----------
    distribution : str
        Name and version.
    mode : str
        Where it runs.
    origin : str
        Of what runs in a host: tells two builds of one version from each other.
    points : tuple of pairs
        Name and value of its entry points.
    """

    distribution: str
    mode: str
    origin: str
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Part:
    """What one distribution brought.

    Attributes
    ----------
    key : Key
    records : tuple of pairs
        Each a Hook and what is Loaded of it.
    host : Peer or None
        What answers for it; None = it runs inline.
    lease : object
        By which the host knows the registry that has this part.
    arriving : bool
        Whether its host was still loading, so that it is not known what it brings.
    seen : Listing or None
        What its host had said that it brings.
    """

    key: Key
    records: tuple[tuple[Hook, Any], ...] = ()
    problems: tuple[PluginProblem, ...] = ()
    host: Peer | None = None
    lease: object = None
    arriving: bool = False
    seen: Listing | None = None

    @property
    def arrived(self) -> bool:
        """Whether it is known by now what an arriving one brings, or that it brings something else."""
        if self.host is None:
            return False
        return self.host.settled(0.0) if self.arriving else self.host.known is not self.seen

    def again(self) -> Part | None:
        """The same for another registry; None = its host has ended."""
        if self.host is None:
            return self
        lease = self.host.lease()
        return None if lease is None else replace(self, lease=lease)

    def end(self) -> None:
        """Give the host up, which ends with the last part that has it. Again = nothing more."""
        if self.host is not None and self.host.end(self.lease):
            for _, loaded in self.records:
                loaded.breaker.end()


def unchanged(key: Key, known: Iterable[Part]) -> Part | None:
    """A part for another registry, of what is loaded already; None = it must be loaded.

    One whose host could not be loaded is tried again.
    """
    for part in known:
        host = part.host
        if part.key == key and (host is None or host.known is not None or not host.settled(0.0)):
            found = part.again()
            if found is not None:
                return found
    return None
