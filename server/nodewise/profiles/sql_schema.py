"""The tables of a store, for all databases, and the upgrades from earlier versions."""

from __future__ import annotations

from string import Template
from types import MappingProxyType
from typing import Final

import structlog

from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.store import StoreFormatError

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "TABLES", "create_tables", "is_current", "upgrade_tables"]

_log = structlog.get_logger(__name__)

TABLES: Final = MappingProxyType(
    {
        "profiles": "key",
        "sessions": "key",
        "batches": "session_key, sequence_number",
        "commits": "profile_key, revision",
        "retractions": "profile_key, request_id",
        "retracted": "profile_key, number",
        "retracted_evidence": "profile_key, kind, name, revision",
        "traces": "key",
        "unreferenced": "content_sha256",
        "unscored": "key",
        "scores": "estimator, version",
        "tokens": "token_id",
        "step_reports": "profile_key, rank, begin_s",
        "step_hours": "profile_key, hour",
    }
)
"""Tables except ``meta``, each after those that it refers to, with the columns of its key."""
APPLICATION_ID: Final = 0x4E444F57
"""``NDOW``: distinguishes stores of Nodewise from other applications' databases."""
SCHEMA_VERSION: Final = 5

_DIALECTS: Final = MappingProxyType(
    {
        "sqlite": {
            "key": "INTEGER PRIMARY KEY AUTOINCREMENT",
            "bytes": "BLOB",
            "name": "TEXT",
            "by_key": "WITHOUT ROWID",
        },
        # Names are compared by their code points, whatever the database's locale.
        "postgresql": {
            "key": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
            "bytes": "BYTEA",
            "name": 'TEXT COLLATE "C"',
            "by_key": "",
        },
    }
)
_REFERENCES: Final = {
    "of_profile": "profile_key BIGINT NOT NULL REFERENCES profiles (key) ON DELETE CASCADE",
    "of_session": "session_key BIGINT NOT NULL REFERENCES sessions (key) ON DELETE CASCADE",
}

