"""Asking plugins that one can do without: who is not known to answer soon is waited for only so long.

The question goes on in the background, and what comes of it is there for who asks the same next.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nodewise.hosting.processes.host import impatient

if TYPE_CHECKING:
    from nodewise.hosting.counts import CallCounts

__all__ = ["Background", "LateError"]

ResultT = TypeVar("ResultT")

MOST_KEPT: Final = 32
"""Questions of one host that go on, or whose answers wait to be asked for; those asked first are dropped first."""


class LateError(Exception):
    """There is no answer yet."""


class Background:
    """Questions to the plugins of one host that their askers may leave. Threads share it.

    Parameters
    ----------
    patience_s : float
        Seconds to wait for who is not known to answer within so many, or to take longer.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._asked: OrderedDict[Hashable, tuple[Future[Any], float]] = OrderedDict()

    def soon(self, calls: CallCounts, methods: tuple[str, ...], key: Hashable, work: Callable[[], ResultT]) -> ResultT:
        """What the work comes to: done here by who is patient, or where the last calls were quick.

        Parameters
        ----------
        calls : CallCounts
            Of the plugin.
        methods : tuple of str
            What is called in the work.
        key : hashable
            Equal keys have equal results.

        Raises
        ------
        LateError
            If it is not done yet.
        """
        if not impatient.get():
            return work()
        longest_s = calls.longest_last_s(methods)
        if longest_s is not None and longest_s <= self._patience_s:
            return work()
        future = self._begun(key, work)
        # Who took longer last time is not waited for at all.
        wait_s = self._patience_s if longest_s is None else 0.0
        try:
            result: ResultT = future.result(wait_s)
        except TimeoutError:
            if not future.done():
                raise LateError from None
            raise
        finally:
            if future.done():
                self._taken(key, future)
        return result

    def _begun(self, key: Hashable, work: Callable[[], Any]) -> Future[Any]:
        """The question under way, or answered; asked now unless one before it takes too long already."""
        with self._lock:
            known = self._asked.get(key)
            if known is not None:
                return known[0]
            now_s = time.monotonic()
            if any(now_s - began_s > self._patience_s and not each.done() for each, began_s in self._asked.values()):
                raise LateError
            future: Future[Any] = Future()
            self._asked[key] = future, now_s
            while len(self._asked) > MOST_KEPT:
                self._asked.popitem(last=False)
        thread = threading.Thread(
            target=copy_context().run, args=(_worked, future, work), name="nodewise-background", daemon=True
        )
        thread.start()
        return future

    def _taken(self, key: Hashable, future: Future[Any]) -> None:
        with self._lock:
            known = self._asked.get(key)
            if known is not None and known[0] is future:
                del self._asked[key]


def _worked(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do the work for whoever asks."""
    impatient.set(False)
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  # it is the asker's to judge
        future.set_exception(error)
