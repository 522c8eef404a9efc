"""A child process: the end is awaited by its pidfd, and its process group is killed with it."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import threading
import weakref
from contextlib import suppress
from pathlib import Path

__all__ = ["Process", "start_ticks", "status_text"]


class Process:
    """A process that leads a process group of its own. Any thread may use it.

    Its group is killed as soon as its end is noticed, before it is reaped: until then the kernel
    gives its id to no other process.

    Parameters
    ----------
    popen : Popen
        Started with ``process_group=0`` or ``start_new_session=True``.
    """

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self._popen = popen
        self.pid = popen.pid
        self._reaping = threading.Lock()
        self._pidfd = -1
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(popen.pid)
            weakref.finalize(self, os.close, self._pidfd)

    def fileno(self) -> int:
        """The pidfd, for selectors: readable once the process has ended; -1 where the kernel is not Linux."""
        return self._pidfd

    @property
    def status(self) -> int | None:
        """Exit status, negative = the signal that ended it; None = it runs."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait for its end; returns the status, None = it still runs after the timeout (None = no timeout)."""
        if self._popen.returncode is None and self._has_ended(timeout_s):
            with self._reaping:
                if self._popen.returncode is None:
                    self._kill_group()
                    self._popen.wait()
        return self._popen.returncode

    def _has_ended(self, timeout_s: float | None) -> bool:
        if self._pidfd < 0:
            with suppress(subprocess.TimeoutExpired):
                self._popen.wait(timeout_s)
            return self._popen.returncode is not None
        events = select.poll()
        events.register(self._pidfd, select.POLLIN)
        return bool(events.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3))

    async def wait_for_end(self) -> int:
        """Wait for its end; returns the status. Several tasks may wait."""
        if self._pidfd < 0:
            await asyncio.to_thread(self.wait)
        elif self.status is None:
            loop, descriptor, is_over = asyncio.get_running_loop(), os.dup(self._pidfd), asyncio.Event()
            loop.add_reader(descriptor, is_over.set)
            try:
                await is_over.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        status = self.wait()
        assert status is not None
        return status

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        with self._reaping:
            if self._popen.returncode is None:
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it and its group. Returns at once; its end can be awaited."""
        with self._reaping:
            if self._popen.returncode is None:
                self._kill_group()

    async def stop(self, grace_s: float) -> int:
        """Send SIGTERM, then kill it if it runs after so many seconds; returns the status."""
        self.send(signal.SIGTERM)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                return await self.wait_for_end()
        self.kill()
        return await self.wait_for_end()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def status_text(status: int) -> str:
    """How a process ended, as text: "exit status 1", "SIGSEGV"."""
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:  # real-time signals have no names
        return f"signal {-status}"


def start_ticks(pid: int) -> int:
    """Start time of a process, in ticks since boot: distinguishes it from a later process with the same id.

    0 where the kernel does not state it, or no process has that id.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[19])  # the name before the parenthesis may hold any character
    except (OSError, IndexError, ValueError):
        return 0
