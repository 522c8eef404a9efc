"""The profile store in a SQLite file, or in memory: the default, which needs no service beside it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.quotas import DEFAULT_QUOTAS, StoreQuotas
from nodewise.profiles.sql_rows import Connection, transaction
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.sqlite_schema import Durability, SqliteConnection, connect, create, translated
from nodewise.profiles.store import DEFAULT_DELETED_KEPT_S, Outcome, WriteRequest, store_unavailable
from nodewise.profiles.traces import TraceStore

__all__ = ["SqliteProfileStore"]

_log = structlog.get_logger(__name__)


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
        self._watching = threading.Lock()
        self._watched = (-1, -1)
        self._changes = 0
        self._closed = False
        if path is not None and not path.parent.is_dir():
            # Made silently, it would turn a slip of the pen into an empty store.
            raise invalid_field("store", f"the directory {path.parent} does not exist")
        with translated("open"):
            self._writer: SqliteConnection = create(self._file or ":memory:", durability)
            self._watcher = connect(self._file, durability) if self._file else self._writer
            self._place = self._found()
        self._said = False
        self._idle: deque[SqliteConnection] = deque()

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says; nothing is acknowledged that went to a file which is no longer at its path."""
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
            with translated("read the generation"):
                raise

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

    def _found(self) -> tuple[int, int] | None:
        """Which file is at the path; None = none is, or the store is in memory."""
        try:
            found = Path(self._file).stat() if self._file else None
        except FileNotFoundError:
            return None
        return None if found is None else (found.st_dev, found.st_ino)

    def _check_place(self) -> None:
        """Refuse to go on with a file that was moved, deleted or replaced: others would open another, or none.

        Put back where it was, it is the store again.
        """
        found = self._found()
        if found == self._place:
            self._said = False
            return
        what = "gone" if found is None else "another"
        if not self._said:
            self._said = True
            _log.error("store_file_lost", path=self._file, found=what, mend="put the file back, or restart the server")
        raise NodewiseError(
            Reason.STORE_UNAVAILABLE, f"the file of the store is {what}: put it back, or restart the server"
        )

    def _disks(self) -> Sequence[str | Path]:
        own = [] if self._file is None else [Path(self._file).parent]
        return [*own, *super()._disks()]

    def _counted(self, generation: int) -> None:
        self._changes = generation

    @contextmanager
    def _adding(self, doing: str) -> Iterator[Connection]:
        """The writer's connection inside a transaction of its own, which profiles do not change in."""
        with self._writing, translated(doing), transaction(self._writer, self._writer.writing) as connection:
            self._check_place()
            yield connection

    @contextmanager
    def _reading(self, doing: str) -> Iterator[Connection]:
        """A connection inside a read transaction: everything read in it is of one moment."""
        with translated(doing):
            if self._file is None:
                with self._writing, transaction(self._writer, self._writer.reading) as connection:
                    yield connection
                return
            self._check_place()
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._closed:
                    raise store_unavailable() from None
                connection = connect(self._file, self._durability)
            try:
                with transaction(connection, connection.reading):
                    yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._idle.append(connection)
