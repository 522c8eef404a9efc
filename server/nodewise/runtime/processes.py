"""Processes of this machine that work for one parent, each over a pipe of its own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Final

from nodewise.runtime.blas import one_thread_each

__all__ = ["CONTEXT", "ENDING_S", "Child", "settle", "started"]

CONTEXT: Final = multiprocessing.get_context("spawn")
"""Started anew: a fork of a process with threads may hang."""
ENDING_S: Final = 2.0
"""Patience with a process that was told to end."""


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
    process.start()
    theirs.close()
    return Child(process, ours)


def settle() -> None:
    """What a started process does first: it ends with its parent and by nobody else's interrupt."""
    # An interrupt of the terminal reaches every process of its group; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, daemon=True).start()


def _follow() -> None:
    """Nobody waits for the work of a process whose parent was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
