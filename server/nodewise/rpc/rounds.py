"""What is read once for all calls that the event loop takes up in one round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["OncePerRound"]

ValueT = TypeVar("ValueT")


class OncePerRound(Generic[ValueT]):
    """Something that costs to read and may be as old as the calls that the loop has in hand.

    The loop runs what is ready in the order in which it became so. What it has read is forgotten by a callback of its
    own, which comes before whatever becomes ready later: no call is given what was read before it arrived. Belongs to
    the loop's thread; where no loop runs it is read each time.

    Parameters
    ----------
    read : callable
        Reads it.
    """

    def __init__(self, read: Callable[[], ValueT]) -> None:
        self._read = read
        self._found: tuple[ValueT] | None = None

    def __call__(self) -> ValueT:
        """As it was when the first call of this round asked; raises what ``read`` raises."""
        if self._found is not None:
            return self._found[0]
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return self._read()
        loop.call_soon(self._forget)  # before it is read: what becomes ready meanwhile comes later
        self._found = (self._read(),)
        return self._found[0]

    def _forget(self) -> None:
        self._found = None
