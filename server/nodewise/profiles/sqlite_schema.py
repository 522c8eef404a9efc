"""The file of the SQLite store: its tables, its stamps, and how it is opened."""

from __future__ import annotations

import sqlite3
import time
from typing import Any, Final, Literal

from nodewise.profiles.condition import Faults
from nodewise.profiles.sql_rows import transaction
from nodewise.profiles.store import StoreFormatError

__all__ = ["APPLICATION_ID", "PATIENCE_S", "SCHEMA_VERSION", "Durability", "SqliteConnection", "connect", "create"]

Durability = Literal["process", "power"]
"""What acknowledged batches survive: the death of the process, or also the loss of power."""

APPLICATION_ID: Final = 0x4E444F57
"""``NDOW`` in the header of the file: tells our files from other applications' databases."""

SCHEMA_VERSION: Final = 5

_BUSY_TIMEOUT_S: Final = 10.0
"""Of an open store's beginning, which may wait for an upgrade by another process."""
PATIENCE_S: Final = 2.0
"""With whoever else holds the lock: below the deadlines of callers, and more than processes of ours need for turns."""
_PAUSE_S: Final = 0.005
_CHECKPOINT_PAGES: Final = 4000
_JOURNAL_BYTES: Final = 64 << 20
_SYNCHRONOUS: Final = {"process": "NORMAL", "power": "FULL"}

# Rows of `batches` are written once and never changed: what counts is said by `commits` and `retracted`, and a profile
# is the replay of both by revision. `profiles` and `sessions` hold what follows from them, so that an append reads no
# history. Keys are never used twice (AUTOINCREMENT). A profile of revision 0 was never committed and does not exist for
# callers. A deleted one has a time of deletion and stays until it is purged; of rows with one name the newest counts.
# `changed` is the store's generation at the profile's last change: a transaction writes what it will count at its end.
_PROFILES: Final = """
CREATE TABLE {name} (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    profile_id TEXT NOT NULL,
    uid TEXT NOT NULL,
    revision INTEGER NOT NULL,
    last_number INTEGER NOT NULL,
    last_timing_number INTEGER NOT NULL,
    observations_count INTEGER NOT NULL,
    create_time_s REAL NOT NULL,
    update_time_s REAL NOT NULL,
    digest TEXT,
    facts BLOB NOT NULL,
    display_name TEXT NOT NULL DEFAULT '',
    labels TEXT NOT NULL DEFAULT '{{}}',
    delete_time_s REAL NOT NULL DEFAULT 0,
    purge_time_s REAL NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0
);
"""
_PROFILE_INDEXES: Final = """
CREATE UNIQUE INDEX profiles_that_are ON profiles (profile_id) WHERE delete_time_s = 0;
CREATE INDEX profiles_by_name ON profiles (profile_id);
CREATE INDEX profiles_by_change ON profiles (changed);
CREATE INDEX profiles_to_purge ON profiles (purge_time_s) WHERE purge_time_s > 0;
"""
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    durable INTEGER NOT NULL,
    committed INTEGER NOT NULL,
    staged_rows INTEGER NOT NULL,
    staged_content INTEGER NOT NULL,
    staged_facts BLOB NOT NULL,
    staged_timing_rows INTEGER NOT NULL DEFAULT 0,
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
    timing_rows INTEGER NOT NULL DEFAULT 0,
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

# Since version 3: phase timings (by number), facts (by path) and traces (by hash). What is stated or sent anew counts
# from its commit on, so an entry takes out what came up to its own revision.
_RETRACTED_EVIDENCE: Final = """
CREATE TABLE retracted_evidence (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name NOT NULL,
    revision INTEGER NOT NULL,
    PRIMARY KEY (profile_key, kind, name, revision)
) WITHOUT ROWID;
"""

# Since version 4: bearer tokens, without their secrets; times of 0 = never. `tokens` in `meta` counts their changes.
_TOKENS: Final = """
CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    description TEXT NOT NULL,
    roles TEXT NOT NULL,
    prefixes TEXT NOT NULL,
    create_time_s REAL NOT NULL,
    expire_time_s REAL NOT NULL,
    revoke_time_s REAL NOT NULL
) WITHOUT ROWID;
INSERT INTO meta VALUES ('tokens', 0);
"""

# Since version 5: times of steps that running jobs report. A report is the windows of one rank, as columns of numbers;
# an hour is the sum over ranks.
_STEPS: Final = """
CREATE TABLE step_reports (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    rank INTEGER NOT NULL,
    begin_s REAL NOT NULL,
    node INTEGER NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (profile_key, rank, begin_s)
) WITHOUT ROWID;
CREATE TABLE step_hours (
    profile_key INTEGER NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    hour INTEGER NOT NULL,
    steps INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (profile_key, hour)
) WITHOUT ROWID;
"""

