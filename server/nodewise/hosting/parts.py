"""Parts of registries: what one distribution brought, shared by all registries in which that distribution is the same.

A registry is a new snapshot, but what did not change is not loaded again: a module is imported once in a process, and
a host goes on with the models that it has. It ends with the last registry that has it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from nodewise.hosting.processes.peer import Listing, Peer
from nodewise.hosting.records import Hook, PluginProblem

__all__ = ["Key", "Lease", "Part", "unchanged"]

_numbers = itertools.count(1)


class _Tenancy:
    """A host, and how many leases of it have not ended."""

    def __init__(self, host: Peer) -> None:
        self.host = host
        self.number = next(_numbers)
        self.lock = threading.Lock()
        self.leases = 0


class Lease:
    """One registry's right to a host. Threads share it.

    Parameters
    ----------
    host : Peer
        Of nobody else so far; :meth:`again` makes leases for others.
    """

    def __init__(self, host: Peer, _tenancy: _Tenancy | None = None) -> None:
        self._tenancy = _tenancy or _Tenancy(host)
        self._ended = False
        if _tenancy is None:
            self._tenancy.leases = 1

    @property
    def host(self) -> Peer:
        """What is leased."""
        return self._tenancy.host

    @property
    def number(self) -> int:
        """Of the host among all that this process has had."""
        return self._tenancy.number

    def again(self) -> Lease | None:
        """Another one of the same host; None = the last one has ended."""
        with self._tenancy.lock:
            if not self._tenancy.leases:
                return None
            self._tenancy.leases += 1
        return Lease(self.host, self._tenancy)

    def end(self) -> bool:
        """Give it back; whether it was the last one, which ends the host. Again = nothing more."""
        with self._tenancy.lock:
            if self._ended:
                return False
            self._ended = True
            self._tenancy.leases -= 1
            last = not self._tenancy.leases
        if last:
            self.host.close()
        return last


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
    lease : Lease or None
        Of its host; None = it runs inline.
    arriving : bool
        Whether its host was still loading, so that it is not known what it brings.
    seen : Listing or None
        What its host had said that it brings.
    """

    key: Key
    records: tuple[tuple[Hook, Any], ...]
    problems: tuple[PluginProblem, ...]
    lease: Lease | None
    arriving: bool = False
    seen: Listing | None = None

    @property
    def arrived(self) -> bool:
        """Whether it is known by now what an arriving one brings, or that it brings something else."""
        if self.lease is None:
            return False
        host = self.lease.host
        return host.settled(0.0) if self.arriving else host.known is not self.seen

    def again(self) -> Part | None:
        """The same for another registry; None = its host has ended."""
        if self.lease is None:
            return self
        lease = self.lease.again()
        return None if lease is None else replace(self, lease=lease)


def unchanged(key: Key, known: Iterable[Part]) -> Part | None:
    """A part for another registry, of what is loaded already; None = it must be loaded.

    One whose host could not be loaded is tried again.
    """
    for part in known:
        if part.key != key:
            continue
        loadable = part.lease is None or part.lease.host.known is not None or not part.lease.host.settled(0.0)
        found = part.again() if loadable else None
        if found is not None:
            return found
    return None
