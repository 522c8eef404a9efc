"""Profiles kept in memory for as long as nothing changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from nodewise.domain.profile import Profile
from nodewise.profiles.store import ProfileStore

__all__ = ["ProfileReader"]


class ProfileReader:
    """Loads profiles and keeps those used last; an answer is as new as the store's generation. Safe from many threads.

    Parameters
    ----------
    store : ProfileStore
        Read from; the caller closes it.
    most_profiles, most_rows : int
        Profiles, and rows of all of them together, that are kept. The one used last always is.
    """

    def __init__(self, store: ProfileStore, *, most_profiles: int = 1024, most_rows: int = 1_000_000) -> None:
        self._store = store
        self._most_profiles = most_profiles
        self._most_rows = most_rows
        self._kept: OrderedDict[str, tuple[Hashable, Profile]] = OrderedDict()
        self._rows = 0
        self._lock = threading.Lock()

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
            self._used(profile_id)
            return kept[1]
        # What is loaded now is at least as new as the generation read before.
        try:
            profile = self._store.load(profile_id, None if kept is None else kept[1])
        except Exception:
            self._put(profile_id, None)
            raise
        self._put(profile_id, (generation, profile))
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
        if kept is None or kept[0] != self._store.generation():
            return None
        self._used(profile_id)
        return kept[1]

    def _used(self, profile_id: str) -> None:
        with self._lock:
            if profile_id in self._kept:
                self._kept.move_to_end(profile_id)

    def _put(self, profile_id: str, entry: tuple[Hashable, Profile] | None) -> None:
        with self._lock:
            before = self._kept.pop(profile_id, None)
            self._rows -= _rows(before)
            if entry is not None:
                self._kept[profile_id] = entry
                self._rows += _rows(entry)
            while len(self._kept) > max(1, self._most_profiles) or (
                len(self._kept) > 1 and self._rows > self._most_rows
            ):
                self._rows -= _rows(self._kept.popitem(last=False)[1])


def _rows(entry: tuple[Hashable, Profile] | None) -> int:
    return 0 if entry is None else len(entry[1].observations) + len(entry[1].phase_timings)
