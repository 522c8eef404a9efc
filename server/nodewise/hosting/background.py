"""Calls to plugins with limited patience, for callers that can do without the plugin.

A slow call goes on in the background. Its result is there for the next caller that asks the same.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from nodewise.hosting.counts import CallCounts

__all__ = ["Background", "LateError", "impatient"]

ResultT = TypeVar("ResultT")

impatient: ContextVar[bool] = ContextVar("impatient", default=False)
"""Whether the caller can do without this plugin, and so does not wait for a stuck one."""

MOST_KEPT: Final = 32
"""Calls to one host that go on, or whose results wait for a caller; the oldest are dropped first."""


class LateError(Exception):
    """There is no answer yet."""


class Background:
    """Calls to the plugins of one host that a caller may stop waiting for. Threads share it.

    Parameters
    ----------
    patience_s : float
        Seconds to wait for a plugin whose last duration is unknown. There is no wait for one that took longer.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._questions: OrderedDict[Hashable, tuple[Future[Any], float]] = OrderedDict()

    def soon(self, calls: CallCounts, methods: tuple[str, ...], key: Hashable, work: Callable[[], ResultT]) -> ResultT:
        """The result of the work: done in this thread for a patient caller, or where the last calls were quick.

        Parameters
        ----------
        calls : CallCounts
            Counts of the plugin's calls.
        methods : tuple of str
            Methods that the work calls.
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
        future = self._start(key, work)
        # A plugin that took longer last time is not waited for at all.
        wait_s = self._patience_s if longest_s is None else 0.0
        try:
            result: ResultT = future.result(wait_s)
        except TimeoutError:
            if not future.done():
                raise LateError from None
            raise
        finally:
            if future.done():
                self._remove(key, future)
        return result

    def _start(self, key: Hashable, work: Callable[[], Any]) -> Future[Any]:
        """The running or finished call; a new one is started unless an earlier one already takes too long."""
        with self._lock:
            entry = self._questions.get(key)
            if entry is not None:
                return entry[0]
            now_s = time.monotonic()
            if any(
                now_s - began_s > self._patience_s and not each.done() for each, began_s in self._questions.values()
            ):
                raise LateError
            future: Future[Any] = Future()
            self._questions[key] = future, now_s
            while len(self._questions) > MOST_KEPT:
                self._questions.popitem(last=False)
        thread = threading.Thread(
            target=copy_context().run, args=(_run, future, work), name="nodewise-background", daemon=True
        )
        thread.start()
        return future

    def _remove(self, key: Hashable, future: Future[Any]) -> None:
        with self._lock:
            entry = self._questions.get(key)
            if entry is not None and entry[0] is future:
                del self._questions[key]


def _run(future: Future[Any], work: Callable[[], Any]) -> None:
    """Do the work for all callers that ask for it."""
    impatient.set(False)
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001  # the caller judges it
        future.set_exception(error)
