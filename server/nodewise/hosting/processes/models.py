"""Objects that a host keeps for its worker, by number, bounded by their bytes."""

from __future__ import annotations

import itertools
import secrets
from collections import OrderedDict
from collections.abc import Collection
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.ports.footprint import footprint

__all__ = ["Models"]

MOST: Final = 8_192
"""Objects, as many as a worker keeps fitted models."""
SHARE: Final = 4
"""They may take one part in so many of the host's memory limit."""
UNKNOWN_BYTES: Final = 1 << 20
"""Assumed size of an object that cannot be measured."""


class _MissingModel:
    """Stands for an object that was dropped."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        message = "a model that this one uses was evicted to free memory; retry"
        raise NodewiseError(Reason.ESTIMATOR_UNAVAILABLE, message, retry_after_s=0.1)


class Models:
    """Objects by number, the least recently used dropped first, the newest never.

    A caller that asks for a dropped one gets an error, and fits it again with the same result.
    """

    def __init__(self) -> None:
        # A restarted server must not take a number of its predecessor for one of its own.
        self._numbers = itertools.count(secrets.randbits(62) + 1)
        self._objects: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self.most_bytes = 1 << 62
        """Most bytes of all of them together."""

    def keep(self, value: Any, but: Collection[Any] = ()) -> int:
        """Keep an object and return its number; objects in ``but`` exist anyway and are not counted."""
        number = next(self._numbers)
        try:
            size = footprint(value, but)
        except BaseException:  # noqa: BLE001  # a plugin's object may do anything where it is touched
            size = UNKNOWN_BYTES
        self._objects[number] = value, size
        self._bytes += size
        while len(self._objects) > 1 and (self._bytes > self.most_bytes or len(self._objects) > MOST):
            self._bytes -= self._objects.popitem(last=False)[1][1]
        return number

    def use(self, number: int) -> Any:
        """The object of a number, now the most recently used. Raises KeyError."""
        self._objects.move_to_end(number)
        return self._objects[number][0]

    def built_on(self, number: int) -> Any:
        """The object that another one uses; for a dropped one a stand-in whose calls fail."""
        return self.use(number) if number in self._objects else _MissingModel()

    def drop(self, number: int) -> None:
        """Drop an object that no caller uses any more."""
        self._bytes -= self._objects.pop(number, (None, 0))[1]
