"""The interface to long work: outside the event loop, with progress, and ended as soon as no caller waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from nodewise.domain.budget import Budget

__all__ = ["PROGRESS_EVERY_S", "Compute", "LongRun", "Work"]

PROGRESS_EVERY_S: Final = 0.1
"""Least time between two messages about progress."""


WithT = TypeVar("WithT")
WithT_co = TypeVar("WithT_co", covariant=True)

Work = Callable[[WithT, Any, "LongRun"], Iterator[bytes]]
"""A module-level function (processes find it by its name): from its tools, its argument (a value that can be
pickled) and its run, to messages."""


class LongRun:
    """A piece of long work from inside: its budget and its progress.

    Parameters
    ----------
    budget : Budget
        Remaining time.
    send : callable
        Takes messages, in order; may block.
    """

    def __init__(self, budget: Budget, send: Callable[[bytes], None]) -> None:
        self.budget = budget
        self._send = send
        self._sending = threading.Lock()
        self._untold: Callable[[], bytes] | None = None
        self._later: threading.Timer | None = None
        self._next_s = 0.0

    def do(self, work: Work[WithT], tools: WithT, argument: Any) -> None:
        """Do the work, and send its messages.

        Raises
        ------
        NodewiseError
            Errors of the work; DEADLINE_EXCEEDED once no caller waits any more.
        """
        try:
            for message in work(tools, argument, self):
                with self._sending:
                    if self._untold is not None:
                        self._tell()
                    self.budget.look_up()
                    self._send(message)
        finally:
            with self._sending:
                self._untold = None
                if self._later is not None:
                    self._later.cancel()

    def tell(self, write: Callable[[], bytes]) -> None:
        """Report progress, at any rate: only the newest report is written every PROGRESS_EVERY_S."""
        with self._sending:
            self._untold = write
            left_s = self._next_s - time.monotonic()
            if left_s <= 0:
                self._tell()
            elif self._later is None:
                self._later = threading.Timer(left_s, self._tell_late)
                self._later.daemon = True
                self._later.start()

    def _tell_late(self) -> None:
        with self._sending:
            self._later = None
            if self._untold is not None:
                with suppress(OSError):  # the receiver has gone, which the work notices when it sends its answer
                    self._tell()

    def _tell(self) -> None:
        assert self._untold is not None
        write, self._untold = self._untold, None
        self._send(write())
        self._next_s = time.monotonic() + PROGRESS_EVERY_S


class Compute(Protocol[WithT_co]):
    """Does long work: a limited number of pieces at a time, and a limited number waiting."""

    def run(self, work: Work[WithT_co], argument: Any, end_s: float, late_s: float) -> AsyncGenerator[bytes, None]:
        """The messages of a piece of work as they come. Leaving early ends the work.

        Parameters
        ----------
        end_s, late_s : float
            When the work should end with its best result, and when no caller waits any more (``time.monotonic``, which
            all processes of a machine share).

        Raises
        ------
        NodewiseError
            Errors of the work; OVERLOADED if too many wait already; COMPUTE_LOST if its process died;
            DEADLINE_EXCEEDED.
        """
