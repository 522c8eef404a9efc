"""A bounded cache that threads share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final, Generic, TypeVar

__all__ = ["KEPT_ROWS", "LruCache"]

KEPT_ROWS: Final = 1 << 18
"""Rows of configurations for which a cache keeps columns: at most about 30 MB."""

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class LruCache(Generic[KeyT, ValueT]):
    """A mapping that forgets what was used least recently.

    Parameters
    ----------
    capacity : int
        Sum of the entries' weights that is kept. What weighs more than that is not kept at all.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._weight = 0
        self._entries: OrderedDict[KeyT, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: KeyT) -> ValueT | None:
        """The value, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def put(self, key: KeyT, value: ValueT, weight: int = 1) -> None:
        """Keep a value."""
        if weight > self._capacity:
            return
        with self._lock:
            before = self._entries.pop(key, None)
            self._weight += weight - (before[1] if before else 0)
            self._entries[key] = (value, weight)
            while self._weight > self._capacity:
                _, (_, dropped) = self._entries.popitem(last=False)
                self._weight -= dropped

    def kept(self, key: KeyT, make: Callable[[], ValueT], weight: Callable[[ValueT], int] | None = None) -> ValueT:
        """The value; made now, and kept, where there is none. Threads that ask meanwhile make their own."""
        found = self.get(key)
        if found is None:
            found = make()
            self.put(key, found, 1 if weight is None else weight(found) or 1)
        return found

    def newest(self, most: int) -> list[KeyT]:
        """Keys of what was used last, the last first."""
        with self._lock:
            return list(islice(reversed(self._entries), most))

    def drop(self, unwanted: Callable[[KeyT], bool]) -> None:
        """Forget some entries."""
        with self._lock:
            for key in [key for key in self._entries if unwanted(key)]:
                self._weight -= self._entries.pop(key)[1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self._weight = 0