# From version 2 to 3. Files of then did not count phase timings: what the batches hold is counted once. The table of
# profiles is written anew, because a name was unique in it; its keys stay what they were.
_COUNTED: Final = """
ALTER TABLE commits ADD COLUMN timing_rows INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN staged_timing_rows INTEGER NOT NULL DEFAULT 0;
CREATE TEMPORARY TABLE timed AS
    SELECT session_key, sequence_number, json_extract(CAST(payload AS TEXT), '$.phase_timings.rows') AS rows
    FROM batches WHERE instr(payload, CAST('"phase_timings"' AS BLOB)) AND json_valid(CAST(payload AS TEXT));
CREATE INDEX timed_by_batch ON timed (session_key, sequence_number);
UPDATE commits SET timing_rows = coalesce((SELECT sum(rows) FROM timed WHERE timed.session_key = commits.session_key
    AND sequence_number BETWEEN first_sequence_number AND last_sequence_number), 0);
UPDATE sessions SET staged_timing_rows = coalesce((SELECT sum(rows) FROM timed WHERE session_key = sessions.key
    AND sequence_number > committed), 0);
DROP TABLE timed;
"""
_MOVED: Final = """
INSERT INTO profiles_3 (key, profile_id, uid, revision, last_number, last_timing_number, observations_count,
    create_time_s, update_time_s, digest, facts)
SELECT key, profile_id, uid, revision, last_number,
    (SELECT coalesce(sum(timing_rows), 0) FROM commits WHERE profile_key = key), observations_count,
    create_time_s, update_time_s, digest, facts
FROM profiles;
DELETE FROM sqlite_sequence WHERE name = 'profiles_3';
INSERT INTO sqlite_sequence SELECT 'profiles_3', seq FROM sqlite_sequence WHERE name = 'profiles';
DROP TABLE profiles;
ALTER TABLE profiles_3 RENAME TO profiles;
"""


class SqliteConnection(sqlite3.Connection):
    """A connection to a file, with what SQLite reads in its own way.

    Attributes
    ----------
    patience_s : float
        How long a transaction that writes waits for its turn.
    """

    dialect = "sqlite"
    reading = "BEGIN"
    writing = "BEGIN IMMEDIATE"
    labelled = "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ?)"
    labelled_as = "EXISTS (SELECT 1 FROM json_each(labels) WHERE key = ? AND value = ?)"
    counting = "UPDATE meta SET value = value + 1 WHERE name = 'generation' RETURNING value"
    faults: Faults
    patience_s = PATIENCE_S

    def execute(self, statement: str, values: Any = (), /) -> sqlite3.Cursor:
        """As the protocol says. Turns are asked for often: SQLite itself asks ever more seldom, and may starve."""
        if statement is not self.writing:
            return super().execute(statement, values)
        ends_s = time.monotonic() + self.patience_s
        while True:
            try:
                return super().execute(statement)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends_s:
                    raise
                time.sleep(_PAUSE_S)


def connect(path: str, durability: Durability, faults: Faults, timeout_s: float = PATIENCE_S) -> SqliteConnection:
    """A connection in autocommit mode with our settings; any thread may use it, one at a time."""
    connection = sqlite3.connect(
        path,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SqliteConnection,
    )
    connection.faults = faults
    for setting in (
        f"synchronous = {_SYNCHRONOUS[durability]}",
        "foreign_keys = ON",
        "temp_store = MEMORY",
        f"wal_autocheckpoint = {_CHECKPOINT_PAGES}",
        f"journal_size_limit = {_JOURNAL_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}")
    return connection


def create(path: str, durability: Durability, faults: Faults) -> SqliteConnection:
    """A connection, for writing, to a file that holds our tables: they are created if it is empty.

    Raises
    ------
    StoreFormatError
        If the file is not ours or of a schema that this release does not know; nothing was written then.
    """
    try:
        connection = connect(path, durability, faults, _BUSY_TIMEOUT_S)
        try:
            connection.patience_s = _BUSY_TIMEOUT_S
            _check_or_create(connection)
            connection.patience_s = PATIENCE_S
            connection.execute(f"PRAGMA busy_timeout = {int(1000 * _PAUSE_S)}")
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
        ours = _is_ours(connection)
    if not ours:
        with transaction(connection, connection.writing):
            if not _is_ours(connection):  # nobody else created it meanwhile
                _execute(connection, _PROFILES.format(name="profiles"), _PROFILE_INDEXES)
                _execute(connection, _TABLES, _SCORES, _RETRACTED_EVIDENCE, _TOKENS, _STEPS)
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
        connection.execute("PRAGMA foreign_keys = OFF")  # a table that is written anew takes no other with it
        with transaction(connection, connection.writing):
            _upgrade(connection)
        connection.execute("PRAGMA foreign_keys = ON")
    _log_ahead(connection)


def _upgrade(connection: SqliteConnection) -> None:
    """Add what later versions brought, unless another process did meanwhile."""
    (version,) = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    if version < 2:
        _execute(connection, _SCORES)
    if version < 3:
        _execute(connection, _COUNTED, _PROFILES.format(name="profiles_3"), _MOVED)
        _execute(connection, _PROFILE_INDEXES, _RETRACTED_EVIDENCE)
    if version < 4:
        _execute(connection, _TOKENS)
    if version < 5:
        _execute(connection, _STEPS)
    connection.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", (SCHEMA_VERSION,))


def _execute(connection: SqliteConnection, *scripts: str) -> None:
    """Scripts without semicolons in their texts, inside the transaction that is open."""
    for script in scripts:
        for statement in script.split(";"):
            connection.execute(statement)


def _log_ahead(connection: SqliteConnection) -> None:
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


def _is_ours(connection: SqliteConnection) -> bool:
    """False = the file is empty. Asked in a transaction, because another process may be creating the tables."""
    found = connection.execute("PRAGMA application_id").fetchone()[0]
    if found == APPLICATION_ID:
        return True
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if found or tables:
        raise StoreFormatError("the file is a database of another application; choose another path for the store")
    return False
