"""Plugins of one distribution, shared by all registries in which that distribution is the same.

A registry is a new snapshot, but what did not change is not loaded again: a module is imported once in a process, and
a host keeps its models. It ends with the last registry that uses it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from nodewise.hosting.records import Hook, Listing, PluginProblem

if TYPE_CHECKING:
    from nodewise.hosting.processes.peer import Peer

__all__ = ["Key", "SharedPlugin", "shared_from"]


class Key(NamedTuple):
    """Identifies the result of loading a distribution.

    Attributes
    ----------
    distribution : str
        Name and version.
    mode : str
        Where it runs.
    origin : str
        Of what runs in a host: differs between two builds of one version.
    points : tuple of pairs
        Name and value of its entry points.
    """

    distribution: str
    mode: str
    origin: str
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedPlugin:
    """The records of one distribution, which registries may share.

    Attributes
    ----------
    key : Key
    records : tuple of pairs
        Each a Hook and a LoadedPlugin.
    host : Peer or None
        The host that runs it; None = it runs inline.
    lease : object
        The host's token for the registry that uses this plugin.
    is_loading : bool
        Whether its host was still loading, so that its records are not known.
    listing : Listing or None
        The listing of its host that these records come from.
    """

    key: Key
    records: tuple[tuple[Hook, Any], ...] = ()
    problems: tuple[PluginProblem, ...] = ()
    host: Peer | None = None
    lease: object = None
    is_loading: bool = False
    listing: Listing | None = None

    @property
    def is_stale(self) -> bool:
        """Whether the host has a newer listing than the one that these records are from."""
        if self.host is None:
            return False
        return self.host.wait_until_known(0.0) if self.is_loading else self.host.known_listing is not self.listing

    def with_new_lease(self) -> SharedPlugin | None:
        """A copy for another registry, with a lease of its own; None = its host has ended."""
        if self.host is None:
            return self
        lease = self.host.lease()
        return None if lease is None else replace(self, lease=lease)

    def end(self) -> None:
        """Release the host, which ends with the last plugin that uses it. A second call does nothing."""
        if self.host is not None and self.host.end(self.lease):
            for _, plugin in self.records:
                plugin.breaker.end()


def shared_from(key: Key, plugins: Iterable[SharedPlugin]) -> SharedPlugin | None:
    """A plugin for another registry, from the loaded ones; None = it must be loaded.

    One whose host could not be loaded is tried again.
    """
    for plugin in plugins:
        host = plugin.host
        if plugin.key == key and (host is None or host.known_listing is not None or not host.wait_until_known(0.0)):
            copy = plugin.with_new_lease()
            if copy is not None:
                return copy
    return None
