"""Processes of this machine that work for one parent, each over a pipe of its own."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from nodewise.runtime.blas import one_thread_each
from nodewise.runtime.pinning import unpinned

__all__ = ["CONTEXT", "ENDING_S", "Child", "adopts_orphans", "end_with_parent", "named", "settle", "started"]

CONTEXT: Final = multiprocessing.get_context("spawn")
"""Started anew: a fork of a process with threads may hang."""
ENDING_S: Final = 2.0
"""Patience with a process that was told to end."""
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
_PR_SET_CHILD_SUBREAPER: Final = 36
"""Of Linux' prctl."""


@dataclass(frozen=True, slots=True, eq=False)
class Child:
    """A process and our end of its pipe."""

    process: BaseProcess
    pipe: Connection

    def end(self) -> None:
        """Let it end by itself, since nothing more will come; kill it where it does not."""
        self.pipe.close()
        self.process.join(ENDING_S)
        self.kill()

    def kill(self) -> None:
        """End it now, whatever it does."""
        self.process.kill()
        self.process.join()


def started(serve: Callable[..., None], *arguments: Any, name: str) -> Child:
    """A process that calls a function of a module's own with its end of a pipe and with the arguments."""
    one_thread_each()
    ours, theirs = CONTEXT.Pipe()
    process = CONTEXT.Process(target=serve, args=(theirs, *arguments), daemon=True, name=name)
    with unpinned():
        process.start()
    theirs.close()
    return Child(process, ours)


def settle() -> None:
    """What a started process does first: it ends with its parent and by nobody else's interrupt."""
    # An interrupt of the terminal reaches every process of its group; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None:
        end_with_parent(signal.SIGKILL, parent.pid)
    threading.Thread(target=_follow, daemon=True).start()


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """Have the kernel send this process a signal when its parent ends, whatever this process is at by then.

    Does nothing where the kernel is not Linux. The parent is the thread that started this process.
    """
    if _told_kernel(_PR_SET_PDEATHSIG, int(number)) and os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), number)


def named(name: str) -> None:
    """Let ``ps -o comm`` and ``top`` call this process so; at most 15 letters."""
    _told_kernel(_PR_SET_NAME, name.encode())


def adopts_orphans() -> bool:
    """Have the kernel make this process the parent of what its children leave behind; False = it does not."""
    return _told_kernel(_PR_SET_CHILD_SUBREAPER, 1)


def _told_kernel(what: int, value: int | bytes) -> bool:
    """By Linux' prctl; False = this is another kernel."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).prctl(what, value, 0, 0, 0) == 0)
    except (OSError, AttributeError):  # a C library without it
        return False


def _follow() -> None:
    """Nobody waits for the work of a process whose parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
