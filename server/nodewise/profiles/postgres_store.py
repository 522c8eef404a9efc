"""The profile store in a PostgreSQL database, which several replicas of the service share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import psycopg

from nodewise.profiles.condition import CORRUPT, READ_ONLY, REPLACED, StoreCondition, store_unavailable
from nodewise.profiles.postgres_connection import PostgresConnection, cause_of, connect, conninfo_of
from nodewise.profiles.postgres_following import GenerationFollower
from nodewise.profiles.postgres_schema import prepare
from nodewise.profiles.sql_maintenance import identity_of, write_a_little
from nodewise.profiles.sql_rows import transaction, translate_errors
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import StoreOptions
from nodewise.profiles.traces import TraceStore

__all__ = ["PostgresProfileStore"]


class PostgresProfileStore(SqlProfileStore):
    """Profiles in one database.

    Writers of all replicas take turns. Changes by another replica are known as soon as the database announces them, and
    after three seconds at the latest.

    Parameters
    ----------
    url : str
        As libpq reads it; passwords are better left to a password file.
    traces : TraceStore
        Where traces go: a directory that all replicas share, or a bucket.

    Raises
    ------
    StoreFormatError
        If the database holds something else, or a schema that this release does not know.
    NodewiseError
        INVALID_FIELD for the URL; STORE_UNAVAILABLE if the database does not answer.
    """

    def __init__(self, url: str, traces: TraceStore, options: StoreOptions) -> None:
        super().__init__(traces, options, StoreCondition((psycopg.Error,), cause_of))
        self._connecting: Callable[[], psycopg.Connection[Any]] = partial(connect, conninfo_of(url))
        with translate_errors("open", self.condition), ExitStack() as left:
            self._writer = self._connect()
            left.callback(self._writer.close)
            with transaction(self._writer, "BEGIN"):
                prepare(self._writer)
            self._identity = identity_of(self._writer)
            left.pop_all()
        self._follower = GenerationFollower(self._connecting)
        self._asking = threading.Lock()

    def generation(self) -> int:
        """As the protocol says; another replica's change may show a little later."""
        if self._is_closed:
            raise store_unavailable()
        self._check_place()
        last_value = self._follower.value()
        if last_value is not None:
            return last_value
        with self._asking, self._reading("read the generation") as connection:
            ((value,),) = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchall()
            self._follower.note(value)
            return int(value)

    def check(self) -> None:
        """As the protocol says. A replaced database is refused until the server is restarted."""
        with self._reading("check") as connection:
            asking = "SELECT value, pg_is_in_recovery() FROM meta WHERE name = 'store_id'"
            row = connection.execute(asking).fetchone()
        if row is None or row[0] != self._identity:
            self.condition.cause = REPLACED
        elif row[1]:
            self.condition.cause = READ_ONLY
            raise store_unavailable(READ_ONLY)
        if self.condition.cause in (REPLACED, CORRUPT):
            raise store_unavailable(self.condition.cause)
        if self.condition.cause:  # as a write does
            with self._adding("check") as connection:
                write_a_little(connection)

    def close(self) -> None:
        """As the protocol says."""
        self._follower.close()
        super().close()

    def _check_place(self) -> None:
        """Refuse another store than the opened one, as acknowledged writes are not in it."""
        if self.condition.cause == REPLACED:
            raise store_unavailable(REPLACED)

    def _note_generation(self, generation: int) -> None:
        self._follower.note(generation)

    def _connect(self) -> PostgresConnection:
        return PostgresConnection(self._connecting)
