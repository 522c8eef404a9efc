"""Removals from the store's tables: retractions, deletions, and purges of deleted profiles."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from operator import attrgetter
from typing import Any

from nodewise.domain.errors import NodewiseError, Reason, invalid_field
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.codec import PayloadError
from nodewise.profiles.quotas import BATCH_BYTES, RETRACTED_BYTES, Counting, Usage, usage_of_profile
from nodewise.profiles.sql_reads import ProfileRow
from nodewise.profiles.sql_rows import Connection, change_profile, insert
from nodewise.profiles.store import (
    DeleteRequest,
    Evidence,
    ProfileSummary,
    RetractRequest,
    UndeleteRequest,
    profile_not_found,
)
from nodewise.profiles.traces import stage_name

__all__ = ["delete", "purge", "retract", "undelete"]

_NAMED = 20
"""Most pieces of evidence that an error names."""


def retract(
    connection: Connection, request: RetractRequest, now_s: float, counting: Counting
) -> tuple[ProfileSummary, bool]:
    """The profile afterwards, and whether it changed."""
    row = _committed_row(connection, request.profile_id)
    if not request.evidence:
        raise invalid_field("observation_numbers", "must name an observation, or another list must name evidence")
    content_hash = _hash_of(request.evidence)
    earlier = connection.execute(
        "SELECT content_hash FROM retractions WHERE profile_key = ? AND request_id = ?", (row.key, request.request_id)
    ).fetchone()
    if earlier is not None and earlier[0] != content_hash:
        raise NodewiseError(
            Reason.REQUEST_ID_REUSED,
            "this request_id was used to retract other evidence; use a new request_id",
            {"request_id": request.request_id},
        )
    if earlier is None:
        _put_retraction(connection, row, request, content_hash, now_s)
        counting.add(request.profile_id, _growth(request))
        row = _committed_row(connection, request.profile_id)
    return reads.summary(row, reads.digest_of(connection, row)), earlier is None


def _growth(request: RetractRequest) -> Usage:
    """Bytes that a retraction adds. A retraction is allowed above every quota."""
    evidence = request.evidence
    numbers = len(evidence.observations) + len(evidence.phase_timings)
    names = len(evidence.facts) + len(evidence.traces) + len(evidence.shared_runs)
    return Usage(stored_bytes=BATCH_BYTES + len(request.reason) + RETRACTED_BYTES * (numbers + names))


def _hash_of(evidence: Evidence) -> bytes:
    """Hash of evidence; for observations alone that of the first release, so that its requests can be repeated."""
    names: Any = list(evidence.observations)
    if evidence.phase_timings or evidence.facts or evidence.traces:
        names = [names, evidence.phase_timings, evidence.facts, evidence.traces]
    if evidence.shared_runs:
        names = [names, evidence.shared_runs]
    return hashlib.sha256(repr(names).encode()).digest()


def _put_retraction(
    connection: Connection, row: ProfileRow, request: RetractRequest, content_hash: bytes, now_s: float
) -> None:
    evidence, revision = request.evidence, row.revision + 1
    _check(connection, row, evidence)
    insert(
        connection,
        "retractions",
        profile_key=row.key,
        request_id=request.request_id,
        revision=revision,
        content_hash=content_hash,
        reason=request.reason,
        time_s=now_s,
    )
    connection.executemany(
        "INSERT INTO retracted VALUES (?, ?, ?)", [(row.key, number, revision) for number in evidence.observations]
    )
    others = (
        ("phase_timing", evidence.phase_timings),
        ("fact", evidence.facts),
        ("trace", evidence.traces),
        ("shared_run", evidence.shared_runs),
    )
    connection.executemany(
        "INSERT INTO retracted_evidence VALUES (?, ?, ?, ?)",
        [(row.key, kind, name, revision) for kind, names in others for name in names],
    )
    facts = reads.stated_in(row.facts)
    for path in evidence.facts:
        facts = facts.without(path)
    change_profile(
        connection,
        row.key,
        revision=revision,
        observations_count=row.observations_count - len(evidence.observations),
        update_time_s=now_s,
        digest=None,
        facts=reads.stated_out(facts),
    )


def _check(connection: Connection, row: ProfileRow, evidence: Evidence) -> None:
    """Refuse evidence that the profile does not hold, or no longer holds."""
    missing: dict[str, list[Any]] = {}
    if evidence.observations:
        rows = connection.execute("SELECT number FROM retracted WHERE profile_key = ?", (row.key,))
        retracted_numbers = {number for (number,) in rows}
        missing["observation_numbers"] = _absent(evidence.observations, row.last_number, retracted_numbers)
    if evidence.phase_timings:
        rows = connection.execute(
            "SELECT name FROM retracted_evidence WHERE profile_key = ? AND kind = 'phase_timing'", (row.key,)
        )
        retracted_numbers = {int(number) for (number,) in rows}
        missing["phase_timing_numbers"] = _absent(evidence.phase_timings, row.last_timing_number, retracted_numbers)
    if evidence.facts:
        facts = reads.stated_in(row.facts)
        missing["fact_paths"] = [path for path in evidence.facts if attrgetter(path)(facts) is None]
    if evidence.traces:
        hashes = {trace.content_sha256 for trace in reads.replay_profile(connection, row, row.profile_id, None).traces}
        missing["trace_sha256s"] = [sha256 for sha256 in evidence.traces if sha256 not in hashes]
    if evidence.shared_runs:
        runs = reads.replay_profile(connection, row, row.profile_id, None).shared_runs
        known_runs = {run.content_sha256 for run in runs}
        missing["shared_run_sha256s"] = [sha256 for sha256 in evidence.shared_runs if sha256 not in known_runs]
    absent = {kind: names for kind, names in missing.items() if names}
    if absent:
        texts = {kind: ",".join(str(name) for name in names[:_NAMED]) for kind, names in absent.items()}
        more = any(len(names) > _NAMED for names in absent.values())
        text = ", ".join(f"{kind} {names}" for kind, names in texts.items())
        raise NodewiseError(
            Reason.EVIDENCE_NOT_FOUND,
            f"the profile does not hold {text}{' and others' if more else ''}",
            {"profile_id": row.profile_id, **texts},
        )


def _absent(numbers: tuple[int, ...], last: int, retracted_numbers: set[int]) -> list[int]:
    return [number for number in numbers if not 1 <= number <= last or number in retracted_numbers]


def delete(connection: Connection, request: DeleteRequest, now_s: float, kept_s: float) -> tuple[ProfileSummary, bool]:
    """The profile with the times of its deletion, and whether this request deleted it."""
    row = reads.profile_row(connection, request.profile_id)
    if row is None or not row.revision or request.etag not in (None, _etag(row)):
        for deleted_row in reads.deleted_rows(connection, request.profile_id, now_s):
            if _etag(deleted_row) == request.etag:
                return reads.summary(deleted_row, _last_digest(connection, deleted_row)), False
        if row is None or not row.revision:
            raise profile_not_found(request.profile_id)
        raise NodewiseError(
            Reason.ETAG_MISMATCH,
            f"the profile's etag is now {_etag(row)!r}",
            {"profile_id": request.profile_id, "etag": _etag(row)},
        )
    digest = _last_digest(connection, row)
    connection.execute("DELETE FROM unscored WHERE profile_key = ?", (row.key,))
    times: dict[str, Any] = {"delete_time_s": now_s, "purge_time_s": now_s + kept_s}
    change_profile(connection, row.key, digest=reads.memo(digest), **times)
    return replace(reads.summary(row, digest), **times), True


def undelete(connection: Connection, request: UndeleteRequest, now_s: float) -> tuple[ProfileSummary, bool]:
    """The undeleted profile, and whether it was deleted before."""
    row = reads.profile_row(connection, request.profile_id)
    if row is not None and row.revision:
        return reads.summary(row, reads.digest_of(connection, row)), False
    rows = reads.deleted_rows(connection, request.profile_id, now_s)
    if row is not None or not rows:  # a new profile of that name exists, with acknowledged batches
        raise profile_not_found(request.profile_id)
    change_profile(connection, rows[0].key, delete_time_s=0, purge_time_s=0)
    back = replace(rows[0], delete_time_s=0.0, purge_time_s=0.0)
    return reads.summary(back, _last_digest(connection, back)), True


def purge(connection: Connection, now_s: float, counting: Counting) -> tuple[list[str], bool]:
    """Purge old deleted profiles; returns stages of traces to discard, and whether traces may be orphaned."""
    discards: list[str] = []
    has_orphans = False
    for key, uid, profile_id in connection.execute(
        "SELECT key, uid, profile_id FROM profiles WHERE purge_time_s > 0 AND purge_time_s <= ?", (now_s,)
    ).fetchall():
        counting.add(profile_id, -usage_of_profile(connection, key))
        for session_id, trace_id, sha256 in connection.execute(
            "SELECT s.session_id, t.trace_id, t.content_sha256 FROM sessions s JOIN traces t ON t.session_key = s.key"
            " WHERE s.profile_key = ?",
            (key,),
        ).fetchall():
            discards.append(stage_name(uid, session_id, trace_id))
            if sha256 is not None:
                connection.execute("INSERT INTO unreferenced VALUES (?) ON CONFLICT DO NOTHING", (sha256,))
                has_orphans = True
        connection.execute("DELETE FROM profiles WHERE key = ?", (key,))
    return discards, has_orphans


def _last_digest(connection: Connection, row: ProfileRow) -> str:
    """The digest; empty for a damaged profile, which can still be deleted."""
    try:
        return reads.digest_of(connection, row)
    except PayloadError:
        return ""


def _etag(row: ProfileRow) -> str:
    return f"{row.uid}-{row.revision}"


def _committed_row(connection: Connection, profile_id: str) -> ProfileRow:
    row = reads.profile_row(connection, profile_id)
    if row is None or not row.revision:
        raise profile_not_found(profile_id)
    return row
