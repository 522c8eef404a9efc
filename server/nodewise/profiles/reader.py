"""A cache of profiles, valid as long as they do not change."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any, Final

from nodewise.domain.facts import CONFIGURATION_DEFAULTS, OBSERVATION_DEFAULTS, PHASE_DEFAULTS
from nodewise.domain.profile import Profile
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.profiles.codec import DICTIONARIES
from nodewise.profiles.store import ProfileStore

__all__ = ["ProfileReader", "profile_bytes"]

READER_BYTES: Final = 64 << 20
"""Bytes of a reader without a shared cache: a quarter of a million rows."""
LEAP: Final = 1_000_000
"""More changes than occur between two checks of a store; if they do occur, a profile is re-read needlessly."""
MOST_CHANGED: Final = 10_000
"""Profiles whose times of change are noted; if more changed, the whole cache is re-read once."""
_PROFILE_BYTES: Final = 4_096
_LAYER_BYTES: Final = 512
"""An object of a few dozen numbers and names: a layer, or a run beside another job."""
_CONFIGURATION_BYTES: Final = 8 * (len(CONFIGURATION_DEFAULTS) + len(DICTIONARIES))
_OBSERVATION_BYTES: Final = _CONFIGURATION_BYTES + 8 * (len(OBSERVATION_DEFAULTS) + 1)
_TIMING_BYTES: Final = _CONFIGURATION_BYTES + 8 * (len(PHASE_DEFAULTS) + 1)
"""Every column of a row has eight bytes, and each row its number."""


def profile_bytes(profile: Profile) -> int:
    """Approximate bytes of a profile: 6.3 MB for 27,000 rows."""
    rows = _OBSERVATION_BYTES * len(profile.observations) + _TIMING_BYTES * len(profile.phase_timings)
    return _PROFILE_BYTES + rows + _LAYER_BYTES * (len(profile.workload.layers or ()) + len(profile.shared_runs))


def _brought_back(before: Hashable, now: Hashable) -> bool:
    """Whether the store may have been restored from a backup in between: its generations leap then.

    The cached revision of a profile may have other content then.
    """
    return isinstance(before, int) and isinstance(now, int) and now - before > LEAP


class ProfileReader:
    """Loads profiles and caches the last used; a result is as new as the store's generation. Safe from many threads.

    Parameters
    ----------
    store : ProfileStore
        Read from; the caller closes it.
    space : CacheSpace or None
        Cache space, in bytes, for profiles at their newest revisions. The last used profile is always kept. None =
        a space of its own.
    """

    def __init__(self, store: ProfileStore, space: CacheSpace | None = None) -> None:
        self._store = store
        self._space = space or CacheSpace(READER_BYTES)
        self._cache: LruCache[str, tuple[Hashable, Profile]] = LruCache(self._space)
        self._changes = _Changes(store)
        self.confirm = self._changes.confirm
        """As :meth:`_Changes.confirm`; an attribute for speed, since each cached reply is confirmed."""

    def get(self, profile_id: str) -> Profile:
        """The profile at its newest revision; the same object for as long as that is the newest.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, STORE_UNAVAILABLE.
        """
        generation = self._store.generation()
        entry = self._cache.get(profile_id)
        if entry is not None and self._changes.is_unchanged(profile_id, entry[0], generation):
            return entry[1]
        self._changes.note(generation)
        # The loaded profile is at least as new as the generation that was read before.
        last_read = None if entry is None or _brought_back(entry[0], generation) else entry[1]
        try:
            profile = self._store.load(profile_id, last_read)
        except Exception:
            if entry is not None:
                self._cache.drop(lambda last_read: last_read == profile_id)
            raise
        self._cache.put(profile_id, (generation, profile), min(profile_bytes(profile), self._space.capacity))
        return profile

    def at(self, profile_id: str, revision: int | None) -> Profile:
        """The profile at an exact revision (None = the newest); only the newest is cached.

        Raises
        ------
        NodewiseError
            PROFILE_NOT_FOUND, REVISION_NOT_FOUND, STORE_UNAVAILABLE.
        """
        newest = self.get(profile_id)
        if revision is None or revision == newest.revision:
            return newest
        return self._store.load(profile_id, revision=revision)

    def generation(self) -> Hashable:
        """The store's generation now."""
        return self._store.generation()

    def newest_at(self, profile: Profile) -> Hashable | None:
        """A generation of the store in which this object was its profile's newest revision; None = not known."""
        entry = self._cache.get(profile.profile_id)
        return entry[0] if entry is not None and entry[1] is profile else None

    def from_cache(self, profile_id: str, generation: Hashable) -> Profile | None:
        """The cached profile if it was the newest at a generation, else None; never blocks on the disk.

        Parameters
        ----------
        generation : hashable
            Generation of the store, read after the question came.
        """
        entry = self._cache.get(profile_id)
        return entry[1] if entry is not None and self._changes.is_unchanged(profile_id, entry[0], generation) else None


class _Changes:
    """Which profiles changed when, as far as a store reports it: a commit of one keeps cached data of others."""

    def __init__(self, store: ProfileStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._last_generation: Hashable = None
        """Generation up to which changes are noted."""
        self._from: Hashable = None
        """Generation from which changes are noted; None = none are."""
        self._changed: dict[str, Any] = {}
        """A generation at or after the last change of each profile that changed."""

    def confirm(self, profile_id: str, since: Hashable) -> Hashable | None:
        """The store's current generation if a profile certainly did not change since an earlier one, else None."""
        now = self._store.generation()
        return now if since == now or self.is_unchanged(profile_id, since, now) else None

    def is_unchanged(self, profile_id: str, before: Hashable, now: Hashable) -> bool:
        """Whether a profile certainly did not change between two generations."""
        if before == now:
            return True
        with self._lock:
            self._note(now)
            first: Any = self._from
            return first is not None and first <= before and self._changed.get(profile_id, first) <= before

    def note(self, now: Hashable) -> None:
        """Note the changes up to a generation."""
        with self._lock:
            self._note(now)

    def _note(self, now: Hashable) -> None:
        if self._last_generation == now:
            return
        is_known = self._last_generation is not None and not _brought_back(self._last_generation, now)
        names = self._store.changed_since(self._last_generation) if is_known else None
        self._last_generation = now
        if names is None or len(self._changed) + len(names) > MOST_CHANGED:
            self._changed.clear()
            self._from = now if isinstance(now, int) else None
        else:
            # Changes after `now` was read are listed too, and again at the next check.
            self._changed.update(dict.fromkeys(names, now))
