"""The audit log: a file of its own, or lines of the log at every log level."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
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
    """Writes each entry as one line with one write, so that entries of several workers do not mix.

    The file is opened for each entry, so that a new file is created after log rotation. An entry that cannot be written
    to the file is written to the log.

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
        self._lost_count = 0
        self._is_torn = False
        if path:
            try:
                os.close(os.open(path, _FLAGS, _MODE))
            except OSError as error:
                raise SettingsError(f"setting audit_log: {path}: cannot be written ({error.strerror})") from None

    def write(self, entry: Mapping[str, Any]) -> None:
        """Write an entry. Never raises."""
        line = orjson.dumps(entry, default=str)
        if not self._path:
            write_line(line.decode())
            return
        with self._lock:
            try:
                self._append(line + b"\n")
            except OSError as error:
                self._lost_count += 1
                fields = {"path": self._path, "error": error.strerror, "lost": self._lost_count, "entry": dict(entry)}
                _log.error("audit_log_not_written", **fields)

    def _append(self, line: bytes) -> None:
        if self._lost_count:
            line = orjson.dumps({"audit": True, "entries_lost": self._lost_count}) + b"\n" + line
        if self._is_torn:
            line = b"\n" + line
        file = os.open(self._path, _FLAGS, _MODE)
        try:
            self._is_torn = os.write(file, line) < len(line)
        finally:
            os.close(file)
        if self._is_torn:
            raise OSError(0, "the disk has no space for a whole line")
        self._lost_count = 0
