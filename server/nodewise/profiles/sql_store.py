"""What the stores in SQL databases have in common: all but how they connect."""

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
from nodewise.profiles import sql_keeping as keeping
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.condition import CORRUPT, StoreCondition, store_unavailable
from nodewise.profiles.ledger import ScoreLedger
from nodewise.profiles.quotas import Counting, Usage, usage_by_namespace
from nodewise.profiles.sql_incoming import brings_traces, incoming_of, pieces_of, unfinished_folders, unreferenced
from nodewise.profiles.sql_reads import ProfileRow
from nodewise.profiles.sql_rows import Connection, transaction, translated
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
_DISKS_EVERY_S: Final = 0.1
"""Between looks at how much is free on the disks."""
_SWEPT_S: Final = 86_400.0
"""Between two looks for traces that nothing refers to."""


class SqlProfileStore(ProfileStore):
    """Profiles in the tables of an SQL database.

    Writes go through one connection under a lock. Reads take a connection each from a pool, and wait for no writer.

    Parameters
    ----------
    traces : TraceStore
        Where traces go, closed with this.
    options : StoreOptions
        Of which ``traces`` is not looked at.
    condition : StoreCondition
        What ails it, as this process met it.
    """

    _writer: Connection
    tokens: TokenLedger

    def __init__(self, traces: TraceStore, options: StoreOptions, condition: StoreCondition) -> None:
        self.traces = traces
        self.condition = condition
        self._options = options
        self._now = options.now
        self._free: int | None = None
        self._look_at_disks_s = -math.inf
        self._writing = threading.RLock()
        self._idle: deque[Connection] = deque()
        self._closed = False
        self._digests: dict[tuple[int, int], str] = {}
        self._swept_s = -math.inf
        self.scores = ScoreLedger(self._reading, self._adding, options.now)
        self.tokens = TokenLedger(self._reading, self._adding, options.now)
        self.steps = StepLedger(self._reading, self._adding, options.now)

    # --- connections

    def _connected(self) -> Connection:
        """Another connection."""
        raise NotImplementedError

    def _check_place(self) -> None:
        """Refuse to go on with another store than was opened, or with none. Raises NodewiseError STORE_UNAVAILABLE."""

    @contextmanager
    def _lent(self, doing: str) -> Iterator[Connection]:
        """A connection for a moment."""
        with translated(doing, self.condition):
            self._check_place()
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._closed:
                    raise store_unavailable() from None
                connection = self._connected()
            try:
                yield connection
            except self.condition.types:
                connection.close()  # one that was opened while nothing could be written never writes
                raise
            except BaseException:
                self._idle.append(connection)
                raise
            if self._closed:
                connection.close()
            else:
                self._idle.append(connection)

    @contextmanager
    def _reading(self, doing: str) -> Iterator[Connection]:
        """A connection inside a read transaction: everything read in it is of one moment."""
        with self._lent(doing) as connection, transaction(connection, connection.reading):
            yield connection

    @contextmanager
    def _adding(self, doing: str) -> Iterator[Connection]:
        """The writer's connection inside a transaction of its own, which profiles do not change in."""
        with self._writing, translated(doing, self.condition):
            with transaction(self._writer, self._writer.writing) as connection:
                self._check_place()
                yield connection
            self.condition.written()

    def close(self) -> None:
        """As the protocol says."""
        with self._writing:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()
        self.traces.close()

    def whole(self) -> AbstractContextManager[Connection]:
        """For who copies or checks all of it: as it is at one moment."""
        return self._reading("read all of the store")

    def filled(self) -> AbstractContextManager[Connection]:
        """For who brings all of it: written as a whole, or not at all."""
        return self._adding("fill the store")

    def _counted(self, generation: int) -> None:
        """What was written through this object moved the store's generation to here."""
        raise NotImplementedError

    def _disks(self) -> Sequence[str | Path]:
        """Directories that are written to."""
        return [self.traces.root] if self.traces.has_root else []

    def _free_bytes(self) -> int | None:
        """On the disk with least, as it was a moment ago; None = nobody knows."""
        now_s = time.monotonic()
        if now_s >= self._look_at_disks_s:
            found = [free for free in map(free_bytes_at, self._disks()) if free is not None]
            self._free, self._look_at_disks_s = min(found, default=None), now_s + _DISKS_EVERY_S
        return self._free

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
            self.traces.sweep(self._unfinished, self._remove_unreferenced)

    def _pieces(self, session_key: int, trace_id: str) -> tuple[Piece, ...]:
        with self._reading("read pieces of a trace") as connection:
            return tuple(pieces_of(connection, session_key, trace_id))

    def _unfinished(self) -> set[str]:
        with self._reading("look for garbage") as connection:
            return unfinished_folders(connection)

    def _remove_unreferenced(self, names: Sequence[str]) -> None:
        with self._adding("remove garbage") as connection:
            self.traces.remove_all(unreferenced(connection, names))

    def _unprepared(self, request: WriteRequest) -> NodewiseError | None:
        if not isinstance(request, AppendRequest) or request.prepared:
            return None
        try:
            self.prepare(request)
        except NodewiseError as error:
            return error
        return None

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says: one transaction, a savepoint for each request.

        Nothing is acknowledged that went to a store which is no longer in its place.
        """
        try:
            self._check_place()
            outcomes = self._applied(requests)
            self._check_place()
        except NodewiseError as error:
            return [error] * len(requests)
        return outcomes

    def _applied(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        refused = [self._unprepared(request) for request in requests]
        prepared = [each for each, error in zip(requests, refused) if error is None]
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
                with translated("write", self.condition):
                    outcomes = writing.run(prepared, digests)
            except BaseException:
                self._take_back(writing)
                raise
            reasons = [each.reason for each in outcomes if isinstance(each, NodewiseError)]
            if Reason.STORE_UNAVAILABLE not in reasons:
                self.condition.written()
            if writing.changed:
                self._counted(writing.generation)
            try:
                with translated("tidy up", self.condition):
                    writing.after()
            except NodewiseError:  # logged; what is stored is stored, and the next deletion tidies up again
                self._take_back(writing)
        written = iter(outcomes)
        return [next(written) if error is None else error for error in refused]

    # --- keeping

    def inspect(self, rest: Callable[[], bool]) -> int:
        """As the protocol says. It counts as damaged no more once all was looked through and nothing found."""
        ended = False

        def rested() -> bool:
            nonlocal ended
            ended = ended or not rest()
            return not ended

        found = self._damage(rested)
        if found:
            self.condition.cause = CORRUPT
        elif not ended:
            self.condition.over(CORRUPT)
        return found

    def _damage(self, rest: Callable[[], bool]) -> int:
        """How much is damaged: what batches hold is compared with its hash."""
        return keeping.damaged_batches(self._reading, rest)

    def keep(self, rules: Retention) -> Mapping[str, int]:
        """As the protocol says."""
        return keeping.let_go(self, rules, self._now(), self._reading, self._adding)

    def claim(self, task: str, lease_s: float) -> bool:
        """As the protocol says: by a row with the time at which the lease ends."""
        with self._adding("claim a task") as connection:
            return keeping.claimed(connection, task, self._now(), lease_s)

    # --- what both need

    def _summary(self, connection: Connection, row: ProfileRow) -> ProfileSummary:
        digest = reads.memorised(row.digest)
        if digest is None:
            digest = self._digests.get((row.key, row.revision))
        if digest is None:
            digest = reads.replayed(connection, row, row.profile_id, None).digest
            self._remember(row.key, row.revision, digest)
        return reads.summary(row, digest)

    def _take_back(self, writing: Writing) -> None:
        try:
            with translated("take back", self.condition):
                writing.failed()
        except NodewiseError:
            return  # logged; the database takes an open transaction back when the connection closes

    def _remember(self, key: int, revision: int, digest: str) -> None:
        if len(self._digests) < _MOST_MEMOS:
            self._digests[key, revision] = digest
