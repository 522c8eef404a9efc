"""Shares of a core for processes, by Linux's control groups of version 1, so that few cores are many small ones."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_CPU: Final = Path("/sys/fs/cgroup/cpu")
PERIOD_US: Final = 20_000
"""A process that has used its share waits for the next period: shorter than a caller's think time."""
_SLICE_NS: Final = 100_000
"""Longest turn of a thread, so that one that wakes interrupts programs with longer turns (Linux 6.12 and later)."""
_SCHED_SETATTR: Final = 314
"""Of x86-64."""
_WEIGHT: Final = 100_000
"""Of a process with a share, beside all else that runs on the machine, where a session has 1,024 or less."""
_FIRST: Final = 262_144
"""Of a process that is to compute whenever it can."""


def shares_available() -> bool:
    """Whether this process may create control groups with a quota of CPU time."""
    return (_CPU / "cpu.cfs_quota_us").exists() and os.access(_CPU, os.W_OK)


@contextmanager
def core_shares(pids: Sequence[int], share: float | None, *, first: bool = False) -> Iterator[None]:
    """Each process, with all its threads, gets this share of one core; None = what it can get of all cores.

    All come before the machine's other processes, and those that are ``first`` before the rest.

    Where threads change cores, a part of their quota stays behind on the other core, up to 1 ms of each period.
    """
    groups, cores = [], sorted(os.sched_getaffinity(0))
    try:
        for place, pid in enumerate(pids):
            for thread in Path(f"/proc/{pid}/task").iterdir() if share else ():
                os.sched_setaffinity(int(thread.name), {cores[place % len(cores)]})
            if share is None:
                _shorten_turns(pid)
            group = _CPU / f"nodewise-bench-{pid}"
            group.mkdir()
            groups.append(group)
            (group / "cpu.shares").write_text(str(_FIRST if first else _WEIGHT), encoding="ascii")
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US), encoding="ascii")
            (group / "cpu.cfs_quota_us").write_text(str(round(PERIOD_US * share) if share else -1), encoding="ascii")
            (group / "cgroup.procs").write_text(str(pid), encoding="ascii")
        yield
    finally:
        for pid, group in zip(pids, groups, strict=False):
            with suppress(ProcessLookupError):
                (_CPU / "cgroup.procs").write_text(str(pid), encoding="ascii")
            group.rmdir()


def _shorten_turns(pid: int) -> None:
    """Of all threads of a process, and of those that they start; nothing happens where the system has no such turns."""
    if platform.machine() != "x86_64":
        return
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(ProcessLookupError):  # the thread may have ended
            nice = os.getpriority(os.PRIO_PROCESS, int(thread.name))
            # struct sched_attr: size, policy, flags, nice, priority, runtime, deadline, period, bounds of utilisation
            attributes = struct.pack("IIQiIQQQII", 56, os.SCHED_OTHER, 0, nice, 0, _SLICE_NS, 0, 0, 0, 0)
            ctypes.CDLL(None).syscall(_SCHED_SETATTR, int(thread.name), attributes, 0)
