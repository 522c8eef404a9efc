"""Start-up of a child process: it arranges to end with its parent, sets name and limits, and calls its function."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

__all__ = ["end_with_parent", "limit_memory", "run", "set_name"]

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_NAME: Final = 15
"""Option of Linux' prctl."""


def run(order: Mapping[str, Any]) -> None:
    """Run an order of :func:`~nodewise.processes.spawning.spawn`; never returns."""
    # A terminal's interrupt reaches every process of its group; the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    number = signal.Signals(order["death_signal"])
    end_with_parent(number, order["parent"])
    if number is signal.SIGKILL:
        os.register_at_fork(after_in_child=lambda: _prctl(_PR_SET_PDEATHSIG, int(number)))
    set_name(order["name"])
    os.nice(order["nice"])
    module, _, name = order["function"].partition(":")
    sys.exit(getattr(import_module(module), name)(*order["arguments"]))


def end_with_parent(number: signal.Signals, parent: int) -> None:
    """Have the kernel send this process a signal when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # the parent ended before
        os.kill(os.getpid(), number)


def set_name(name: str) -> None:
    """Set the name of this process, as ``ps -o comm`` shows it; at most 15 letters."""
    _prctl(_PR_SET_NAME, name.encode())


def limit_memory(most_bytes: int) -> None:
    """Limit what this process may allocate beyond its current memory; more fails with MemoryError.

    RLIMIT_DATA counts allocated memory; RLIMIT_AS would count address space too, of which libraries reserve gigabytes
    that they never use.
    """
    import resource  # noqa: PLC0415  # not on Windows, where nothing is started either

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    most = pages * resource.getpagesize() + most_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _prctl(option: int, value: int | bytes) -> None:
    """Call prctl; does nothing where the C library lacks it."""
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        return
