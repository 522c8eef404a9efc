"""The profile store in a SQLite file, or in memory: the default, which needs no service beside it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.condition import CORRUPT, DELETED, FULL, REPLACED, Faults
from nodewise.profiles.quotas import DEFAULT_QUOTAS, StoreQuotas
from nodewise.profiles.sql_keeping import damaged_tables, identity_of, write_a_little
from nodewise.profiles.sql_rows import Connection, transaction, translated
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.sqlite_connection import Durability, SqliteConnection, connect, create
from nodewise.profiles.sqlite_place import StorePlace
from nodewise.profiles.store import DEFAULT_DELETED_KEPT_S, Outcome, WriteRequest, store_unavailable
from nodewise.profiles.traces import TraceStore

__all__ = ["SqliteProfileStore"]

_LOOK_S: Final = 0.1
"""Between two looks at the file's place where nothing is read from it: a look costs as much as the answer."""
_LOST: Final = (DELETED, REPLACED)


def _no_cause(_: Exception) -> str:
    """Of a store in memory, which nothing ails."""
    return ""


class SqliteProfileStore(SqlProfileStore):
    """Profiles in one file.

    Writes go through one connection under a lock, in ``BEGIN IMMEDIATE`` transactions, so that processes which share a
    file take turns. Reads take a connection each from a pool: with the write-ahead log they never wait for a writer.

    Parameters
    ----------
    path : Path or None
        The file, created with its directory if missing; None = in memory, gone with the object.
    durability : "process" or "power"
        What acknowledged batches survive: the death of every process (fast), or also the loss of power (every commit
        waits for the disk).
    scored : bool
        Whether commits are put down to be scored.
    traces : TraceStore or None
        Where traces go, closed with this; None = a directory beside the file (its name and ``-traces``), or a temporary
        one.
    artefact_bytes : int
        Most that is kept of what was read of traces, where ``traces`` is None.
    deleted_kept_s : float
        How long deleted profiles can be brought back.
    quotas : StoreQuotas
        What namespaces may store.
    now : callable
        Seconds since 1970.

    Raises
    ------
    StoreFormatError
        If the file is not a store of ours or of a newer schema.
    NodewiseError
        STORE_UNAVAILABLE if it cannot be opened.
    """

    def __init__(
        self,
        path: Path | None,
        durability: Durability = "process",
        traces: TraceStore | None = None,
        now: Callable[[], float] = time.time,
        *,
        scored: bool = True,
        artefact_bytes: int = DEFAULT_ARTEFACT_BYTES,
        deleted_kept_s: float = DEFAULT_DELETED_KEPT_S,
        quotas: StoreQuotas = DEFAULT_QUOTAS,
    ) -> None:
        beside = None if path is None else path.with_name(f"{path.name}-traces")
        traces = traces or TraceStore(beside, sync_chunks=durability == "power", artefact_bytes=artefact_bytes)
        super().__init__(traces, now, scored=scored, deleted_kept_s=deleted_kept_s, quotas=quotas)
        self._durability = durability
        self._file = None if path is None else str(path.absolute())
        self._place = None if path is None else StorePlace(path.absolute())
        self._faults = Faults((sqlite3.Error,), self._place.cause_of if self._place else _no_cause, self.condition.note)
        self._looked_s = 0.0
        self._watching = threading.Lock()
        self._watched = (-1, -1)
        self._changes = 0
        self._closed = False
        if path is not None and not path.parent.is_dir():
            # Made silently, it would turn a slip of the pen into an empty store.
            raise invalid_field("store", f"the directory {path.parent} does not exist")
        with translated("open", self._faults):
            if self._place is not None:
                self._place.check_before_opening()
            with ExitStack() as left:  # what is left open of a file keeps others from it
                self._writer: SqliteConnection = create(self._file or ":memory:", durability, self._faults)
                left.callback(self._writer.close)
                self._watcher = connect(self._file, durability, self._faults) if self._file else self._writer
                left.callback(self._watcher.close)
                if self._place is not None:
                    self._place.opened(identity_of(self._writer, self._place.store_before()))
                left.pop_all()
        self._idle: deque[SqliteConnection] = deque()

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says; nothing is acknowledged that went to a file which is no longer at its path."""
        try:
            self._check_place()
        except NodewiseError as error:
            return [error] * len(requests)
        outcomes = super().apply(requests)
        try:
            self._check_place()
        except NodewiseError as error:
            return [error] * len(requests)
        return outcomes

    def generation(self) -> int:
        """As the protocol says. Staged batches do not move it."""
        if self._file is None:
            if self._closed:
                raise store_unavailable()
            return self._changes
        if time.monotonic() - self._looked_s > _LOOK_S:
            self._check_place()  # what is kept in memory of a file that others do not see is not told either
        try:
            with self._watching:
                # Any commit of another connection moves data_version; only then is the counter read. As it is read
                # later, it can only be newer than the version that it is kept under.
                (version,) = self._watcher.execute("PRAGMA data_version").fetchone()
                if version != self._watched[0]:
                    (value,) = self._watcher.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
                    self._watched = (version, value)
                return self._watched[1]
        except sqlite3.Error:
            with translated("read the generation", self._faults):
                raise

    def changed_since(self, generation: Hashable) -> frozenset[str] | None:
        """As the protocol says: a file of this machine is asked at once; memory, unless it is being written."""
        if self._file is None:
            if not self._writing.acquire(blocking=False):
                return None
            self._writing.release()
        with self._reading("list changes") as connection:
            return reads.names_changed(connection, generation)

    def check(self) -> None:
        """As the protocol says; what was found damaged stays so until it is inspected again."""
        if self._place is None:
            self.generation()
            return
        self._check_place()
        with self._lent("check") as connection:
            if self.condition.cause == CORRUPT:
                raise store_unavailable(CORRUPT)
            if self.condition.cause == FULL:  # a little finds room in the log where a batch does not
                self._place.write_room()
            with transaction(connection, connection.writing):
                if self.condition.cause:  # as a write would
                    write_a_little(connection)
            self.condition.written()

    def _damage(self, rest: Callable[[], bool]) -> int:
        """SQLite looks at the form of tables, too."""
        if self._file is None:
            return super()._damage(rest)
        with self._lent("inspect") as connection:
            found = damaged_tables(connection, rest)
        return found + super()._damage(rest)

    def close(self) -> None:
        """As the protocol says."""
        with self._writing, self._watching:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._watcher.close()
            self._writer.close()
        self.traces.close()

    # --- connections

    def _check_place(self) -> None:
        """Refuse to go on with a file that was moved, deleted or replaced: others would open another, or none.

        Put back where it was, it is the store again.
        """
        cause = self._place.lost() if self._place else ""
        if cause:
            self.condition.note(cause)
            raise store_unavailable(cause)
        self._looked_s = time.monotonic()
        if self.condition.cause in _LOST:
            self.condition.over(*_LOST)

    def _disks(self) -> Sequence[str | Path]:
        own = [] if self._file is None else [Path(self._file).parent]
        return [*own, *super()._disks()]

    def _counted(self, generation: int) -> None:
        self._changes = generation

    @contextmanager
    def _adding(self, doing: str) -> Iterator[Connection]:
        """The writer's connection inside a transaction of its own, which profiles do not change in."""
        with self._writing, translated(doing, self._faults):
            with transaction(self._writer, self._writer.writing) as connection:
                self._check_place()
                yield connection
            self.condition.written()

    @contextmanager
    def _reading(self, doing: str) -> Iterator[Connection]:
        """A connection inside a read transaction: everything read in it is of one moment."""
        if self._file is None:
            with (
                translated(doing, self._faults),
                self._writing,
                transaction(self._writer, self._writer.reading) as connection,
            ):
                yield connection
            return
        with self._lent(doing) as connection, transaction(connection, connection.reading):
            yield connection

    @contextmanager
    def _lent(self, doing: str) -> Iterator[SqliteConnection]:
        """A connection to the file for a moment."""
        assert self._file is not None
        with translated(doing, self._faults):
            self._check_place()
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._closed:
                    raise store_unavailable() from None
                connection = connect(self._file, self._durability, self._faults)
            try:
                yield connection
            except sqlite3.Error:
                connection.close()  # one that was opened while nothing could be written never writes
                raise
            except BaseException:
                self._idle.append(connection)
                raise
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)