# Rows of `batches` are written once and never changed: `commits` and `retracted` state what counts, and a profile
# is the replay of both by revision. `profiles` and `sessions` hold derived values, so that an append reads no
# history. Keys are never used twice. A profile of revision 0 was never committed and does not exist for callers. A
# deleted one has a time of deletion and stays until it is purged; of rows with one name the newest counts. `changed` is
# the store's generation at the profile's last change: a transaction writes what it will count at its end.
_PROFILES: Final = """
CREATE TABLE profiles (
    key $key, profile_id $name NOT NULL, uid TEXT NOT NULL, revision BIGINT NOT NULL,
    last_number BIGINT NOT NULL, last_timing_number BIGINT NOT NULL, observations_count BIGINT NOT NULL,
    create_time_s DOUBLE PRECISION NOT NULL, update_time_s DOUBLE PRECISION NOT NULL,
    digest TEXT, facts $bytes NOT NULL,
    display_name TEXT NOT NULL DEFAULT '', labels TEXT NOT NULL DEFAULT '{}',
    delete_time_s DOUBLE PRECISION NOT NULL DEFAULT 0, purge_time_s DOUBLE PRECISION NOT NULL DEFAULT 0,
    changed BIGINT NOT NULL DEFAULT 0
);
"""
_PROFILE_INDEXES: Final = """
CREATE UNIQUE INDEX profiles_that_are ON profiles (profile_id) WHERE delete_time_s = 0;
CREATE INDEX profiles_by_name ON profiles (profile_id);
CREATE INDEX profiles_by_change ON profiles (changed);
CREATE INDEX profiles_to_purge ON profiles (purge_time_s) WHERE purge_time_s > 0;
"""
_EVIDENCE: Final = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL) $by_key;
CREATE TABLE sessions (
    key $key, $of_profile, session_id TEXT NOT NULL,
    durable BIGINT NOT NULL, committed BIGINT NOT NULL,
    staged_rows BIGINT NOT NULL, staged_content BIGINT NOT NULL, staged_facts $bytes NOT NULL,
    staged_timing_rows BIGINT NOT NULL DEFAULT 0,
    UNIQUE (profile_key, session_id)
);
CREATE TABLE batches (
    $of_session, sequence_number BIGINT NOT NULL, content_hash $bytes NOT NULL, payload $bytes NOT NULL,
    PRIMARY KEY (session_key, sequence_number)
);
CREATE TABLE commits (
    $of_profile, revision BIGINT NOT NULL, $of_session,
    first_sequence_number BIGINT NOT NULL, last_sequence_number BIGINT NOT NULL,
    first_observation_number BIGINT NOT NULL, rows BIGINT NOT NULL, time_s DOUBLE PRECISION NOT NULL,
    timing_rows BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (profile_key, revision)
) $by_key;
CREATE INDEX commits_by_session ON commits (session_key);
CREATE TABLE retractions (
    $of_profile, request_id TEXT NOT NULL, revision BIGINT NOT NULL,
    content_hash $bytes NOT NULL, reason TEXT NOT NULL, time_s DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (profile_key, request_id)
) $by_key;
CREATE TABLE retracted (
    $of_profile, number BIGINT NOT NULL, revision BIGINT NOT NULL, PRIMARY KEY (profile_key, number)
) $by_key;
CREATE TABLE traces (
    key $key, $of_session, trace_id TEXT NOT NULL, format TEXT NOT NULL,
    rank BIGINT NOT NULL, world_size BIGINT NOT NULL, size_bytes BIGINT NOT NULL,
    finished_sequence_number BIGINT NOT NULL, content_sha256 TEXT,
    UNIQUE (session_key, trace_id)
);
CREATE INDEX traces_by_content ON traces (content_sha256) WHERE content_sha256 IS NOT NULL;
CREATE TABLE unreferenced (content_sha256 TEXT PRIMARY KEY) $by_key;
"""
# The commit's transaction inserts a row of `unscored`; the transaction that adds to `scores` deletes it.
_SCORES: Final = """
CREATE TABLE unscored (
    key $key, $of_profile, revision BIGINT NOT NULL, first_number BIGINT NOT NULL, last_number BIGINT NOT NULL,
    claimed_until_s DOUBLE PRECISION NOT NULL DEFAULT 0, attempts BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX unscored_by_profile ON unscored (profile_key);
CREATE TABLE scores (
    estimator $name NOT NULL, version $name NOT NULL, observations BIGINT NOT NULL,
    absolute_log_error DOUBLE PRECISION NOT NULL, log_error DOUBLE PRECISION NOT NULL,
    intervals BIGINT NOT NULL, covered BIGINT NOT NULL, unanswered BIGINT NOT NULL,
    update_time_s DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (estimator, version)
) $by_key;
"""
# Phase timings by number, facts by path, traces by hash. Evidence that is sent again counts from its commit on, so an
# entry retracts what was committed up to its own revision.
_RETRACTED_EVIDENCE: Final = """
CREATE TABLE retracted_evidence (
    $of_profile, kind TEXT NOT NULL, name TEXT NOT NULL, revision BIGINT NOT NULL,
    PRIMARY KEY (profile_key, kind, name, revision)
) $by_key;
"""
# Bearer tokens, without their secrets; times of 0 = never. `tokens` in `meta` counts their changes.
_TOKENS: Final = """
CREATE TABLE tokens (
    token_id $name PRIMARY KEY, secret_sha256 TEXT NOT NULL, description TEXT NOT NULL,
    roles TEXT NOT NULL, prefixes TEXT NOT NULL, create_time_s DOUBLE PRECISION NOT NULL,
    expire_time_s DOUBLE PRECISION NOT NULL, revoke_time_s DOUBLE PRECISION NOT NULL
) $by_key;
INSERT INTO meta VALUES ('tokens', 0);
"""
# Times of steps that running jobs report. A report is the windows of one rank, as columns of numbers; an hour is the
# sum over ranks.
_STEPS: Final = """
CREATE TABLE step_reports (
    $of_profile, rank BIGINT NOT NULL, begin_s DOUBLE PRECISION NOT NULL, node BIGINT NOT NULL,
    payload $bytes NOT NULL,
    PRIMARY KEY (profile_key, rank, begin_s)
) $by_key;
CREATE TABLE step_hours (
    $of_profile, hour BIGINT NOT NULL, steps BIGINT NOT NULL, seconds DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (profile_key, hour)
) $by_key;
"""
# From version 2, which only SQLite had. It did not count phase timings, so they are counted once from the batches. The
# table of profiles is rebuilt, because a name was unique in it; its keys do not change.
_FROM_2: Final = """
ALTER TABLE commits ADD COLUMN timing_rows BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN staged_timing_rows BIGINT NOT NULL DEFAULT 0;
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
_MOVED_FROM_2: Final = """
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
_NEW: Final = (_PROFILES, _PROFILE_INDEXES, _EVIDENCE, _SCORES, _RETRACTED_EVIDENCE, _TOKENS, _STEPS)
_UPGRADES: Final = {
    2: (_SCORES,),
    3: (
        _FROM_2,
        _PROFILES.replace("TABLE profiles", "TABLE profiles_3"),
        _MOVED_FROM_2,
        _PROFILE_INDEXES,
        _RETRACTED_EVIDENCE,
    ),
    4: (_TOKENS,),
    5: (_STEPS,),
}
"""Upgrades by version. Databases of PostgreSQL begin with version 3."""


def create_tables(connection: Connection) -> None:
    """Create the tables in an empty database, inside the open transaction."""
    _run(connection, *_NEW)
    rows = [("application_id", APPLICATION_ID), ("schema_version", SCHEMA_VERSION), ("generation", 0)]
    connection.executemany("INSERT INTO meta VALUES (?, ?)", rows)


def upgrade_tables(connection: Connection) -> None:
    """Upgrade the tables, inside the open transaction.

    Raises
    ------
    StoreFormatError
        If the tables are of a version that this release does not know; nothing was written then.
    """
    version = _version(connection)
    if version is None or version > SCHEMA_VERSION:
        raise StoreFormatError(
            f"it has schema {version}, this release supports {SCHEMA_VERSION}; open it with the release that wrote it"
        )
    if version < SCHEMA_VERSION:
        for later in range(version + 1, SCHEMA_VERSION + 1):
            _run(connection, *_UPGRADES[later])
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", (SCHEMA_VERSION,))
        _log.info("store_upgraded", schema_before=version, schema=SCHEMA_VERSION)


def is_current(connection: Connection) -> bool:
    """Whether the tables are of this release's version."""
    return _version(connection) == SCHEMA_VERSION


def _version(connection: Connection) -> int | None:
    row = connection.execute("SELECT value FROM meta WHERE name = 'schema_version'").fetchone()
    return None if row is None else int(row[0])


def _run(connection: Connection, *scripts: str) -> None:
    """Run scripts, which hold no semicolons in their texts."""
    words = _DIALECTS[connection.dialect] | _REFERENCES
    for script in scripts:
        for statement in filter(str.strip, Template(script).safe_substitute(words).split(";")):
            connection.execute(statement)
