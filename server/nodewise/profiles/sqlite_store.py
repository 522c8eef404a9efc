"""The profile store in a SQLite file, or in memory: the default, which needs no service beside it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nodewise.domain.errors import invalid_field
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.condition import CORRUPT, DELETED, FULL, REPLACED, StoreCondition, store_unavailable
from nodewise.profiles.sql_maintenance import damaged_tables, identity_of, write_a_little
from nodewise.profiles.sql_rows import Connection, transaction, translate_errors
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.sqlite_connection import SqliteConnection, connect, create
from nodewise.profiles.sqlite_place import StorePlace
from nodewise.profiles.store import StoreOptions
from nodewise.profiles.traces import TraceStore

__all__ = ["SqliteProfileStore"]

_LOOK_S: Final = 0.1
"""Seconds between two checks of the file's path where nothing is read from it: a check costs as much as an answer."""
_USUAL: Final = StoreOptions()


def _no_cause(_: Exception) -> str:
    """The cause of an error of a store in memory, which has none."""
    return ""


class SqliteProfileStore(SqlProfileStore):
    """Profiles in one file.

    Writes are ``BEGIN IMMEDIATE`` transactions, so that processes which share a file take turns. With the write-ahead
    log reads never wait for a writer.

    Parameters
    ----------
    path : Path or None
        The file, created in its directory if missing; None = in memory, gone with the object.
    options : StoreOptions
        Without traces they go to a directory beside the file (its name and ``-traces``), or to a temporary one.

    Raises
    ------
    StoreFormatError
        If the file is not a store of Nodewise, or has a newer schema.
    NodewiseError
        STORE_UNAVAILABLE if it cannot be opened.
    """

    def __init__(self, path: Path | None, options: StoreOptions = _USUAL) -> None:
        beside = None if path is None else path.with_name(f"{path.name}-traces")
        is_synchronous = options.durability == "power"
        traces = options.traces or TraceStore(beside, sync_chunks=is_synchronous, artefact_bytes=options.artefact_bytes)
        self._file = None if path is None else str(path.absolute())
        self._place = None if path is None else StorePlace(path.absolute())
        causes = self._place.cause_of if self._place else _no_cause
        super().__init__(traces, options, StoreCondition((sqlite3.Error,), causes))
        self._looked_s = 0.0
        self._watching = threading.Lock()
        self._version_and_generation = (-1, -1)
        self._changes = 0
        if path is not None and not path.parent.is_dir():
            # Creating the directory would turn a typing error into an empty store.
            raise invalid_field("store", f"the directory {path.parent} does not exist")
        with translate_errors("open", self.condition):
            if self._place is not None:
                self._place.check_before_opening()
            with ExitStack() as left:  # an open file would keep other processes from it
                self._writer = create(self._file or ":memory:", options.durability)
                left.callback(self._writer.close)
                self._watcher = self._connect() if self._file else self._writer
                left.callback(self._watcher.close)
                if self._place is not None:
                    self._place.note_opening(identity_of(self._writer, self._place.store_before()))
                left.pop_all()

    def generation(self) -> int:
        """As the protocol says. Staged batches do not move it."""
        if self._file is None:
            if self._is_closed:
                raise store_unavailable()
            return self._changes
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._check_place()  # answers from memory stop too where the file was replaced
        try:
            with self._watching:
                # Any commit of another connection moves data_version; only then is the counter read. As it is read
                # later, it can only be newer than the version that it is kept under.
                (version,) = self._watcher.execute("PRAGMA data_version").fetchone()
                if version != self._version_and_generation[0]:
                    (value,) = self._watcher.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
                    self._version_and_generation = (version, value)
                return self._version_and_generation[1]
        except sqlite3.Error:
            with translate_errors("read the generation", self.condition):
                raise

    def changed_since(self, generation: Hashable) -> frozenset[str] | None:
        """As the protocol says: a file is read at once, memory only while it is not being written."""
        if self._file is None:
            if not self._writing.acquire(blocking=False):
                return None
            self._writing.release()
        with self._reading("list changes") as connection:
            return reads.names_changed(connection, generation)

    def check(self) -> None:
        """As the protocol says; damage is reported until the next inspection."""
        if self._place is None:
            self.generation()
            return
        with self._lend("check") as connection:
            if self.condition.cause == CORRUPT:
                raise store_unavailable(CORRUPT)
            if self.condition.cause == FULL:  # a small write may fit where a batch does not
                self._place.write_room()
            with transaction(connection, connection.writing):
                if self.condition.cause:  # as a write would
                    write_a_little(connection)
            self.condition.record_write()

    def _damage(self, rest: Callable[[], bool]) -> int:
        """As the base class; SQLite checks the structure of tables too."""
        with self._lend("inspect") as connection:
            damage = damaged_tables(connection, rest)
        return damage + super()._damage(rest)

    def close(self) -> None:
        """As the protocol says."""
        with self._writing, self._watching:
            self._is_closed = True
            self._watcher.close()
        super().close()

    # --- connections

    def _connect(self) -> SqliteConnection:
        assert self._file is not None
        return connect(self._file, self._options.durability, creates=False)

    def _check_place(self) -> None:
        """Refuse a file that was moved, deleted or replaced, as other processes would open another file, or none.

        Once it is put back, the store works again.
        """
        cause = self._place.loss() if self._place else ""
        if cause:
            self.condition.cause = cause
            raise store_unavailable(cause)
        self._looked_s = time.monotonic()
        self.condition.over(DELETED, REPLACED)

    def _disks(self) -> Sequence[str | Path]:
        own = [] if self._file is None else [Path(self._file).parent]
        return [*own, *super()._disks()]

    def _note_generation(self, generation: int) -> None:
        self._changes = generation

    @contextmanager
    def _lend(self, doing: str) -> Iterator[Connection]:
        """A connection for a moment; a store in memory has one alone."""
        if self._file is None:
            with translate_errors(doing, self.condition), self._writing:
                yield self._writer
            return
        with super()._lend(doing) as connection:
            yield connection
