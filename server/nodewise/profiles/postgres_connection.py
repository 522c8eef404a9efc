"""A connection to PostgreSQL with the interface that stores use; it reconnects after it was lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from nodewise.domain.errors import invalid_field
from nodewise.profiles.condition import CORRUPT, DELETED, FULL, LOCKED, READ_ONLY, UNREACHABLE

__all__ = ["CHANNEL", "PostgresConnection", "cause_of", "connect", "conninfo_of"]

CHANNEL: Final = "nodewise_generation"
"""Channel on which every change of a profile is announced, with the store's generation."""
_CONNECT_S: Final = 5
_IDLE_S: Final = 60
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "nodewise",
    "connect_timeout": _CONNECT_S,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
# A replica that hangs inside a transaction holds up every other: the database ends it. A writer that waits for another
# gives up before its caller does, as with a SQLite file.
_SETTINGS: Final = (
    "SET lock_timeout = '4s'",
    "SET statement_timeout = '30s'",
    f"SET idle_in_transaction_session_timeout = '{_IDLE_S}s'",
    "SET client_min_messages = warning",
    # Acknowledged writes survive a crash of the database, whatever its own setting of synchronous_commit.
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
)


_CAUSES: Final = {
    "53100": FULL,
    "53400": FULL,
    "25006": READ_ONLY,
    "55P03": LOCKED,
    "XX001": CORRUPT,
    "XX002": CORRUPT,
    "42P01": DELETED,
    "3F000": DELETED,
    "3D000": DELETED,
}
"""Causes by SQLSTATE: faults of the database, or missing tables, or a missing database."""


def cause_of(error: Exception) -> str:
    """The cause of an error of the database."""
    state = getattr(error, "sqlstate", None)
    if state is None or state[:2] in ("08", "57"):
        return UNREACHABLE if isinstance(error, psycopg.OperationalError) else ""
    return _CAUSES.get(state, "")


class _UntypedNumber(Dumper):
    """Numbers whose type follows from their place in the statement, as that of strings does."""

    oid = 0

    def dump(self, obj: Any) -> bytes:
        return str(obj).encode()


def conninfo_of(url: str) -> str:
    """The connection string for libpq, with defaults where the URL states nothing.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a URL that libpq cannot read; the message does not repeat it.
    """
    try:
        return make_conninfo("", **_DEFAULTS | conninfo_to_dict(url))
    except psycopg.ProgrammingError:
        raise invalid_field("store", "must be postgresql://[USER@]HOST[:PORT]/DATABASE as libpq reads it") from None


def connect(conninfo: str) -> psycopg.Connection[Any]:
    """A connection in autocommit mode with the store's settings; any thread may use it, one at a time."""
    connection = psycopg.connect(conninfo, autocommit=True)
    try:
        connection.adapters.register_dumper(int, _UntypedNumber)
        for setting in _SETTINGS:
            connection.execute(setting)
    except BaseException:
        connection.close()
        raise
    return connection


@cache
def _with_placeholders(statement: str) -> str:
    return statement.replace("%", "%%").replace("?", "%s")


class PostgresConnection:
    """Implements Connection. A lost one reconnects when the next transaction begins, never within one."""

    dialect = "postgresql"
    reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    # The row of the generation is the lock of all writers, so that generations become visible in their order.
    writing = "BEGIN; SELECT value FROM meta WHERE name = 'generation' FOR UPDATE"
    labelled = "jsonb_exists(CAST(labels AS jsonb), ?)"
    labelled_as = "CAST(labels AS jsonb) ->> CAST(? AS text) = ?"
    counting = (
        "UPDATE meta SET value = value + 1 WHERE name = 'generation'"  # noqa: S608  # the channel is a constant
        f" RETURNING value, pg_notify('{CHANNEL}', CAST(value AS text))"
    )

    patient: tuple[str, ...] = ("SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0")
    overriding = " OVERRIDING SYSTEM VALUE"
    structure: tuple[str, ...] = ()

    def __init__(self, connecting: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connecting = connecting
        self._connection = connecting()
        self._is_closed = False

    @property
    def in_transaction(self) -> bool:
        """As the protocol says: a lost connection is in none."""
        status = self._connection.info.transaction_status
        return status in (pq.TransactionStatus.INTRANS, pq.TransactionStatus.INERROR)

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> psycopg.Cursor[Any]:
        """As the protocol says."""
        if statement in (self.reading, self.writing):
            return self._begin(statement)
        # Binary results, so that bytes do not come as hexadecimal digits.
        return self._connection.execute(_with_placeholders(statement), tuple(values), binary=True)

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> psycopg.Cursor[Any]:
        """As the protocol says: in one exchange."""
        cursor = self._connection.cursor()
        cursor.executemany(_with_placeholders(statement), list(values))
        return cursor

    def close(self) -> None:
        """Close the connection for good."""
        self._is_closed = True
        self._connection.close()

    def _begin(self, statement: str) -> psycopg.Cursor[Any]:
        try:
            return self._start(statement)
        except psycopg.OperationalError:
            if self._is_closed or not self._connection.broken:
                raise
        self._connection = self._connecting()
        return self._start(statement)

    def _start(self, statement: str) -> psycopg.Cursor[Any]:
        try:
            return self._connection.execute(statement)
        except BaseException:
            if self.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
