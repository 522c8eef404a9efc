"""Reading profiles from the store's tables: replay of commits and retractions by revision."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any, Final

import numpy as np
import orjson

from nodewise.domain.columns import Ints, freeze
from nodewise.domain.profile import Observations, PhaseTimings, Profile, TraceReference
from nodewise.domain.sharing import SharedDeviceRun
from nodewise.domain.workload import Network, Workload
from nodewise.profiles.codec import (
    PayloadError,
    facts_from_json,
    facts_to_json,
    runs_from_payloads,
    shared_runs_from_payload,
    stated_from_payload,
)
from nodewise.profiles.digest import DIGEST_VERSION, content_digest
from nodewise.profiles.ingest import ProfileState
from nodewise.profiles.naming import UNNAMED, Naming
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.stated_facts import NOTHING, StatedFacts
from nodewise.profiles.store import Label, ProfileSummary, profile_not_found, revision_not_found

__all__ = [
    "ProfileRow",
    "changed_rows",
    "deleted_rows",
    "digest_of",
    "memo",
    "profile_row",
    "profile_rows",
    "replay_profile",
    "row_at",
    "row_of",
    "stated_columns",
    "stated_in",
    "stated_out",
    "summary",
    "valid_memo",
]


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One row of ``profiles``."""

    key: int
    profile_id: str
    uid: str
    revision: int
    last_number: int
    last_timing_number: int
    observations_count: int
    create_time_s: float
    update_time_s: float
    digest: str | None
    facts: bytes
    display_name: str
    labels: str
    delete_time_s: float
    purge_time_s: float

    @property
    def state(self) -> ProfileState:
        """The state of the profile before an append."""
        naming = Naming(display_name=self.display_name, labels=orjson.loads(self.labels))
        return ProfileState(
            revision=self.revision,
            stated=replace(stated_in(self.facts), naming=naming),
            last_number=self.last_number,
            last_timing_number=self.last_timing_number,
            observations_count=self.observations_count,
        )


_SELECT: Final = f"SELECT {', '.join(f.name for f in fields(ProfileRow))} FROM profiles p"  # noqa: S608  # names are the schema's
_LIVE: Final = "delete_time_s = 0"
_NEWEST: Final = "NOT EXISTS (SELECT 1 FROM profiles o WHERE o.profile_id = p.profile_id AND o.key > p.key)"
_ROW: Final = f"{_SELECT} WHERE profile_id = ? AND {_LIVE}"
_DELETED: Final = f"{_SELECT} WHERE profile_id = ? AND revision > 0 AND purge_time_s > ? ORDER BY key DESC"
_ROWS: Final = f"{_SELECT} WHERE profile_id > ? AND profile_id >= ? AND profile_id < ? AND revision > 0"
_CHANGED: Final = f"{_SELECT} WHERE changed > ? AND substr(profile_id, 1, ?) = ? AND revision > 0"
_NAMES_CHANGED: Final = "SELECT profile_id FROM profiles WHERE changed > ?"
"""Without an order, a range of names or DISTINCT, for which SQLite would read all profiles by another index."""
_PAYLOADS: Final = """
SELECT b.payload, c.revision, b.content_hash FROM commits c JOIN batches b
    ON b.session_key = c.session_key AND b.sequence_number BETWEEN c.first_sequence_number AND c.last_sequence_number
WHERE c.profile_key = ? AND c.revision > ? AND c.revision <= ? ORDER BY c.revision, b.sequence_number"""
_REFERENCES: Final = """
SELECT t.content_sha256, t.format, t.rank, t.world_size, t.size_bytes, c.revision FROM commits c JOIN traces t
    ON t.session_key = c.session_key
    AND t.finished_sequence_number BETWEEN c.first_sequence_number AND c.last_sequence_number
WHERE c.profile_key = ? AND c.revision > ? AND c.revision <= ?
ORDER BY c.revision, t.finished_sequence_number, t.key"""
_RETRACTED: Final = "SELECT number FROM retracted WHERE profile_key = ? AND revision > ? AND revision <= ?"
_EVIDENCE: Final = """
SELECT name, max(revision) FROM retracted_evidence WHERE profile_key = ? AND kind = ? AND revision > ? AND revision <= ?
GROUP BY name"""
_LAST_COMMIT: Final = """
SELECT first_observation_number + rows - 1, time_s FROM commits
WHERE profile_key = ? AND revision <= ? ORDER BY revision DESC LIMIT 1"""
_TIMING_ROWS: Final = "SELECT coalesce(sum(timing_rows), 0) FROM commits WHERE profile_key = ? AND revision <= ?"
_RETRACTIONS: Final = "SELECT max(time_s) FROM retractions WHERE profile_key = ? AND revision <= ?"


def stated_out(stated: StatedFacts) -> bytes:
    """The stored form of a profile's facts, or of a session's facts and names."""
    if not stated:
        return b""
    facts: list[Any] = [facts_to_json(stated.workload, "workload"), facts_to_json(stated.network, "network")]
    naming = stated.naming
    return orjson.dumps([*facts, [naming.display_name, dict(naming.labels)]] if naming else facts)


