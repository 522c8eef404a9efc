"""Bounded caches that threads share; several may share one bound."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, Generic, TypeVar

__all__ = ["CacheSpace", "LruCache", "Part"]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")

Part = tuple[object, int]
"""A value that several entries share, such as a model, and its weight, which is counted once for all of them."""

_WHOLE: Final[tuple[Part, ...]] = ()


class _Entry:
    """An entry of a cache; compared by identity."""

    __slots__ = ("entries", "key", "parts", "value", "weight")

    def __init__(
        self, entries: dict[Any, _Entry], key: object, value: Any, weight: int, parts: tuple[Part, ...]
    ) -> None:
        self.entries, self.key, self.value, self.weight, self.parts = entries, key, value, weight, parts


class CacheSpace:
    """A capacity that caches share: the least recently used of all their entries is evicted first.

    Parameters
    ----------
    capacity : int
        Largest sum of weights: bytes, unless all its caches use another unit.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.lock = threading.Lock()
        self._weight = 0
        self.order: OrderedDict[_Entry, None] = OrderedDict()
        """Entries of all caches, the most recently used at the end."""
        self._total: dict[int, int] = {}
        """Numbers of entries that share a part, by the part's identity; the entries keep it alive."""

    @property
    def weight(self) -> int:
        """The current sum of weights."""
        return self._weight

    def add(self, entry: _Entry) -> list[_Entry]:
        """Add an entry; returns the evicted ones, which the caller drops once the lock is free.

        The caller holds the lock, also for all methods below.
        """
        self.order[entry] = None
        self._weight += entry.weight
        for part, weight in entry.parts:
            holders = self._total.get(id(part), 0)
            self._total[id(part)] = holders + 1
            if not holders:
                self._weight += weight
        return [] if self._weight <= self.capacity else self._make_room()

    def reweigh(self, entry: _Entry, weight: int) -> list[_Entry]:
        """Change the weight of an entry, not of its parts; returns the evicted ones, as :meth:`add`."""
        self._weight += weight - entry.weight
        entry.weight = weight
        return [] if self._weight <= self.capacity else self._make_room()

    def _make_room(self) -> list[_Entry]:
        entries = []
        while self._weight > self.capacity:
            oldest = next(iter(self.order))
            del oldest.entries[oldest.key]
            self.remove(oldest)
            entries.append(oldest)
        return entries

    def remove(self, entry: _Entry) -> None:
        """Remove an entry."""
        del self.order[entry]
        self._weight -= entry.weight
        for part, weight in entry.parts:
            holders = self._total.pop(id(part)) - 1
            if holders:
                self._total[id(part)] = holders
            else:
                self._weight -= weight


class LruCache(Generic[KeyT, ValueT]):
    """A mapping that evicts the least recently used entries.

    Parameters
    ----------
    space : CacheSpace or int
        Shared with other caches, or the capacity of a space of its own. An entry above the capacity is not kept.
    """

    def __init__(self, space: CacheSpace | int) -> None:
        self._space = CacheSpace(space) if isinstance(space, int) else space
        self._entries: dict[Any, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: KeyT) -> ValueT | None:
        """The value, or None."""
        with self._space.lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._space.order.move_to_end(entry)
            value: ValueT = entry.value
            return value

    def put(self, key: KeyT, value: ValueT, weight: int = 1, parts: tuple[Part, ...] = _WHOLE) -> None:
        """Keep a value.

        Parameters
        ----------
        weight : int
            Weight of the entry without shared parts, its key included.
        parts : tuple of Part
            Parts that it shares with other entries, each once.
        """
        space, whole = self._space, weight
        for part in parts:
            whole += part[1]
        if whole > space.capacity:
            return
        entry = _Entry(self._entries, key, value, weight, parts)
        with space.lock:
            before = self._entries.setdefault(key, entry)  # hashing a key is slow, so it is done once
            if before is not entry:
                space.remove(before)
                self._entries[key] = entry
            entries = space.add(entry)
        # Evicted values may end processes or use this cache when they are dropped, so this happens outside the lock.
        entries.clear()

    def weigh(self, key: KeyT, weight: int) -> None:
        """Change the weight of the entry of a key; nothing happens if it was evicted meanwhile."""
        space = self._space
        entries: list[_Entry] = []
        with space.lock:
            entry = self._entries.get(key)
            if entry is not None:
                entries = space.reweigh(entry, weight)
        entries.clear()

    def newest(self, most: int) -> list[KeyT]:
        """Keys of the most recently used entries, the latest first."""
        with self._space.lock:
            keys: Iterator[Any] = (entry.key for entry in reversed(self._space.order) if entry.entries is self._entries)
            return list(islice(keys, most))

    def drop(self, matches: Callable[[KeyT], bool]) -> None:
        """Remove the entries whose keys match."""
        with self._space.lock:
            entries = [entry for key, entry in self._entries.items() if matches(key)]
            for entry in entries:
                del self._entries[entry.key]
                self._space.remove(entry)
        entries.clear()

    def clear(self) -> None:
        """Remove all entries."""
        self.drop(lambda _: True)
