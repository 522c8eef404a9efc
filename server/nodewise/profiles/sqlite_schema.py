"""The file of the SQLite store: its tables, its stamps, and how it is opened."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

import structlog

from nodewise.profiles.codec import PayloadError
from nodewise.profiles.store import StoreFormatError, store_unavailable

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "Durability", "connect", "create", "translated"]

Durability = Literal["process", "power"]
"""What acknowledged batches survive: the death of the process, or also the loss of power."""

APPLICATION_ID: Final = 0x4E444F57
"""``NDOW`` in the header of the file: tells our files from other applications' databases."""

SCHEMA_VERSION: Final = 2

_BUSY_TIMEOUT_S: Final = 10.0
_PAUSE_S: Final = 0.005
_CHECKPOINT_PAGES: Final = 4000
_JOURNAL_BYTES: Final = 64 << 20
_SYNCHRONOUS: Final = {"process": "NORMAL", "power": "FULL"}

# Rows of `batches` are written once and never changed: what counts is said by `commits` and `retracted`, and a profile
# is the replay of both by revision. `profiles` and `sessions` hold what follows from them, so that an append reads no
# history. Keys are never used twice (AUTOINCREMENT). A profile of revision 0 was never committed and does not exist for
# callers.
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE profiles (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    profile_id TEXT NOT NULL UNIQUE,
    uid TEXT NOT NULL,
    revision INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    observations_count INTEGER NOT NULL,
    create_time_s REAL NOT NULL,
    update_time_s REAL NOT NULL,
    digest TEXT,
    facts BLOB NOT NULL
);
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    durable INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    staged_rows INTEGER NOT NULL,
    staged_content INTEGER NOT NULL,
    staged_facts BLOB NOT NULL,
    UNIQUE (profile_key, session_id)
);
CREATE TABLE batches (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    sequence_number INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE (session_key, sequence_number)
);
CREATE TABLE commits (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    first_sequence_number INTEGER NOT NULL,
    last_sequence_number INTEGER NOT NULL,
    first_observation_number INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    time_s REAL NOT NULL,
    PRIMARY KEY (profile_key, revision)
) WITHOUT ROWID;
CREATE INDEX commits_by_session ON commits (session_key);
CREATE TABLE retractions (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    request_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    content_hash BLOB NOT NULL,
    reason TEXT NOT NULL,
    time_s REAL NOT NULL,
    PRIMARY KEY (profile_key, request_id)
) WITHOUT ROWID;
CREATE TABLE retracted (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (profile_key, number)
) WITHOUT ROWID;
CREATE TABLE traces (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    session_key INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    trace_id TEXT NOT NULL,
    format TEXT NOT NULL,
    rank INTEGER NOT NULL,
    world_size INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    finished_sequence_number INTEGER NOT NULL,
    content_sha256 TEXT,
    UNIQUE (session_key, trace_id)
);
CREATE INDEX traces_by_content ON traces (content_sha256) WHERE content_sha256 IS NOT NULL;
CREATE TABLE unreferenced (content_sha256 TEXT PRIMARY KEY) WITHOUT ROWID;
"""

# Since version 2. A row of `unscored` comes with the commit's transaction and goes with the one that adds to `scores`.
_SCORES: Final = """
CREATE TABLE unscored (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    revision INTEGER NOT NULL,
    first_number INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    claimed_until_s REAL NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE scores (
    estimator TEXT NOT NULL,
    version TEXT NOT NULL,
    observations INTEGER NOT NULL,
    absolute_log_error REAL NOT NULL,
    log_error REAL NOT NULL,
    intervals INTEGER NOT NULL,
    covered INTEGER NOT NULL,
    unanswered INTEGER NOT NULL,
    update_time_s REAL NOT NULL,
    PRIMARY KEY (estimator, version)
) WITHOUT ROWID;
"""

_log = structlog.get_logger(__name__)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turn what the database, the disk or damaged content raise into STORE_UNAVAILABLE; only the log gets the text."""
    try:
        yield
    except (sqlite3.Error, OSError, PayloadError) as error:
        _log.error("store failed", doing=doing, error=type(error).__name__, text=str(error))
        raise store_unavailable() from None


def connect(path: str, durability: Durability) -> sqlite3.Connection:
    """A connection in autocommit mode with our settings; any thread may use it, one at a time."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, cached_statements=256
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


def create(path: str, durability: Durability) -> sqlite3.Connection:
    """A connection to a file that holds our tables: they are created if it is empty.

    Raises
    ------
    StoreFormatError
        If the file is not ours or of a schema that this release does not know; nothing was written then.
    """
    try:
        connection = connect(path, durability)
        try:
            _check_or_create(connection)
        except BaseException:
            connection.close()
            raise
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.OperationalError):
            raise
        raise StoreFormatError("the file is no SQLite database, or it is damaged") from error
    return connection


def _check_or_create(connection: sqlite3.Connection) -> None:
    with _transaction(connection, "BEGIN"):
        ours = _is_ours(connection)
    if not ours:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            if not _is_ours(connection):  # nobody else created it meanwhile
                for statement in (_TABLES + _SCORES).split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.executemany(
                    "INSERT INTO meta VALUES (?, ?)", [("schema_version", SCHEMA_VERSION), ("generation", 0)]
                )
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    if row is None or row[0] > SCHEMA_VERSION:
        raise StoreFormatError(
            f"the file has schema {row and row[0]} and this release knows {SCHEMA_VERSION}:"
            " open it with the release that wrote it"
        )
    if row[0] < SCHEMA_VERSION:
        with _transaction(connection, "BEGIN IMMEDIATE"):
            _upgrade(connection)
    _log_ahead(connection)


def _upgrade(connection: sqlite3.Connection) -> None:
    """Add what later versions brought, unless another process did meanwhile."""
    (version,) = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    if version < 2:
        for statement in _SCORES.split(";"):
            connection.execute(statement)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", (SCHEMA_VERSION,))


def _log_ahead(connection: sqlite3.Connection) -> None:
    """Turn the write-ahead log on. SQLite does not wait for others here by itself, so this does."""
    deadline_s = time.monotonic() + _BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_PAUSE_S)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _is_ours(connection: sqlite3.Connection) -> bool:
    """False = the file is empty. Asked in a transaction, because another process may be creating the tables."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found == APPLICATION_ID:
        return True
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if found or tables:
        raise StoreFormatError("the file is a database of another application; choose another path for the store")
    return False
