"""A small cache of the most recent entries."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Recent"]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(Generic[KeyT, ValueT]):
    """A cache that drops the entry that was put longest ago. Caches with the same sequence of puts have the same keys.

    Parameters
    ----------
    most : int
        Most entries.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[KeyT, ValueT] = OrderedDict()

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value, or None."""
        return self._entries.get(key)

    def put(self, key: KeyT, value: ValueT) -> ValueT | None:
        """Put a value as the most recent one; return the value that is dropped for it, if any."""
        self._entries.pop(key, None)
        self._entries[key] = value
        return self._entries.popitem(last=False)[1] if len(self._entries) > self._most else None

    def clear(self) -> None:
        """Drop all entries."""
        self._entries.clear()
