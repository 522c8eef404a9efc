"""What hosts print: read always, so that no plugin waits for it, and logged up to a rate."""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

__all__ = ["watch_output"]

_log = structlog.get_logger(__name__)

MOST_LINE: Final = 500
"""Characters of a line that are logged."""
LINES_PER_S: Final = 5
"""Lines of one host's stream that are logged in a second; the others are counted."""
READ_BYTES: Final = 1 << 16
"""At a time: as much as a pipe holds."""


@dataclass(slots=True)
class _Stream:
    """One stream of one host."""

    distribution: str
    name: str
    rest: bytes = b""
    second: int = 0
    lines: int = 0
    dropped: int = 0
    fields: dict[str, str] = field(default_factory=dict)

    def took(self, data: bytes) -> None:
        """Log the lines that are whole, up to the rate."""
        *lines, self.rest = (self.rest + data).split(b"\n")
        if len(self.rest) > MOST_LINE:
            lines, self.rest = [*lines, self.rest], b""
        for line in lines:
            self._line(line)

    def _line(self, line: bytes) -> None:
        now = int(time.monotonic())
        if now != self.second:
            self.second, self.lines = now, 0
        if self.lines >= LINES_PER_S:
            self.dropped += 1
            return
        self.lines += 1
        about = {"distribution": self.distribution, "stream": self.name}
        if self.dropped:
            about["dropped_lines"] = str(self.dropped)
            self.dropped = 0
        _log.info("plugin_printed", line=line[:MOST_LINE].decode(errors="replace"), **about)

    def ended(self) -> None:
        """Nothing more comes."""
        if self.rest:
            self._line(self.rest)
        if self.dropped:
            _log.info(
                "plugin_printed_more", distribution=self.distribution, stream=self.name, dropped_lines=self.dropped
            )


class _Drain:
    """One thread for the streams of all hosts of this process."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        reading, self._waking = os.pipe()
        os.set_blocking(reading, False)
        self._selector.register(reading, selectors.EVENT_READ)
        self._new: deque[tuple[int, _Stream]] = deque()
        self._over: deque[_Stream] = deque()
        self._watched: dict[int, int] = {}
        threading.Thread(target=self._run, name="nodewise-host-output", daemon=True).start()

    def add(self, fd: int, stream: _Stream) -> None:
        """Read a stream from now on, to its end; it is closed then."""
        self._new.append((fd, stream))
        os.write(self._waking, b"x")

    def end(self, streams: list[_Stream]) -> None:
        """Read what is there of them, and close them, whoever may still hold their other ends."""
        self._over.extend(streams)
        os.write(self._waking, b"x")

    def _run(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.data is not None:
                    if id(key.data) in self._watched:  # not ended just now
                        self._read(key.fd, key.data)
                    continue
                os.read(key.fd, READ_BYTES)
                over = [self._over.popleft() for _ in range(len(self._over))]  # before: they were new earlier
                while self._new:
                    fd, stream = self._new.popleft()
                    self._selector.register(fd, selectors.EVENT_READ, stream)
                    self._watched[id(stream)] = fd
                for stream in over:
                    if id(stream) in self._watched:
                        fd = self._watched[id(stream)]
                        os.set_blocking(fd, False)
                        if self._read(fd, stream):
                            self._close(fd, stream)

    def _read(self, fd: int, stream: _Stream) -> bool:
        """Log what has come; whether the stream goes on."""
        try:
            data = os.read(fd, READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if data:
            stream.took(data)
            return True
        self._close(fd, stream)
        return False

    def _close(self, fd: int, stream: _Stream) -> None:
        stream.ended()
        self._selector.unregister(fd)
        del self._watched[id(stream)]
        os.close(fd)


_drains: dict[int, _Drain] = {}
_lock = threading.Lock()


def watch_output(distribution: str, streams: dict[str, int]) -> Callable[[], None]:
    """Read the streams (name to descriptor) of a host until they end, and log what is in them.

    Returns what ends them: processes that a host left behind hold their other ends for as long as they live.
    """
    with _lock:
        drain = _drains.get(os.getpid())
        if drain is None:
            drain = _drains[os.getpid()] = _Drain()
    watched = [_Stream(distribution, name) for name in streams]
    for fd, stream in zip(streams.values(), watched, strict=True):
        drain.add(fd, stream)
    return partial(drain.end, watched)
