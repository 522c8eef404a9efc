"""Servers that start in a moment, for tests that start dozens, one after the other.

A process imports and warms up everything once; each server is forked from it, and from then on does what a worker of
``nodewise serve`` does, with an event loop, a port, a store and a death of its own. Where the start or the command line
is what is tested, `serving.ServerProcess` is the one to take.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from nodewise.estimation.estimators.warm_up import warm_up
from nodewise.hosting.registry import load_registry
from nodewise.runtime.assembly import application_of, start_faults
from nodewise.runtime.event_loop import new_event_loop
from nodewise.runtime.logging import configure_logging
from nodewise.runtime.settings import Settings


class WarmServer:
    """One of them: where it listens, and its end."""

    def __init__(self, starting: subprocess.Popen[str], settings: dict[str, Any]) -> None:
        assert starting.stdin is not None
        assert starting.stdout is not None
        self._told = starting.stdout
        starting.stdin.write(json.dumps({"listen": "127.0.0.1:0"} | settings) + "\n")
        starting.stdin.flush()
        self._pid: int | None = int(self._told.readline())
        self.target = self._told.readline().strip()

    @property
    def pid(self) -> int:
        """Of the process that answers."""
        assert self._pid is not None
        return self._pid

    def kill(self) -> None:
        """As a power switch would, for the process; returns when it is gone."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            self._pid = None
            assert self._told.readline() == f"{-signal.SIGKILL}\n"

    def __enter__(self) -> WarmServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


class WarmServers:
    """The process that is ready; one server of it runs at a time, and ends by being killed."""

    def __init__(self, starting: subprocess.Popen[str]) -> None:
        self._starting = starting

    def start(self, **settings: Any) -> WarmServer:
        """A server with these settings, once it listens."""
        return WarmServer(self._starting, settings)


@contextmanager
def warm_servers() -> Iterator[WarmServers]:
    with subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ},
    ) as starting:
        try:
            yield WarmServers(starting)
        finally:
            starting.kill()


def _serve(settings: Settings) -> None:
    """Serve until the process is killed, and tell the address."""

    async def serve() -> None:
        port = await application.start(settings.listen, http=settings.http_listen)
        print(f"{settings.listen.rpartition(':')[0]}:{port}", flush=True)
        await asyncio.Event().wait()

    with start_faults(settings), asyncio.Runner(loop_factory=new_event_loop) as runner:
        application = application_of(settings, processes=settings.compute_processes or 1, has_audit_log=True)
        runner.run(serve())


def _start_as_told() -> None:
    """Fork a server for each line of settings, tell its number and address, and how it ended."""
    configure_logging("error")
    warm_up(load_registry(safe_mode=True).estimators)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            print(os.getpid(), flush=True)
            _serve(Settings(**json.loads(line)))
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    _start_as_told()
