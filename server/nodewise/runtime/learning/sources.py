"""Selection of the profiles to learn from: a sample of each namespace, in groups of owners where namespaces are shared.

The sample takes the profiles with the lowest hashes of their uids. The server assigns uids, so names have no influence
on the sample, and a new profile replaces at most one other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from nodewise.domain.namespaces import namespace_of
from nodewise.estimation.answer.bounded_influence import GROUPS
from nodewise.profiles.store import ProfileStore, ProfileSummary

__all__ = ["LEARNED_PROFILES", "Corpora", "Groups", "Source", "Sources", "share_out"]

LEARNED_PROFILES: Final = 200
"""Most profiles that a namespace learns from: more of them add little, and each costs some fits."""
_PAGE: Final = 1000
_LAST: Final = 1 << 62
"""Greater than any generation of a store."""


class Source(NamedTuple):
    """A profile at a revision."""

    profile_id: str
    uid: str
    revision: int

    @property
    def place(self) -> int:
        """Sort key: a hash of the uid, so that samples are random but equal in all processes."""
        return int.from_bytes(hashlib.sha256(self.uid.encode()).digest()[:8], "big")


@dataclass(frozen=True, slots=True)
class Corpora:
    """The profiles that lessons are learned from.

    Attributes
    ----------
    own : tuple of Source
        Profiles of the namespace.
    others : tuple of tuple of Source
        Profiles of each group of other owners. Each group is learned from together with ``own``.
    """

    own: tuple[Source, ...] = ()
    others: tuple[tuple[Source, ...], ...] = ()

    @property
    def parts(self) -> tuple[tuple[Source, ...], ...]:
        """The namespace's own profiles, then those of each group."""
        return (self.own, *self.others)

    @property
    def lessons_id(self) -> str:
        """Id of the lessons; equal corpora have equal ids."""
        return hashlib.sha256(repr((self.own, self.others)).encode()).hexdigest()[:16]


class Sources:
    """The sampled profiles of a store by namespace, updated with the store."""

    def __init__(self, store: ProfileStore) -> None:
        self._store = store
        self._last_change: int | None = None
        self._samples: dict[str, tuple[Source, ...]] = {}

    def look(self) -> set[str]:
        """Update the samples, and return the namespaces whose profiles have changed since the last call."""
        if self._last_change is None:
            self._last_change, _ = self._store.changes(_LAST)
            self._samples = _samples_of(self._list(""))
            return set(self._samples)
        self._last_change, changes = self._store.changes(self._last_change)
        names = {namespace_of(each.profile_id) for each in changes}
        for name in names:
            sample = _samples_of(self._list(f"{name}/" if name else "")).get(name)
            if sample is None:
                self._samples.pop(name, None)
            else:
                self._samples[name] = sample
        return names

    @property
    def namespaces(self) -> Sequence[str]:
        """Names of the namespaces with at least one profile."""
        return sorted(self._samples)

    def of(self, namespace: str) -> tuple[Source, ...]:
        """Return the sample of a namespace, sorted by hash."""
        return self._samples.get(namespace, ())

    def _list(self, prefix: str) -> Iterable[ProfileSummary]:
        after = ""
        while True:
            page = self._store.list(prefix, after, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].profile_id


def _samples_of(profiles: Iterable[ProfileSummary]) -> dict[str, tuple[Source, ...]]:
    """Return the samples of all namespaces of the profiles. Keeps at most a few hundred profiles of each in memory."""
    samples: dict[str, list[Source]] = {}
    for each in profiles:
        own = samples.setdefault(namespace_of(each.profile_id), [])
        own.append(Source(each.profile_id, each.uid, each.revision))
        if len(own) >= 2 * LEARNED_PROFILES:
            own[:] = _lowest(own)
    return {name: tuple(_lowest(own)) for name, own in samples.items()}


def _lowest(sources: Iterable[Source]) -> list[Source]:
    return sorted(sources, key=lambda each: each.place)[:LEARNED_PROFILES]


class Groups:
    """Profiles of groups of owners. The group of an owner does not depend on the other owners.

    Parameters
    ----------
    by_owner : mapping of owner to sources
        The profiles of each owner, sorted by hash.
    """

    def __init__(self, by_owner: Mapping[str, Sequence[Source]], groups: int = GROUPS) -> None:
        self._members: list[dict[str, Sequence[Source]]] = [{} for _ in range(groups)]
        self._group: dict[str, int] = {}
        for owner, sources in by_owner.items():
            if sources:
                place = int.from_bytes(hashlib.sha256(owner.encode()).digest()[:8], "big")
                self._group[owner] = place % groups
                self._members[place % groups][owner] = sources
        self._shares = [share_out(members, LEARNED_PROFILES // 2) for members in self._members]

    @property
    def all(self) -> tuple[tuple[Source, ...], ...]:
        """Profiles of all groups that are not empty."""
        return tuple(filter(None, self._shares))

    def without(self, owner: str) -> tuple[tuple[Source, ...], ...]:
        """Return the profiles of all groups without those of one owner; empty for an owner in no group."""
        own = self._group.get(owner)
        if own is None:
            return ()
        shares = list(self._shares)
        mine = set(self._members[own][owner])
        if not mine.isdisjoint(shares[own]):
            rest = {name: each for name, each in self._members[own].items() if name != owner}
            shares[own] = share_out(rest, LEARNED_PROFILES // 2)
        return tuple(filter(None, shares))


def share_out(by_owner: Mapping[str, Sequence[Source]], most: int) -> tuple[Source, ...]:
    """Select at most ``most`` profiles, one per owner in turn: owners with many jobs get no more turns than others."""
    waiting = [list(by_owner[owner]) for owner in sorted(by_owner)]
    result: list[Source] = []
    for turn in range(max(map(len, waiting), default=0)):
        result += [sources[turn] for sources in waiting if turn < len(sources)][: most - len(result)]
        if len(result) >= most:
            break
    return tuple(sorted(result, key=lambda each: each.place))
