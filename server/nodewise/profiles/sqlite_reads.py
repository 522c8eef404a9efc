"""Reading profiles from the SQLite file: replay of commits and retractions by revision."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import orjson

from nodewise.domain.columns import Ints, freeze
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.workload import Network, Workload, merged_facts
from nodewise.profiles.codec import PayloadError, facts_from_json, facts_from_payload, facts_to_json, runs_from_payloads
from nodewise.profiles.digest import DIGEST_VERSION, content_digest
from nodewise.profiles.store import profile_not_found

__all__ = [
    "ProfileRow",
    "facts_in",
    "facts_out",
    "memo",
    "memorised",
    "profile_row",
    "profile_rows",
    "replayed",
    "row_at",
]

_ROW: Final = """
SELECT key, profile_id, uid, revision, last_number, observations_count, create_time_s, update_time_s, digest, facts
FROM profiles WHERE profile_id = ?"""
_ROWS: Final = """
SELECT key, profile_id, uid, revision, last_number, observations_count, create_time_s, update_time_s, digest, facts
FROM profiles WHERE profile_id > ? AND profile_id >= ? AND profile_id < ? AND revision > 0
ORDER BY profile_id LIMIT ?"""
_PAYLOADS: Final = """
SELECT b.payload FROM commits c JOIN batches b
    ON b.session_key = c.session_key AND b.sequence_number BETWEEN c.first_sequence_number AND c.last_sequence_number
WHERE c.profile_key = ? AND c.revision > ? AND c.revision <= ? ORDER BY c.revision, b.sequence_number"""
_REFERENCES: Final = """
SELECT t.content_sha256, t.format, t.rank, t.world_size, t.size_bytes FROM commits c JOIN traces t
    ON t.session_key = c.session_key
    AND t.finished_sequence_number BETWEEN c.first_sequence_number AND c.last_sequence_number
WHERE c.profile_key = ? AND c.revision > ? AND c.revision <= ?
ORDER BY c.revision, t.finished_sequence_number, t.key"""
_RETRACTED: Final = "SELECT number FROM retracted WHERE profile_key = ? AND revision > ? AND revision <= ?"
_LAST_COMMIT: Final = """
SELECT first_observation_number + rows - 1, time_s FROM commits
WHERE profile_key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1"""
_RETRACTIONS: Final = "SELECT max(time_s) FROM retractions WHERE profile_key = ? AND revision <= ?"


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One row of ``profiles``."""

    key: int
    profile_id: str
    uid: str
    revision: int
    last_number: int
    observations_count: int
    create_time_s: float
    update_time_s: float
    digest: str | None
    facts: bytes


def facts_out(workload: Workload, network: Network) -> bytes:
    """Facts as stored beside a profile or a session."""
    if workload == Workload() and network == Network():
        return b""
    return orjson.dumps([facts_to_json(workload, "workload"), facts_to_json(network, "network")])


def facts_in(stored: bytes) -> tuple[Workload, Network]:
    """What :func:`facts_out` stored."""
    if not stored:
        return Workload(), Network()
    workload, network = orjson.loads(stored)
    return facts_from_json(Workload, workload), facts_from_json(Network, network)


def memo(digest: str) -> str:
    """A digest as it is remembered in the file, with the version of how it is computed."""
    return f"{DIGEST_VERSION}:{digest}"


def memorised(stored: str | None) -> str | None:
    """The digest of a memo that is still valid."""
    version, _, digest = (stored or "").partition(":")
    return digest if version == str(DIGEST_VERSION) else None


def profile_row(connection: sqlite3.Connection, profile_id: str) -> ProfileRow | None:
    """The row of a name, also if nothing was committed yet (revision 0)."""
    row = connection.execute(_ROW, (profile_id,)).fetchone()
    return None if row is None else ProfileRow(*row)


def profile_rows(connection: sqlite3.Connection, prefix: str, after: str, limit: int) -> list[ProfileRow]:
    """Committed profiles by name, in code point order."""
    rows = connection.execute(_ROWS, (after, prefix, prefix + chr(0x10FFFF), limit))
    return [ProfileRow(*row) for row in rows]


def row_at(connection: sqlite3.Connection, row: ProfileRow, revision: int, known: Profile | None) -> ProfileRow:
    """The row of a profile as it was at an earlier revision; ``known`` is the profile at some revision.

    Raises
    ------
    NodewiseError
        PROFILE_NOT_FOUND for a revision that there is not.
    PayloadError
        For stored bytes that this release cannot read.
    """
    if not 1 <= revision <= row.revision:
        raise profile_not_found(row.profile_id)
    last_number, time_s = connection.execute(_LAST_COMMIT, (row.key, revision)).fetchone()
    retracted = len(connection.execute(_RETRACTED, (row.key, 0, revision)).fetchall())
    (retracted_s,) = connection.execute(_RETRACTIONS, (row.key, revision)).fetchone()
    workload, network, since = Workload(), Network(), 0
    if known is not None and known.uid == row.uid and known.revision <= revision:
        workload, network, since = known.workload, known.network, known.revision
    # Commits add facts and never change them, so all that were committed until then agree.
    for (payload,) in connection.execute(_PAYLOADS, (row.key, since, revision)):
        more_workload, more_network = facts_from_payload(payload)
        workload = merged_facts(workload, more_workload, "workload")
        network = merged_facts(network, more_network, "network")
    return replace(
        row,
        revision=revision,
        last_number=last_number,
        observations_count=last_number - retracted,
        update_time_s=max(time_s, retracted_s or 0.0),
        digest=None,
        facts=facts_out(workload, network),
    )


def replayed(connection: sqlite3.Connection, row: ProfileRow | None, profile_id: str, known: Profile | None) -> Profile:
    """The profile of a row, read in the transaction that read the row.

    Raises
    ------
    NodewiseError
        PROFILE_NOT_FOUND if there is no row, or nothing was committed.
    PayloadError
        For stored bytes that this release cannot read.
    """
    if row is None or not row.revision:
        raise profile_not_found(profile_id)
    if known is None or known.uid != row.uid or known.revision > row.revision:
        known = Profile(profile_id=row.profile_id, uid=row.uid)
    elif known.revision == row.revision:
        return known
    since = (row.key, known.revision, row.revision)
    timings, observations = runs_from_payloads(payload for (payload,) in connection.execute(_PAYLOADS, since))
    if len(observations):
        first = row.last_number - len(observations) + 1
        numbers: Ints = freeze(np.arange(first, row.last_number + 1, dtype=np.int64))
        observations = replace(observations, number=numbers)
    observations = Observations.concatenated((known.observations, observations))
    if gone := [number for (number,) in connection.execute(_RETRACTED, since)]:
        kept = np.flatnonzero(np.isin(observations.number, gone, invert=True))
        observations = observations.take(freeze(kept.astype(np.int64, copy=False)))
    if len(observations) != row.observations_count:
        raise PayloadError("the observations stored are not those counted")
    references = [
        TraceReference(content_sha256=sha256, format=form, rank=rank, world_size=world_size, size_bytes=size)
        for sha256, form, rank, world_size, size in connection.execute(_REFERENCES, since)
    ]
    workload, network = facts_in(row.facts)
    profile = Profile(
        profile_id=row.profile_id,
        uid=row.uid,
        revision=row.revision,
        workload=workload,
        network=network,
        phase_timings=PhaseTimings.concatenated((known.phase_timings, timings)),
        observations=observations,
        traces=tuple(dict.fromkeys((*known.traces, *references))),
        create_time_s=row.create_time_s,
        update_time_s=row.update_time_s,
    )
    return replace(profile, digest=content_digest(profile))
