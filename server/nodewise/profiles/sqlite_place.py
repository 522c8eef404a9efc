"""The path of a SQLite store: its file, the store that was there before, and why the file cannot be written."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog

from nodewise.profiles.condition import CORRUPT, DELETED, FULL, LOCKED, READ_ONLY, REPLACED, UNREACHABLE
from nodewise.profiles.private_files import open_private
from nodewise.profiles.store import StoreFormatError

__all__ = ["StorePlace"]

_log = structlog.get_logger(__name__)

_MARKER: Final = "-id"
_CAUSES: Final = {
    sqlite3.SQLITE_BUSY: LOCKED,
    sqlite3.SQLITE_LOCKED: LOCKED,
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_CORRUPT: CORRUPT,
    sqlite3.SQLITE_NOTADB: CORRUPT,
    sqlite3.SQLITE_IOERR: UNREACHABLE,
    sqlite3.SQLITE_CANTOPEN: UNREACHABLE,
    sqlite3.SQLITE_PERM: UNREACHABLE,
}
_OF_PLACE: Final = frozenset(
    {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}
)
_DAMAGED: Final = frozenset({sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
_ROOM_BYTES: Final = 64 << 10
"""Bytes that the smallest transactions need."""


class StorePlace:
    """The path of a store's file. A file beside it, ``<its name>-id``, identifies the store that was there last.

    Parameters
    ----------
    path : Path
        Absolute.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marker = path.with_name(f"{path.name}{_MARKER}")
        self._opened_identity: tuple[int, int] | None = None
        self._is_logged = False

    def store_before(self) -> int | None:
        """The identity of the store that was here last; None = not known."""
        try:
            return int(self._marker.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def check_before_opening(self) -> None:
        """Refuse to create a new store where there was one: acknowledged data would be lost silently.

        Raises
        ------
        StoreFormatError
        """
        if self.store_before() is not None and not self._size():
            state = "is empty" if self._path.exists() else "is gone"
            raise StoreFormatError(
                f"the file {state}, but a store was here before; put it back, or remove {self._marker.name} beside it"
                " to start a new store"
            )
        with suppress(OSError):  # SQLite reports errors itself; its log gets the permissions of the file
            open_private(self._path, "ab").close()

    def note_opening(self, identity: int) -> None:
        """Note that the store of this identity was opened here.

        Raises
        ------
        StoreFormatError
            If another one was here before.
        """
        before = self.store_before()
        if before not in (None, identity):
            raise StoreFormatError(
                f"the file is another store than the one that was here; put that back, or remove {self._marker.name}"
                " beside it to use this one"
            )
        if before is None:
            self._mark(identity)
        self._opened_identity = self._identity_of_file()

    def loss(self) -> str:
        """Whether the opened file was ``deleted`` or ``replaced``; empty = neither."""
        identity = self._identity_of_file()
        if identity == self._opened_identity:
            self._is_logged = False
            return ""
        cause = DELETED if identity is None else REPLACED
        if not self._is_logged:
            self._is_logged = True
            _log.error(
                "store_file_lost", path=str(self._path), found=cause, action="put the file back, or restart the server"
            )
        return cause

    def cause_of(self, error: Exception) -> str:
        """The cause of an error of SQLite, from the state of the file and its disk."""
        code = getattr(error, "sqlite_errorcode", 0)
        if code in _DAMAGED:
            return CORRUPT
        main = code & 0xFF
        loss = self.loss() if main in _OF_PLACE else ""
        return loss or _CAUSES.get(main, "")

    def write_room(self) -> None:
        """Write as many bytes beside the file as a small transaction needs. Raises OSError."""
        with tempfile.TemporaryFile(dir=self._path.parent) as file:
            file.write(bytes(_ROOM_BYTES))

    def _identity_of_file(self) -> tuple[int, int] | None:
        """Device and inode of the file at the path; None = there is none."""
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        return (status.st_dev, status.st_ino)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def _mark(self, identity: int) -> None:
        scratch = self._marker.with_name(f"{self._marker.name}.{os.getpid()}")
        try:
            with open_private(scratch, "wb") as file:
                file.write(b"%d\n" % identity)
            scratch.replace(self._marker)
        except OSError as error:
            _log.warning("store_not_marked", path=str(self._marker), error=str(error))
