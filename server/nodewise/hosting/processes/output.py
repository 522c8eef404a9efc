"""Output of hosts: always read, so that no plugin blocks on it, and logged up to a rate."""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from nodewise.processes.process import Process

__all__ = ["watch_output"]

_log = structlog.get_logger(__name__)

MOST_LINE: Final = 500
"""Characters of a line that are logged."""
LINES_PER_S: Final = 5
"""Lines of one host's stream that are logged in a second; the others are counted."""
READ_BYTES: Final = 1 << 16
"""Most bytes per read: the size of a pipe."""


@dataclass(slots=True)
class _Stream:
    """One stream of one host."""

    distribution: str
    name: str
    rest: bytes = b""
    second: int = 0
    lines: int = 0
    dropped_count: int = 0

    def log(self, data: bytes) -> None:
        """Log the lines that are whole, up to the rate."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > MOST_LINE:
            lines, self.rest = [*lines, self.rest], b""
        for line in lines:
            now = int(time.monotonic())
            if now != self.second:
                self.second, self.lines = now, 0
            if self.lines < LINES_PER_S:
                self._log("plugin_printed", line=line[:MOST_LINE].decode(errors="replace"))
            else:
                self.dropped_count += 1
            self.lines += 1

    def end(self) -> None:
        """Log the rest at the end of the stream."""
        if self.rest:
            self.log(b"\n")
        if self.dropped_count:
            self._log("plugin_printed_more")

    def _log(self, event: str, **fields: str) -> None:
        if self.dropped_count:
            fields["dropped_lines"] = str(self.dropped_count)
            self.dropped_count = 0
        _log.info(event, distribution=self.distribution, stream=self.name, **fields)


def watch_output(distribution: str, streams: Mapping[str, int], process: Process) -> None:
    """Log streams (name to descriptor) of a process in a thread, which closes them when the process has ended.

    Child processes that outlive it may keep the other ends open.
    """
    name = "nodewise-host-output"
    threading.Thread(target=_watch, args=(distribution, streams, process), name=name, daemon=True).start()


def _watch(distribution: str, streams: Mapping[str, int], process: Process) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(process, selectors.EVENT_READ)
        for name, fd in streams.items():
            os.set_blocking(fd, False)
            selector.register(fd, selectors.EVENT_READ, _Stream(distribution, name))
        is_over = False
        while not is_over and len(selector.get_map()) > 1:
            is_over = any(key.data is None for key, _ in selector.select())
            for key in [key for key in selector.get_map().values() if key.data is not None]:
                try:
                    data = os.read(key.fd, READ_BYTES)
                except BlockingIOError:
                    data = None
                if data:
                    key.data.log(data)
                if is_over or data == b"":
                    key.data.end()
                    selector.unregister(key.fd)
                    os.close(key.fd)
