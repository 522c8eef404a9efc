"""What a host keeps for its worker: objects by number, bounded by the bytes that they take."""

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
"""Of what a host may allocate they take one part in so many."""
UNKNOWN_BYTES: Final = 1 << 20
"""Of an object that cannot be looked at."""


class _MissingModel:
    """In place of an object that is gone."""

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
        # A server that has started anew must not take a number of the one before for one of its own.
        self._numbers = itertools.count(secrets.randbits(62) + 1)
        self._objects: OrderedDict[int, tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self.most_bytes = 1 << 62
        """What all of them may take together."""

    def keep(self, value: Any, but: Collection[Any] = ()) -> int:
        """Keep one more, and give its number; ``but`` is there anyway and not counted."""
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
        """One of them, which is used now. Raises KeyError."""
        self._objects.move_to_end(number)
        return self._objects[number][0]

    def built_on(self, number: int) -> Any:
        """One that another is built on; in place of one that is gone, what says so when it is asked."""
        return self.use(number) if number in self._objects else _MissingModel()

    def drop(self, number: int) -> None:
        """Drop one that no caller uses any more."""
        self._bytes -= self._objects.pop(number, (None, 0))[1]
