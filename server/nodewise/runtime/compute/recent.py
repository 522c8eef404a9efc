"""The few things that were used last."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

__all__ = ["Recent"]

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class Recent(Generic[KeyT, ValueT]):
    """Forgets what was put longest ago. Two that are put the same keys in the same order hold the same keys.

    Parameters
    ----------
    most : int
        Entries that are kept.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: OrderedDict[KeyT, ValueT] = OrderedDict()

    def get(self, key: KeyT) -> ValueT | None:
        """The value, or None."""
        return self._entries.get(key)

    def put(self, key: KeyT, value: ValueT) -> ValueT | None:
        """Keep a value as the one used last; returns what is forgotten for it."""
        self._entries.pop(key, None)
        self._entries[key] = value
        return self._entries.popitem(last=False)[1] if len(self._entries) > self._most else None

    def clear(self) -> None:
        """Forget everything."""
        self._entries.clear()
