"""The profile store in a SQLite file, or in memory: the default, which needs no service beside it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from nodewise.domain.errors import NodewiseError, invalid_field
from nodewise.domain.profile import Profile
from nodewise.profiles import sqlite_reads as reads
from nodewise.profiles.artefacts import DEFAULT_ARTEFACT_BYTES
from nodewise.profiles.sqlite_reads import ProfileRow
from nodewise.profiles.sqlite_rows import transaction
from nodewise.profiles.sqlite_schema import Durability, connect, create, translated
from nodewise.profiles.sqlite_scores import SqliteScoreLedger
from nodewise.profiles.sqlite_writes import Writing, session_status
from nodewise.profiles.store import (
    DEFAULT_DELETED_KEPT_S,
    Label,
    Outcome,
    ProfileStore,
    ProfileSummary,
    SessionStatus,
    WriteRequest,
    store_unavailable,
)
from nodewise.profiles.traces import TraceStore

__all__ = ["SqliteProfileStore"]

_PAGE: Final = 256
_MOST_MEMOS: Final = 4096


class SqliteProfileStore(ProfileStore):
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
    ) -> None:
        beside = None if path is None else path.with_name(f"{path.name}-traces")
        self.traces = traces or TraceStore(beside, sync_chunks=durability == "power", artefact_bytes=artefact_bytes)
        self._now = now
        self._scored = scored
        self._deleted_kept_s = deleted_kept_s
        self._durability = durability
        self._file = None if path is None else str(path)
        self._writing = threading.RLock()
        self._watching = threading.Lock()
        self._watched = (-1, -1)
        self._changes = 0
        self._digests: dict[tuple[int, int], str] = {}
        self._closed = False
        if path is not None and not path.parent.is_dir():
            # Made silently, it would turn a slip of the pen into an empty store.
            raise invalid_field("store", f"the directory {path.parent} does not exist")
        with translated("open"):
            self._writer = create(self._file or ":memory:", durability)
            self._watcher = connect(self._file, durability) if self._file else self._writer
        self._idle: deque[sqlite3.Connection] = deque()
        self.scores = SqliteScoreLedger(self._reading, self._adding, now)

    # --- reads

    def open_session(self, profile_id: str, session_id: str) -> SessionStatus:
        """As the protocol says."""
        with self._reading("open a session") as connection:
            return session_status(connection, profile_id, session_id)

    def load(self, profile_id: str, known: Profile | None = None, revision: int | None = None) -> Profile:
        """As the protocol says."""
        with self._reading("load a profile") as connection:
            row = reads.profile_row(connection, profile_id)
            if row is not None and revision is not None and revision != row.revision:
                return reads.replayed(connection, reads.row_at(connection, row, revision, known), profile_id, known)
            profile = reads.replayed(connection, row, profile_id, known)
            if row is not None and reads.memorised(row.digest) is None:
                self._remember(row.key, row.revision, profile.digest)
            return profile

    def list(
        self,
        prefix: str = "",
        after: str = "",
        limit: int = 100,
        labels: Sequence[Label] = (),
        *,
        deleted: bool = False,
    ) -> tuple[ProfileSummary, ...]:
        """As the protocol says."""
        with self._reading("list profiles") as connection:
            rows = reads.profile_rows(connection, prefix, after, limit, labels, self._now() if deleted else None)
            return tuple(self._summary(connection, row) for row in rows)

    def changes(self, since: int, prefix: str = "") -> tuple[int, tuple[ProfileSummary, ...]]:
        """As the protocol says."""
        with self._reading("list changes") as connection:
            (generation,) = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
            rows = reads.changed_rows(connection, since, prefix)
            return generation, tuple(self._summary(connection, row) for row in rows)

    def profiles(self) -> Iterator[Profile]:
        """As the protocol says."""
        after = ""
        while True:
            with self._reading("list profiles") as connection:
                names = [row.profile_id for row in reads.profile_rows(connection, "", after, _PAGE)]
            for name in names:
                try:
                    yield self.load(name)
                except NodewiseError as error:
                    if error.reason != "PROFILE_NOT_FOUND":  # deleted since it was listed
                        raise
            if len(names) < _PAGE:
                return
            after = names[-1]

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

    # --- writes

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says: one transaction, a savepoint for each request."""
        with self._writing:
            digests, self._digests = self._digests, {}
            writing = Writing(
                self._writer, self.traces, self._now, scored=self._scored, deleted_kept_s=self._deleted_kept_s
            )
            try:
                with translated("write"):
                    outcomes = writing.run(list(requests), digests)
            except NodewiseError as error:
                self._take_back(writing)
                return [error] * len(requests)
            except BaseException:
                self._take_back(writing)
                raise
            self._changes += writing.changed
            try:
                with translated("tidy up"):
                    writing.after()
            except NodewiseError:  # logged; what is stored is stored, and the next deletion tidies up again
                self._take_back(writing)
            return outcomes

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

    def _summary(self, connection: sqlite3.Connection, row: ProfileRow) -> ProfileSummary:
        digest = reads.memorised(row.digest)
        if digest is None:
            digest = self._digests.get((row.key, row.revision))
        if digest is None:
            digest = reads.replayed(connection, row, row.profile_id, None).digest
            self._remember(row.key, row.revision, digest)
        return reads.summary(row, digest)

    def _take_back(self, writing: Writing) -> None:
        try:
            with translated("take back"):
                writing.failed()
        except NodewiseError:
            return  # logged; SQLite takes an open transaction back when the connection closes

    def _remember(self, key: int, revision: int, digest: str) -> None:
        if len(self._digests) < _MOST_MEMOS:
            self._digests[key, revision] = digest

    @contextmanager
    def _adding(self, doing: str) -> Iterator[sqlite3.Connection]:
        """The writer's connection inside a transaction of its own, which profiles do not change in."""
        with self._writing, translated(doing), transaction(self._writer) as connection:
            yield connection

    @contextmanager
    def _reading(self, doing: str) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: everything read in it is of one moment."""
        with translated(doing):
            if self._file is None:
                with self._writing, transaction(self._writer, "BEGIN") as connection:
                    yield connection
                return
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._closed:
                    raise store_unavailable() from None
                connection = connect(self._file, self._durability)
            try:
                with transaction(connection, "BEGIN"):
                    yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._idle.append(connection)
