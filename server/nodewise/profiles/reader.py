"""Profiles kept in memory for as long as nothing changed."""

from __future__ import annotations

from collections.abc import Hashable

from nodewise.domain.profile import Profile
from nodewise.ports.cache import LruCache
from nodewise.profiles.store import ProfileStore

__all__ = ["ProfileReader"]


class ProfileReader:
    """Loads profiles and keeps those used last; an answer is as new as the store's generation. Safe from many threads.

    Parameters
    ----------
    store : ProfileStore
        Read from; the caller closes it.
    most_profiles, most_rows : int
        Profiles, and rows of all of them together, that are kept: each counts as ``most_rows / most_profiles`` rows at
        least. The one used last always is.
    """

    def __init__(self, store: ProfileStore, *, most_profiles: int = 1024, most_rows: int = 1_000_000) -> None:
        self._store = store
        self._least_weight = most_rows // max(1, most_profiles)
        self._most_weight = most_rows
        self._kept: LruCache[str, tuple[Hashable, Profile]] = LruCache(most_rows)

    def get(self, profile_id: str) -> Profile:
        """The profile at its newest revision; the same object for as long as that is the newest.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, STORE_UNAVAILABLE.
        """
        generation = self._store.generation()
        kept = self._kept.get(profile_id)
        if kept is not None and kept[0] == generation:
            return kept[1]
        # What is loaded now is at least as new as the generation read before.
        try:
            profile = self._store.load(profile_id, None if kept is None else kept[1])
        except Exception:
            if kept is not None:
                self._kept.drop(lambda known: known == profile_id)
            raise
        rows = len(profile.observations) + len(profile.phase_timings)
        self._kept.put(profile_id, (generation, profile), min(max(rows, self._least_weight), self._most_weight))
        return profile

    def at(self, profile_id: str, revision: int | None) -> Profile:
        """The profile at an exact revision; kept only if that is the newest (None = whatever it is).

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, REVISION_NOT_FOUND, STORE_UNAVAILABLE.
        """
        newest = self.get(profile_id)
        if revision is None or revision == newest.revision:
            return newest
        return self._store.load(profile_id, revision=revision)

    def cached(self, profile_id: str) -> Profile | None:
        """The profile if it can be had without reading it from the store, else None: never blocks on the disk."""
        kept = self._kept.get(profile_id)
        return kept[1] if kept is not None and kept[0] == self._store.generation() else None