def stated_in(data: bytes) -> StatedFacts:
    """Facts from their stored form."""
    if not data:
        return NOTHING
    workload, network, *names = orjson.loads(data)
    return StatedFacts(
        workload=facts_from_json(Workload, workload),
        network=facts_from_json(Network, network),
        naming=Naming(display_name=names[0][0], labels=names[0][1]) if names else UNNAMED,
    )


def stated_columns(facts: StatedFacts) -> dict[str, Any]:
    """Facts and names as columns of ``profiles``."""
    return {
        "facts": stated_out(replace(facts, naming=UNNAMED)),
        "display_name": facts.naming.display_name or "",
        "labels": orjson.dumps(dict(facts.naming.labels), option=orjson.OPT_SORT_KEYS).decode(),
    }


def summary(row: ProfileRow, digest: str) -> ProfileSummary:
    """The summary of a profile, for listings."""
    own = {f.name: getattr(row, f.name) for f in fields(ProfileSummary)}
    return ProfileSummary(**own | {"digest": digest, "labels": orjson.loads(row.labels)})


def memo(digest: str) -> str:
    """The stored form of a digest, with the version of its computation."""
    return f"{DIGEST_VERSION}:{digest}"


def valid_memo(memo: str | None) -> str | None:
    """The digest of a stored form, if its version is current."""
    version, _, digest = (memo or "").partition(":")
    return digest if version == str(DIGEST_VERSION) else None


def profile_row(connection: Connection, profile_id: str) -> ProfileRow | None:
    """The row of a profile by name, also before its first commit (revision 0); a deleted profile has none."""
    row = connection.execute(_ROW, (profile_id,)).fetchone()
    return None if row is None else ProfileRow(*row)


def row_of(connection: Connection, key: int) -> ProfileRow:
    """The row of an existing key."""
    return ProfileRow(*connection.execute(f"{_SELECT} WHERE key = ?", (key,)).fetchone())


def profile_rows(
    connection: Connection,
    prefix: str,
    after: str,
    limit: int,
    labels: Sequence[Label] = (),
    deleted_at_s: float | None = None,
) -> list[ProfileRow]:
    """Committed profiles by name, in code point order; with a time also deleted ones that can be undeleted then."""
    values: list[Any] = [after, prefix, prefix + chr(0x10FFFF)]
    lives = [_LIVE] if deleted_at_s is None else [f"({_LIVE} OR purge_time_s > ? AND {_NEWEST})"]
    values += [] if deleted_at_s is None else [deleted_at_s]
    for key, value in labels:
        lives.append(connection.labelled if value is None else connection.labelled_as)
        values += [key] if value is None else [key, value]
    conditions = "".join(f" AND {condition}" for condition in lives)
    rows = connection.execute(f"{_ROWS}{conditions} ORDER BY profile_id LIMIT ?", (*values, limit))
    return [ProfileRow(*row) for row in rows]


def deleted_rows(connection: Connection, profile_id: str, now_s: float) -> list[ProfileRow]:
    """Deleted profiles of a name that are not purged yet, the newest first."""
    return [ProfileRow(*row) for row in connection.execute(_DELETED, (profile_id, now_s))]


def changed_rows(connection: Connection, since: int, prefix: str) -> list[ProfileRow]:
    """Committed profiles that changed after a generation, deleted ones too, by their keys."""
    rows = connection.execute(_CHANGED, (since, len(prefix), prefix))
    return sorted((ProfileRow(*row) for row in rows), key=attrgetter("key"))


def names_changed(connection: Connection, since: Hashable) -> frozenset[str]:
    """Names of profiles that changed after a generation, deleted ones too."""
    return frozenset(name for (name,) in connection.execute(_NAMES_CHANGED, (since,)))


def digest_of(connection: Connection, row: ProfileRow) -> str:
    """The digest of a row's content, stored or computed."""
    digest = valid_memo(row.digest)
    return replay_profile(connection, row, row.profile_id, None).digest if digest is None else digest


def row_at(connection: Connection, row: ProfileRow, revision: int, last_read: Profile | None) -> ProfileRow:
    """The row of a profile as it was at an earlier revision; ``last_read`` is the profile at some revision.

    Raises
    ------
    NodewiseError
        REVISION_NOT_FOUND for a revision that does not exist.
    PayloadError
        For stored bytes that this release cannot read.
    """
    if not 1 <= revision <= row.revision:
        raise revision_not_found(row.profile_id, revision)
    last_number, time_s = connection.execute(_LAST_COMMIT, (row.key, revision)).fetchone()
    retraction_count = len(connection.execute(_RETRACTED, (row.key, 0, revision)).fetchall())
    (retracted_s,) = connection.execute(_RETRACTIONS, (row.key, revision)).fetchone()
    (timings,) = connection.execute(_TIMING_ROWS, (row.key, revision)).fetchone()
    facts, since = NOTHING, 0
    if last_read is not None and last_read.uid == row.uid and last_read.revision <= revision:
        naming = Naming(display_name=last_read.display_name, labels=last_read.labels)
        facts, since = (
            StatedFacts(workload=last_read.workload, network=last_read.network, naming=naming),
            last_read.revision,
        )
    # Between two retractions commits add facts and never change them, so those of one stretch agree.
    retractions = connection.execute(
        "SELECT revision, name FROM retracted_evidence WHERE profile_key = ? AND kind = 'fact' AND revision > ?"
        " AND revision <= ? ORDER BY revision DESC",
        (row.key, since, revision),
    ).fetchall()
    for payload, at in _payloads(connection, row.key, since, revision):
        while retractions and retractions[-1][0] < at:
            facts = facts.without(retractions.pop()[1])
        facts = facts.then(stated_from_payload(payload))
    for _, path in reversed(retractions):
        facts = facts.without(path)
    return replace(
        row,
        revision=revision,
        last_number=last_number,
        last_timing_number=timings,
        observations_count=last_number - retraction_count,
        update_time_s=max(time_s, retracted_s or 0.0),
        digest=None,
        **stated_columns(facts.without_removals()),
    )


