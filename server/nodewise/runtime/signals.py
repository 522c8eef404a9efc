"""Signals as something that a selector waits for."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

__all__ = ["Signals", "caught"]


class Signals:
    """Those that came and were not taken yet."""

    def __init__(self) -> None:
        self._reading, self._writing = socket.socketpair()
        for end in (self._reading, self._writing):
            end.settimeout(0.0)
        self._on_terminal = _has_terminal()

    def fileno(self) -> int:
        """What becomes readable with a signal."""
        return self._reading.fileno()

    def write_fileno(self) -> int:
        """Where Python writes the number of each."""
        return self._writing.fileno()

    def taken(self) -> bytes:
        """Numbers of those that came, oldest first."""
        try:
            return self._reading.recv(4096)
        except (BlockingIOError, InterruptedError):
            return b""

    def terminal_is_gone(self) -> bool:
        """Whether the terminal that the server was started on was closed: SIGHUP says that too."""
        return self._on_terminal and not _has_terminal()

    def close(self) -> None:
        """Let go of both ends."""
        self._reading.close()
        self._writing.close()


@contextmanager
def caught(numbers: Sequence[signal.Signals]) -> Iterator[Signals]:
    """Signals that are waited for within the block, and handled as before after it."""
    found = Signals()
    before = {number: signal.signal(number, _noted) for number in numbers}
    descriptor = signal.set_wakeup_fd(found.write_fileno(), warn_on_full_buffer=False)
    try:
        yield found
    finally:
        signal.set_wakeup_fd(descriptor)
        for number, handler in before.items():
            signal.signal(number, handler)
        found.close()


def _noted(_number: int, _frame: FrameType | None) -> None:
    """Nothing more: its number waits to be read."""


def _has_terminal() -> bool:
    try:
        os.tcgetpgrp(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
    except (OSError, ValueError):
        return False
    return True
