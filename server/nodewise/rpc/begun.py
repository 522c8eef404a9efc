"""Coroutines that are begun here and now: most end at once, and need nothing of what waiting needs."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any

__all__ = ["Begun"]


class Begun:
    """A coroutine that has run up to where it first waits; where it has not ended, awaiting this ends it.

    Raises what the coroutine raises meanwhile.

    Parameters
    ----------
    coroutine : coroutine
        Not begun yet.

    Attributes
    ----------
    ended : bool
        Whether it ended without waiting.
    answer : object
        What it came to then.
    """

    __slots__ = ("_coroutine", "_waits_for", "answer", "ended")

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self.answer = None
        try:
            self._waits_for = coroutine.send(None)
        except StopIteration as ended:
            self.ended, self.answer = True, ended.value
        else:
            self.ended = False

    def __await__(self) -> Generator[Any, Any, Any]:
        """The rest, as if the coroutine itself were awaited."""
        coroutine, waits_for = self._coroutine, self._waits_for
        while True:
            try:
                sent = yield waits_for
            except BaseException as thrown:  # noqa: BLE001  # a cancellation and all else is the coroutine's
                resume = partial(coroutine.throw, thrown)
            else:
                resume = partial(coroutine.send, sent)
            try:
                waits_for = resume()
            except StopIteration as ended:
                return ended.value
