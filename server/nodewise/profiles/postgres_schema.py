"""The tables of the PostgreSQL store, and how they come to be."""

from __future__ import annotations

from typing import Any, Final

import psycopg

from nodewise.profiles.sqlite_schema import APPLICATION_ID, SCHEMA_VERSION
from nodewise.profiles.store import StoreFormatError

__all__ = ["CHANNEL", "prepare"]

CHANNEL: Final = "nodewise_generation"
"""On which every change of a profile is told, with the store's generation."""

# The same tables as in a SQLite file, which says what they are for; versions count alike. Names are compared by their
# code points, whatever the database's locale. `rows` and `key` are no reserved words here.
_TABLES: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE profiles (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_id TEXT COLLATE "C" NOT NULL,
    uid TEXT NOT NULL,
    revision BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    last_timing_number BIGINT NOT NULL,
    observations_count BIGINT NOT NULL,
    create_time_s DOUBLE PRECISION NOT NULL,
    update_time_s DOUBLE PRECISION NOT NULL,
    digest TEXT,
    facts BYTEA NOT NULL,
    display_name TEXT NOT NULL DEFAULT '',
    labels TEXT NOT NULL DEFAULT '{}',
    delete_time_s DOUBLE PRECISION NOT NULL DEFAULT 0,
    purge_time_s DOUBLE PRECISION NOT NULL DEFAULT 0,
    changed BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX profiles_that_are ON profiles (profile_id) WHERE delete_time_s = 0;
CREATE INDEX profiles_by_name ON profiles (profile_id);
CREATE INDEX profiles_by_change ON profiles (changed);
CREATE INDEX profiles_to_purge ON profiles (purge_time_s) WHERE purge_time_s > 0;
CREATE TABLE sessions (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    session_id TEXT NOT NULL,
    durable BIGINT NOT NULL,
    committed BIGINT NOT NULL,
    staged_rows BIGINT NOT NULL,
    staged_content BIGINT NOT NULL,
    staged_facts BYTEA NOT NULL,
    staged_timing_rows BIGINT NOT NULL DEFAULT 0,
    UNIQUE (profile_key, session_id)
);
CREATE TABLE batches (
    session_key BIGINT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    sequence_number BIGINT NOT NULL,
    content_hash BYTEA NOT NULL,
    payload BYTEA NOT NULL,
    PRIMARY KEY (session_key, sequence_number)
);
CREATE TABLE commits (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    session_key BIGINT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    first_sequence_number BIGINT NOT NULL,
    last_sequence_number BIGINT NOT NULL,
    first_observation_number BIGINT NOT NULL,
    rows BIGINT NOT NULL,
    time_s DOUBLE PRECISION NOT NULL,
    timing_rows BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (profile_key, revision)
);
CREATE INDEX commits_by_session ON commits (session_key);
CREATE TABLE retractions (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    request_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    content_hash BYTEA NOT NULL,
    reason TEXT NOT NULL,
    time_s DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (profile_key, request_id)
);
CREATE TABLE retracted (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (profile_key, number)
);
CREATE TABLE retracted_evidence (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (profile_key, kind, name, revision)
);
CREATE TABLE traces (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_key BIGINT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    trace_id TEXT NOT NULL,
    format TEXT NOT NULL,
    rank BIGINT NOT NULL,
    world_size BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    finished_sequence_number BIGINT NOT NULL,
    content_sha256 TEXT,
    UNIQUE (session_key, trace_id)
);
CREATE INDEX traces_by_content ON traces (content_sha256) WHERE content_sha256 IS NOT NULL;
CREATE TABLE unreferenced (content_sha256 TEXT PRIMARY KEY);
CREATE TABLE unscored (
    key BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    revision BIGINT NOT NULL,
    first_number BIGINT NOT NULL,
    last_number BIGINT NOT NULL,
    claimed_until_s DOUBLE PRECISION NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX unscored_by_profile ON unscored (profile_key);
CREATE TABLE scores (
    estimator TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    observations BIGINT NOT NULL,
    absolute_log_error DOUBLE PRECISION NOT NULL,
    log_error DOUBLE PRECISION NOT NULL,
    intervals BIGINT NOT NULL,
    covered BIGINT NOT NULL,
    unanswered BIGINT NOT NULL,
    update_time_s DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (estimator, version)
);
"""

# Since version 4.
_TOKENS: Final = """
CREATE TABLE tokens (
    token_id TEXT COLLATE "C" PRIMARY KEY,
    secret_sha256 TEXT NOT NULL,
    description TEXT NOT NULL,
    roles TEXT NOT NULL,
    prefixes TEXT NOT NULL,
    create_time_s DOUBLE PRECISION NOT NULL,
    expire_time_s DOUBLE PRECISION NOT NULL,
    revoke_time_s DOUBLE PRECISION NOT NULL
);
INSERT INTO meta VALUES ('tokens', 0);
"""
# Since version 5.
_STEPS: Final = """
CREATE TABLE step_reports (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    rank BIGINT NOT NULL,
    begin_s DOUBLE PRECISION NOT NULL,
    node BIGINT NOT NULL,
    payload BYTEA NOT NULL,
    PRIMARY KEY (profile_key, rank, begin_s)
);
CREATE TABLE step_hours (
    profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE,
    hour BIGINT NOT NULL,
    steps BIGINT NOT NULL,
    seconds DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (profile_key, hour)
);
"""
_FIRST_VERSION: Final = 3
"""Of a database."""


# The compression that is the default takes more of a processor than all else the database does for a batch.
_HAS_LZ4: Final = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"


def prepare(connection: psycopg.Connection[Any]) -> None:
    """Create our tables in a database that has none, and add what later versions brought; whoever else does waits.

    Raises
    ------
    StoreFormatError
        If the database holds other tables, or ours of a schema that this release does not know; nothing was written
        then.
    """
    (encoding,) = _one(connection, "SHOW server_encoding")
    if encoding != "UTF8":
        raise StoreFormatError(f"the database is encoded in {encoding}; make one with ENCODING 'UTF8'")
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (APPLICATION_ID,))
        (tables,) = _one(connection, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()")
        if not tables:
            connection.execute(_TABLES)
            connection.execute(_TOKENS)
            connection.execute(_STEPS)
            if _one(connection, _HAS_LZ4) == (True,):
                connection.execute("ALTER TABLE batches ALTER COLUMN payload SET COMPRESSION lz4")
            for name, value in (
                ("application_id", APPLICATION_ID),
                ("schema_version", SCHEMA_VERSION),
                ("generation", 0),
            ):
                connection.execute("INSERT INTO meta VALUES (%s, %s)", (name, value))
        found = dict(connection.execute("SELECT name, value FROM meta").fetchall()) if _has_meta(connection) else {}
        if found.get("application_id") == APPLICATION_ID:
            found["schema_version"] = _upgraded(connection, found["schema_version"])
    if found.get("application_id") != APPLICATION_ID:
        raise StoreFormatError("the database holds another application's tables; choose another one for the store")
    if found["schema_version"] != SCHEMA_VERSION:
        raise StoreFormatError(
            f"the database has schema {found['schema_version']} and this release knows {SCHEMA_VERSION}:"
            " open it with the release that wrote it"
        )


def _upgraded(connection: psycopg.Connection[Any], version: int) -> int:
    """Add what later versions brought, inside the transaction that is open; returns the version."""
    if not _FIRST_VERSION <= version < SCHEMA_VERSION:
        return version
    if version < 4:
        connection.execute(_TOKENS)
    if version < 5:
        connection.execute(_STEPS)
    connection.execute("UPDATE meta SET value = %s WHERE name = 'schema_version'", (SCHEMA_VERSION,))
    return SCHEMA_VERSION


def _has_meta(connection: psycopg.Connection[Any]) -> bool:
    columns = (
        "SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()"
        " AND table_name = 'meta' AND (column_name, data_type) IN (('name', 'text'), ('value', 'bigint'))"
    )
    return bool(_one(connection, columns) == (2,))


def _one(connection: psycopg.Connection[Any], statement: str) -> Any:
    return connection.execute(statement).fetchone()
