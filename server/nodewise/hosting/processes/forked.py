"""Processes that a nest forks for this one, as ``subprocess.Popen`` has those of its own."""

from __future__ import annotations

import atexit
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

__all__ = ["Forked", "Nest"]

MODULE: Final = "nodewise.hosting.processes.nest"
STATUS_BYTES: Final = 4
PATIENCE_S: Final = 30.0
"""For a nest to import, and to fork: half a second of a processor, which others may have."""
_END_S: Final = 1.0


class Forked:
    """A process that a nest has forked. Its number is nobody else's until :meth:`close`.

    Attributes
    ----------
    returncode : int or None
        Its status, less than 0 for a signal; None = it is not known to have ended.
    """

    def __init__(self, pid: int, hears: socket.socket) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._hears = hears
        self._events = select.poll()
        self._events.register(hears, select.POLLIN)

    def poll(self) -> int | None:
        """The status, if it has ended."""
        return self._ended_within(0.0)

    def wait(self, timeout: float) -> int:
        """Wait for its end. Raises TimeoutExpired."""
        status = self._ended_within(timeout)
        if status is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout)
        return status

    def _ended_within(self, wait_s: float) -> int | None:
        if self.returncode is None and self._events.poll(wait_s * 1e3):
            told = b""
            with suppress(OSError):
                told = self._hears.recv(STATUS_BYTES)
            # Where the nest itself has ended its hosts were killed with it.
            self.returncode = int.from_bytes(told, "little", signed=True) if len(told) == STATUS_BYTES else -9
        return self.returncode

    def close(self) -> None:
        """Nothing more is asked of it."""
        self._ended_within(0.0)
        if self.returncode is None:
            self.returncode = -9
        self._events.unregister(self._hears)
        self._hears.close()


class Nest:
    """A process that forks, for one thread at a time; it ends with the thread that started it.

    Parameters
    ----------
    environment : mapping
        Of all that it forks.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # this interpreter, and a module of ours
                [sys.executable, "-P", "-m", MODULE, str(theirs.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
                env=environment,
            )
        self._orders.settimeout(PATIENCE_S)
        self._end: Callable[[], None] = atexit.register(self.close)

    @property
    def ended(self) -> bool:
        """Whether it can fork no more."""
        return self._orders.fileno() < 0

    def fork(self, end: int, output: int, errors: int) -> Forked | None:
        """A host with these descriptors: of its socket and of what it prints; None = there are none to be had here."""
        hears, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._orders, [b"x"], [end, output, errors, theirs.fileno()])
                told = self._orders.recv(STATUS_BYTES)
            except OSError:
                told = b""
        pid = int.from_bytes(told, "little")
        if pid:
            return Forked(pid, hears)
        hears.close()
        if not told:
            self.close()
        return None

    def close(self) -> None:
        """End it, and all that it has forked."""
        atexit.unregister(self._end)
        self._orders.close()
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
