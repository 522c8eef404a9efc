"""The profile store in a PostgreSQL database, which several replicas of the service share."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import psycopg

from nodewise.profiles.condition import CORRUPT, READ_ONLY, REPLACED, Faults
from nodewise.profiles.postgres_connection import PostgresConnection, cause_of, connect, conninfo_of
from nodewise.profiles.postgres_following import GenerationFollower
from nodewise.profiles.postgres_schema import prepare
from nodewise.profiles.quotas import DEFAULT_QUOTAS, StoreQuotas
from nodewise.profiles.sql_keeping import identity_of, write_a_little
from nodewise.profiles.sql_rows import Connection, transaction, translated
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import DEFAULT_DELETED_KEPT_S, Outcome, WriteRequest, store_unavailable
from nodewise.profiles.traces import TraceStore

__all__ = ["PostgresProfileStore"]


class PostgresProfileStore(SqlProfileStore):
    """Profiles in one database.

    Writers of all replicas take turns; reads take a connection each from a pool and wait for nobody. What another
    replica writes is known as soon as the database tells, and after three seconds at the latest.

    Parameters
    ----------
    url : str
        As libpq reads it; passwords are better left to a password file.
    traces : TraceStore
        Where traces go, closed with this: a directory that all replicas share.
    scored : bool
        Whether commits are put down to be scored.
    deleted_kept_s : float
        How long deleted profiles can be brought back.
    quotas : StoreQuotas
        What namespaces may store.
    now : callable
        Seconds since 1970.

    Raises
    ------
    StoreFormatError
        If the database holds something else, or a schema that this release does not know.
    NodewiseError
        INVALID_FIELD for the URL; STORE_UNAVAILABLE if the database does not answer.
    """

    def __init__(
        self,
        url: str,
        traces: TraceStore,
        now: Callable[[], float] = time.time,
        *,
        scored: bool = True,
        deleted_kept_s: float = DEFAULT_DELETED_KEPT_S,
        quotas: StoreQuotas = DEFAULT_QUOTAS,
    ) -> None:
        super().__init__(traces, now, scored=scored, deleted_kept_s=deleted_kept_s, quotas=quotas)
        self._connecting: Callable[[], psycopg.Connection[Any]] = partial(connect, conninfo_of(url))
        self._closed = False
        self._idle: deque[PostgresConnection] = deque()
        self._faults = Faults((psycopg.Error,), cause_of, self.condition.note)
        with translated("open", self._faults), ExitStack() as left:
            self._writer: PostgresConnection = PostgresConnection(self._connecting, self._faults)
            left.callback(self._writer.close)
            with transaction(self._writer, "BEGIN"):
                prepare(self._writer)
            self._identity = identity_of(self._writer)
            left.pop_all()
        self._follower = GenerationFollower(self._connecting)
        self._asking = threading.Lock()

    def generation(self) -> int:
        """As the protocol says, but that another replica's change may show a little later."""
        if self._closed:
            raise store_unavailable()
        self._check_identity()
        known = self._follower.value()
        if known is not None:
            return known
        with self._asking, self._reading("read the generation") as connection:
            ((value,),) = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchall()
            self._follower.told(value)
            return int(value)

    def check(self) -> None:
        """As the protocol says. A database that is another by now stays refused until the server is restarted."""
        with self._reading("check") as connection:
            asking = "SELECT value, pg_is_in_recovery() FROM meta WHERE name = 'store_id'"
            row = connection.execute(asking).fetchone()
        if row is None or row[0] != self._identity:
            self.condition.note(REPLACED)
        elif row[1]:
            self.condition.note(READ_ONLY)
            raise store_unavailable(READ_ONLY)
        if self.condition.cause in (REPLACED, CORRUPT):
            raise store_unavailable(self.condition.cause)
        if self.condition.cause:  # as a write would
            with self._adding("check") as connection:
                write_a_little(connection)

    def close(self) -> None:
        """As the protocol says."""
        self._follower.close()
        with self._writing:
            self._closed = True
            while self._idle:
                self._idle.pop().close()
            self._writer.close()
        self.traces.close()

    def apply(self, requests: Sequence[WriteRequest]) -> Sequence[Outcome]:
        """As the protocol says; where the database is another by now, nothing is written to it."""
        if self.condition.cause == REPLACED:
            return [store_unavailable(REPLACED)] * len(requests)
        return super().apply(requests)

    def _check_identity(self) -> None:
        """Refuse to go on with another store than was opened: what was acknowledged is not in it."""
        if self.condition.cause == REPLACED:
            raise store_unavailable(REPLACED)

    def _counted(self, generation: int) -> None:
        self._follower.told(generation)

    @contextmanager
    def _adding(self, doing: str) -> Iterator[Connection]:
        with self._writing, translated(doing, self._faults):
            with transaction(self._writer, self._writer.writing) as connection:
                yield connection
            self.condition.written()

    @contextmanager
    def _reading(self, doing: str) -> Iterator[Connection]:
        with translated(doing, self._faults):
            try:
                connection = self._idle.pop()
            except IndexError:
                if self._closed:
                    raise store_unavailable() from None
                connection = PostgresConnection(self._connecting, self._faults)
            try:
                with transaction(connection, connection.reading):
                    yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._idle.append(connection)