def replay_profile(
    connection: Connection, row: ProfileRow | None, profile_id: str, last_read: Profile | None
) -> Profile:
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
    if last_read is None or last_read.uid != row.uid or last_read.revision > row.revision:
        last_read = Profile(profile_id=row.profile_id, uid=row.uid)
    elif last_read.revision == row.revision:
        return last_read
    since = (row.key, last_read.revision, row.revision)
    beside: list[tuple[SharedDeviceRun, int]] = []

    def payloads() -> Iterator[bytes]:
        for payload, at in _payloads(connection, *since):
            beside.extend((run, at) for run in shared_runs_from_payload(payload))
            yield payload

    timings, observations = runs_from_payloads(payloads())
    if len(observations):
        first = row.last_number - len(observations) + 1
        numbers: Ints = freeze(np.arange(first, row.last_number + 1, dtype=np.int64))
        observations = replace(observations, number=numbers)
    observations = Observations.concatenated((last_read.observations, observations))
    if retracted_numbers := [number for (number,) in connection.execute(_RETRACTED, since)]:
        remaining = np.flatnonzero(np.isin(observations.number, retracted_numbers, invert=True))
        observations = observations.take(freeze(remaining.astype(np.int64, copy=False)))
    if len(observations) != row.observations_count:
        raise PayloadError("the number of stored observations does not match the profile's count")
    timing_numbers = np.arange(row.last_timing_number - len(timings) + 1, row.last_timing_number + 1, dtype=np.int64)
    timing_numbers = np.concatenate((last_read.phase_timing_numbers, timing_numbers))
    timings = PhaseTimings.concatenated((last_read.phase_timings, timings))
    if retracted_numbers := [int(number) for number in _retracted_names(connection, "phase_timing", since)]:
        remaining = np.flatnonzero(np.isin(timing_numbers, retracted_numbers, invert=True)).astype(np.int64, copy=False)
        timings, timing_numbers = timings.take(freeze(remaining)), timing_numbers[remaining]
    gone_traces = _retracted_names(connection, "trace", since)
    references = [
        TraceReference(content_sha256=sha256, format=form, rank=rank, world_size=world_size, size_bytes=size)
        for sha256, form, rank, world_size, size, at in connection.execute(_REFERENCES, since)
        if at > gone_traces.get(sha256, 0)
    ]
    gone_runs = _retracted_names(connection, "shared_run", since)
    shared_runs = [run for run in last_read.shared_runs if run.content_sha256 not in gone_runs]
    shared_runs += [run for run, at in beside if at > gone_runs.get(run.content_sha256, 0)]
    kept_traces = (trace for trace in last_read.traces if trace.content_sha256 not in gone_traces)
    facts = row.state.stated
    profile = Profile(
        profile_id=row.profile_id,
        uid=row.uid,
        revision=row.revision,
        workload=facts.workload,
        network=facts.network,
        phase_timings=timings,
        phase_timing_numbers=freeze(timing_numbers),
        observations=observations,
        traces=tuple(dict.fromkeys((*kept_traces, *references))),
        shared_runs=tuple(dict.fromkeys(shared_runs)),
        create_time_s=row.create_time_s,
        update_time_s=row.update_time_s,
        display_name=row.display_name,
        labels=facts.naming.labels,
    )
    digest = content_digest(profile)
    if valid_memo(row.digest) not in (None, digest):
        raise PayloadError("the profile does not match its stored digest")
    return replace(profile, digest=digest)


def _payloads(connection: Connection, key: int, since: int, revision: int) -> Iterator[tuple[bytes, int]]:
    """Payloads of batches, each with the revision in which it counts.

    Raises
    ------
    PayloadError
        For a damaged batch.
    """
    for payload, at, content_hash in connection.execute(_PAYLOADS, (key, since, revision)):
        if hashlib.sha256(payload).digest() != bytes(content_hash):
            raise PayloadError("a batch does not match its digest")
        yield payload, at


def _retracted_names(connection: Connection, kind: str, since: tuple[int, int, int]) -> dict[Any, int]:
    """Names of evidence of a kind that was retracted in a range of revisions, with the last retraction of each."""
    key, above, last = since
    return dict(connection.execute(_EVIDENCE, (key, kind, above, last)).fetchall())
