"""Servers under measurement: started as processes, their CPU time read from the operating system."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType

HERE = Path(__file__).resolve().parent
_SCHEDULED = 2
"""Of the clocks of a process, the one of the scheduler: user and system time in nanoseconds, where /proc has ticks."""


_ESTABLISHED = "01"
"""State of a connection in Linux's table of sockets."""


def cpu_clock_of(pid: int) -> int:
    """The clock of a process's CPU time, as Linux numbers such clocks."""
    return (~pid) << 3 | _SCHEDULED


def _name(pid: int) -> str:
    """As ``ps -o comm`` tells it."""
    return Path(f"/proc/{pid}/comm").read_text().strip()


def _descriptors(pid: int) -> Iterator[str]:
    """What the open descriptors of a process name."""
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(descriptor.readlink())


class Server:
    """A server process on loopback, unless told otherwise pinned to one core where the machine has several.

    On a busy machine calls wait longer than its usual ``queue_wait_s``: where costs are measured, none is refused.
    """

    def __init__(
        self,
        *command: str,
        pinned: bool = True,
        refuses: bool = False,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        environment = {**os.environ, "NODEWISE_LOG_LEVEL": "error", **variables}
        if not refuses:
            environment["NODEWISE_QUEUE_WAIT_S"] = "60"
        self._process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True, env=environment)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"{command} did not start: {line!r}")
        self.target = line.removeprefix("listening on ").strip()
        cores = sorted(os.sched_getaffinity(0))
        if pinned and len(cores) > 1:
            for pid in self.pids():
                for thread in Path(f"/proc/{pid}/task").iterdir():
                    os.sched_setaffinity(int(thread.name), {cores[0]})

    @property
    def http_target(self) -> str:
        """Where HTTP is answered; asked once, of a server that does."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().removeprefix("answering HTTP on ").strip()

    def pids(self) -> list[int]:
        """The process that was started, and those under it: workers, their pools and plugin hosts."""
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    @property
    def pid(self) -> int:
        """Of the process that answers: the worker, where there is a supervisor, beside its spare perhaps."""
        pids = self.pids()
        return next((pid for pid in pids if _name(pid) == "nodewise-worker"), pids[:2][-1])

    @property
    def workers(self) -> list[int]:
        """Processes that answer calls."""
        return [pid for pid in self.pids() if _name(pid) == "nodewise-worker"]

    def connections(self) -> list[int]:
        """Established connections of callers with each worker, in the order of `workers`."""
        port = int(self.target.rpartition(":")[2])
        sockets = set[str]()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                columns = line.split()
                if columns[3] == _ESTABLISHED and int(columns[1].rpartition(":")[2], 16) == port:
                    sockets.add(f"socket:[{columns[9]}]")
        return [sum(link in sockets for link in _descriptors(pid)) for pid in self.workers]

    def cpu_s(self) -> float:
        """User and system time so far, of all threads and processes that serve, to the nanosecond."""
        return (
            sum(time.clock_gettime_ns(cpu_clock_of(pid)) for pid in self.pids() if _name(pid) != "nodewise-spare") / 1e9
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
