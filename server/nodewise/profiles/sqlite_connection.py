"""Connections to the file of a SQLite store, and its creation."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Final

from nodewise.profiles.sql_rows import transaction
from nodewise.profiles.sql_schema import APPLICATION_ID, create_tables, is_current, upgrade_tables
from nodewise.profiles.store import Durability, StoreFormatError

__all__ = ["PATIENCE_S", "SqliteConnection", "connect", "create"]

_OPENING_S: Final = 10.0
"""Seconds to wait for a lock while a store is opened, which may be upgraded by another process."""
PATIENCE_S: Final = 2.0
"""Seconds to wait for a lock: below the deadlines of callers, and more than the server's processes need for turns."""
_PAUSE_S: Final = 0.005
_CHECKPOINT_PAGES: Final = 4000
_JOURNAL_BYTES: Final = 64 << 20
_SYNCHRONOUS: Final = {"process": "NORMAL", "power": "FULL"}


class SqliteConnection(sqlite3.Connection):
    """Implements Connection for SQLite."""

    dialect = "sqlite"
    reading = "BEGIN"
    writing = "BEGIN IMMEDIATE"
    labelled = "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ?)"
    labelled_as = "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)"
    counting = "UPDATE meta SET value = value + 1 WHERE name = 'generation' RETURNING value"
    patient: tuple[str, ...] = ()
    overriding = ""
    structure: tuple[str, ...] = (
        "SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok'",
        "SELECT \"table\" || ' holds rows whose ' || parent || ' is gone' FROM pragma_foreign_key_check GROUP BY 1",
    )


def connect(
    path: str, durability: Durability, patience_s: float = PATIENCE_S, *, creates: bool = True
) -> SqliteConnection:
    """A connection in autocommit mode with the store's settings; any thread may use it, one at a time.

    Parameters
    ----------
    creates : bool
        Whether a file that is missing is created. An empty one in the place of a store that was moved for a moment
        would be another store.
    """
    connection = sqlite3.connect(
        path if creates else f"{Path(path).absolute().as_uri()}?mode=rw",
        uri=not creates,
        timeout=patience_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SqliteConnection,
    )
    for setting in (
        f"synchronous = {_SYNCHRONOUS[durability]}",
        "foreign_keys = ON",
        "temp_store = MEMORY",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_JOURNAL_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def create(path: str, durability: Durability) -> SqliteConnection:
    """A connection, for writing, to a file with the store's tables, which are created if the file is empty.

    Raises
    ------
    StoreFormatError
        If the file is another database, or has a schema that this release does not know; nothing was written then.
    """
    try:
        connection = connect(path, durability, _OPENING_S)
        try:
            _check_or_create(connection)
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * PATIENCE_S)}")
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise StoreFormatError("the file is no SQLite database, or it is damaged") from error
    return connection


def _check_or_create(connection: SqliteConnection) -> None:
    with transaction(connection, connection.reading):
        current = _is_ours(connection) and is_current(connection)
    if not current:
        connection.execute("PRAGMA foreign_keys = OFF")  # rebuilding a table must not delete rows of others
        with transaction(connection, connection.writing):
            if not _is_ours(connection):  # no other process created it meanwhile
                create_tables(connection)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            upgrade_tables(connection)
        connection.execute("PRAGMA foreign_keys = ON")
    _log_ahead(connection)


def _log_ahead(connection: SqliteConnection) -> None:
    """Turn the write-ahead log on. SQLite does not wait for locks here, so this waits."""
    deadline_s = time.monotonic() + _OPENING_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)


def _is_ours(connection: SqliteConnection) -> bool:
    """Whether the file holds a store; False = empty. In a transaction, as another process may create the tables."""
    stamp = connection.execute("PRAGMA application_id").fetchone()[0]
    if stamp == APPLICATION_ID:
        return True
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if stamp or tables:
        raise StoreFormatError("the file is a database of another application; choose another path for the store")
    return False
