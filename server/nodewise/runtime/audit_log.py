"""The audit log: a file of its own, or lines of the log that no level leaves out."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import structlog

from nodewise.runtime.logging import write_line
from nodewise.runtime.settings import SettingsError

__all__ = ["AuditLog"]

_log = structlog.get_logger(__name__)

_MODE: Final = 0o600
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC


class AuditLog:
    """Writes entries, each as one line by one write, so that those of several workers do not mix.

    A file that was moved away, as logs are rotated, is made anew with the next entry, after SIGHUP or without. What
    cannot be written is told in the log, entry and all.

    Parameters
    ----------
    path : str
        The file; empty = the log of the process.

    Raises
    ------
    SettingsError
        If the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor = -1
        self._place = (-1, -1)
        self._lost = 0
        self._torn = False
        if path:
            try:
                self._open()
            except OSError as error:
                raise SettingsError(f"setting audit_log: {path}: cannot be written ({error.strerror})") from None

    def write(self, entry: Mapping[str, Any]) -> None:
        """Put an entry down. Never raises."""
        line = orjson.dumps(entry, default=str)
        if not self._path:
            write_line(line.decode())
            return
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                self._lost += 1
                entry = dict(entry)
                _log.error("audit_log_not_written", path=self._path, error=error.strerror, lost=self._lost, entry=entry)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _append(self, line: bytes) -> None:
        if self._descriptor < 0 or self._moved():
            self._open()
        if self._lost:
            line = orjson.dumps({"audit": True, "entries_lost": self._lost}) + b"\n" + line
        line = (b"\n" if self._torn else b"") + line + b"\n"
        written = os.write(self._descriptor, line)
        self._torn = written < len(line)
        if self._torn:
            raise OSError(0, "no room for a whole line")
        self._lost = 0

    def _moved(self) -> bool:
        try:
            found = Path(self._path).stat()
        except FileNotFoundError:
            return True
        return (found.st_dev, found.st_ino) != self._place

    def _open(self) -> None:
        descriptor = os.open(self._path, _FLAGS, _MODE)
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._torn = descriptor, False
        found = os.fstat(descriptor)
        self._place = (found.st_dev, found.st_ino)
