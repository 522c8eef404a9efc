"""Base of the stores in SQL databases: everything except their connections."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.profiles import sql_maintenance as keeping
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.condition import CORRUPT, StoreCondition, store_unavailable
from nodewise.profiles.ledger import ScoreLedger
from nodewise.profiles.quotas import Counting, Usage, usage_by_namespace
from nodewise.profiles.sql_incoming import brings_traces, incoming_of, pieces_of, unfinished_folders, unreferenced_of
from nodewise.profiles.sql_reads import ProfileRow
from nodewise.profiles.sql_rows import Connection, transaction, translate_errors
from nodewise.profiles.sql_writes import Writing, session_status
from nodewise.profiles.step_reports import StepLedger
from nodewise.profiles.store import (
    AppendRequest,
    Label,
    Outcome,
    ProfileStore,
    ProfileSummary,
    Retention,
    SessionStatus,
    StoreOptions,
    WriteRequest,
)
from nodewise.profiles.tokens import TokenLedger
from nodewise.profiles.traces import Piece, TraceStore, free_bytes_at

__all__ = ["SqlProfileStore"]

_MOST_MEMOS: Final = 4096
_SWEPT_S: Final = 86_400.0
"""Seconds between two searches for traces that nothing refers to."""


class SqlProfileStore(ProfileStore):
    """Profiles in the tables of an SQL database.

    Writes go through one connection under a lock. Reads take a connection each from a pool, and wait for no writer.

    Parameters
    ----------
    traces : TraceStore
        Where traces go, closed with this.
    options : StoreOptions
        Options; ``traces`` is ignored.
    condition : StoreCondition
        The current fault of the store, as this process knows it.
    """

    _writer: Connection
    tokens: TokenLedger

    def __init__(self, traces: TraceStore, options: StoreOptions, condition: StoreCondition) -> None:
        self.traces = traces
        self.condition = condition
        self._options = options
        self._now = options.now
        self._writing = threading.RLock()
        self._idle: deque[Connection] = deque()
        self._is_closed = False
        self._digests: dict[tuple[int, int], str] = {}
        self._swept_s = -math.inf
        self.scores = ScoreLedger(self._reading, self._adding, options.now)
        self.tokens = TokenLedger(self._reading, self._adding, options.now)
        self.steps = StepLedger(self._reading, self._adding, options.now)

    # --- connections

    def _connect(self) -> Connection:
        """Another connection."""
        raise NotImplementedError

    def _check_place(self) -> None:
        """Raise NodewiseError STORE_UNAVAILABLE if the opened store was replaced or removed."""

    @contextmanager
    def _lend(self, doing: str) -> Iterator[Connection]:
        """Borrow a connection."""
        with translate_errors(doing, self.condition):
            self._check_place()
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._is_closed:
                    raise store_unavailable() from None
                connection = self._connect()
            try:
                yield connection
            except self.condition.types:
                connection.close()  # a connection that was opened during a write fault never writes
                raise
            except BaseException:
                self._idle.append(connection)
                raise
            if self._is_closed:
                connection.close()
            else:
                self._idle.append(connection)

    @contextmanager
    def _reading(self, doing: str) -> Iterator[Connection]:
        """A connection inside a read transaction, which sees one moment."""
        with self._lend(doing) as connection, transaction(connection, connection.reading):
            yield connection

    @contextmanager
    def _adding(self, doing: str) -> Iterator[Connection]:
        """The writer's connection inside a transaction that changes no profile."""
        with self._writing, translate_errors(doing, self.condition):
            with transaction(self._writer, self._writer.writing) as connection:
                self._check_place()
                yield connection
            self.condition.record_write()

    def close(self) -> None:
        """As the protocol says."""
        with self._writing:
            self._is_closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()
        self.traces.close()

    def whole(self) -> AbstractContextManager[Connection]:
        """A connection for copies and checks of the whole store as of one moment."""
        return self._reading("read all of the store")

    def fill(self) -> AbstractContextManager[Connection]:
        """A connection for writing the whole content in one transaction."""
        return self._adding("fill the store")

    def _note_generation(self, generation: int) -> None:
        """Note the store's generation after a write through this object."""
        raise NotImplementedError

    def _disks(self) -> Sequence[str | Path]:
        """Directories that are written to."""
        return [self.traces.root] if self.traces.has_root else []

    def _free_bytes(self) -> int | None:
        """Free bytes of the fullest disk; None = unknown."""
        return min((free for free in map(free_bytes_at, self._disks()) if free is not None), default=None)

    # --- reads

    def open_session(self, profile_id: str, session_id: str) -> SessionStatus:
        """As the protocol says."""
        with self._reading("open a session") as connection:
            return session_status(connection, profile_id, session_id)

    def load(self, profile_id: str, last_read: Profile | None = None, revision: int | None = None) -> Profile:
        """As the protocol says."""
        with self._reading("load a profile") as connection:
            row = reads.profile_row(connection, profile_id)
            if row is not None and revision is not None and revision != row.revision:
                return reads.replay_profile(
                    connection, reads.row_at(connection, row, revision, last_read), profile_id, last_read
                )
            profile = reads.replay_profile(connection, row, profile_id, last_read)
            if row is not None and reads.valid_memo(row.digest) is None:
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

    def usage(self) -> Mapping[str, Usage]:
        """As the protocol says."""
        with self._reading("count what is stored") as connection:
            return usage_by_namespace(connection)

    # --- writes

    def prepare(self, request: AppendRequest) -> None:
        """As the protocol says: for traces that are kept elsewhere."""
        if not self.traces.away or not brings_traces(request):
            return
        with self._reading("prepare traces") as connection:
            incoming = incoming_of(connection, request, self._pieces)
        self.traces.prepare(incoming)
        if self._swept_s < time.monotonic() - _SWEPT_S:
            self._swept_s = time.monotonic()
            self.traces.sweep(self._unfinished_folders, self._remove_unreferenced)

    def _pieces(self, session_key: int, trace_id: str) -> tuple[Piece, ...]:
        with self._reading("read pieces of a trace") as connection:
            return tuple(pieces_of(connection, session_key, trace_id))

    def _unfinished_folders(self) -> set[str]:
        with self._reading("look for garbage") as connection:
            return unfinished_folders(connection)

    def _remove_unreferenced(self, names: Sequence[str]) -> None:
        with self._adding("remove garbage") as connection:
            self.traces.remove_all(unreferenced_of(connection, names))

    def _preparation_error(self, request: WriteRequest) -> NodewiseError | None:
        if not isinstance(request, AppendRequest) or request.prepared:
            return None
        try:
            self.prepare(request)
        except NodewiseError as error:
            return error
        return None

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says: one transaction, a savepoint for each request.

        Writes to a store that was replaced or removed are not acknowledged.
        """
        try:
            self._check_place()
            outcomes = self._apply(requests)
            self._check_place()
        except NodewiseError as error:
            return [error] * len(requests)
        return outcomes

    def _apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        errors = [self._preparation_error(request) for request in requests]
        ready = [each for each, error in zip(requests, errors) if error is None]
        with self._writing:
            digests, self._digests = self._digests, {}
            writing = Writing(
                self._writer,
                self.traces,
                self.condition,
                self._now,
                self._options,
                Counting(self._writer, self._options.quotas, self._free_bytes),
            )
            try:
                with translate_errors("write", self.condition):
                    outcomes = writing.run(ready, digests)
            except BaseException:
                self._take_back(writing)
                raise
            reasons = [each.reason for each in outcomes if isinstance(each, NodewiseError)]
            if Reason.STORE_UNAVAILABLE not in reasons:
                self.condition.record_write()
            if writing.changed:
                self._note_generation(writing.generation)
            try:
                with translate_errors("tidy up", self.condition):
                    writing.after()
            except NodewiseError:  # logged; the write itself is durable, and the next deletion cleans up
                self._take_back(writing)
        results = iter(outcomes)
        return [next(results) if error is None else error for error in errors]

    # --- keeping

    def inspect(self, rest: Callable[[], bool]) -> int:
        """As the protocol says. A complete inspection without findings ends the state "damaged"."""
        has_ended = False

        def rest_and_check() -> bool:
            nonlocal has_ended
            has_ended = has_ended or not rest()
            return not has_ended

        damage = self._damage(rest_and_check)
        if damage:
            self.condition.cause = CORRUPT
        elif not has_ended:
            self.condition.over(CORRUPT)
        return damage

    def _damage(self, rest: Callable[[], bool]) -> int:
        """Number of damaged batches: their content is compared with its hash."""
        return keeping.damaged_batches(self._reading, rest)

    def keep(self, rules: Retention) -> Mapping[str, int]:
        """As the protocol says."""
        return keeping.let_go(self, rules, self._now(), self._reading, self._adding)

    def claim(self, task: str, lease_s: float) -> bool:
        """As the protocol says: by a row with the time at which the lease ends."""
        with self._adding("claim a task") as connection:
            return keeping.claim_task(connection, task, self._now(), lease_s)

    # --- what both need

    def _summary(self, connection: Connection, row: ProfileRow) -> ProfileSummary:
        digest = reads.valid_memo(row.digest)
        if digest is None:
            digest = self._digests.get((row.key, row.revision))
        if digest is None:
            digest = reads.replay_profile(connection, row, row.profile_id, None).digest
            self._remember(row.key, row.revision, digest)
        return reads.summary(row, digest)

    def _take_back(self, writing: Writing) -> None:
        try:
            with translate_errors("take back", self.condition):
                writing.roll_back()
        except NodewiseError:
            return  # logged; the database rolls an open transaction back when the connection closes

    def _remember(self, key: int, revision: int, digest: str) -> None:
        if len(self._digests) < _MOST_MEMOS:
            self._digests[key, revision] = digest
