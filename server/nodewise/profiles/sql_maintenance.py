"""Maintenance of a store in small steps: its identity, damage, and retention."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.profiles.sql_rows import Connected, Connection, transaction
from nodewise.profiles.store import DeleteRequest, Evidence, ProfileStore, Retention, RetractRequest, WriteRequest

__all__ = ["claim_task", "damaged_batches", "damaged_tables", "identity_of", "let_go", "write_a_little"]

_log = structlog.get_logger(__name__)

_STEP_ROWS: Final = 32
_STEP_PROFILES: Final = 64
_STEP_OBSERVATIONS: Final = 4096
_WHOLE_BYTES: Final = 256 << 20
"""A file up to this size is checked by SQLite as a whole; of larger ones all tables but the batches, whose content is
read anyway."""
_BATCHES: Final = """
SELECT session_key, sequence_number, content_hash, payload FROM batches
WHERE (session_key, sequence_number) > (?, ?) ORDER BY session_key, sequence_number LIMIT ?"""
_PROFILE_OF: Final = "SELECT profile_id FROM profiles p JOIN sessions s ON s.profile_key = p.key WHERE s.key = ?"
_UNTOUCHED: Final = """
SELECT profile_id, uid, revision FROM profiles p
WHERE delete_time_s = 0 AND revision > 0 AND update_time_s <= ?
    AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.profile_key = p.key AND s.durable > s.committed)
ORDER BY key LIMIT ?"""
_OLD_ROWS: Final = """
SELECT p.profile_id, p.key, c.first_observation_number, c.rows FROM commits c JOIN profiles p ON p.key = c.profile_key
WHERE p.delete_time_s = 0 AND c.time_s <= ? AND c.rows > (SELECT count(*) FROM retracted r
    WHERE r.profile_key = p.key AND r.number >= c.first_observation_number
    AND r.number < c.first_observation_number + c.rows)
ORDER BY p.key, c.revision LIMIT 1"""
_RETRACTED: Final = "SELECT number FROM retracted WHERE profile_key = ? AND number >= ? AND number < ?"


def identity_of(connection: Connection, before: int | None = None) -> int:
    """The store's identity, a number that its copies and backups share. A store without one gets it.

    Parameters
    ----------
    before : int or None
        Identity to give to a store without one; None = a new number.
    """
    asking = "SELECT value FROM meta WHERE name = 'store_id'"
    row = connection.execute(asking).fetchone()
    if row is None:
        with transaction(connection, connection.writing):
            number = secrets.randbits(62) if before is None else before
            connection.execute("INSERT INTO meta VALUES ('store_id', ?) ON CONFLICT DO NOTHING", (number,))
        row = connection.execute(asking).fetchone()
    return int(row[0])


def write_a_little(connection: Connection) -> None:
    """Change a value that is never read, to test writes: an unchanged row would not be written."""
    connection.execute("INSERT INTO meta VALUES ('written', 1) ON CONFLICT (name) DO UPDATE SET value = meta.value + 1")


def claim_task(connection: Connection, task: str, now_s: float, lease_s: float) -> bool:
    """Claim a task in a write transaction; False = another process holds it."""
    name = f"task {task}"
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    if row is not None and row[0] > now_s:
        return False
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        (name, int(now_s + lease_s)),
    )
    return True


def damaged_tables(connection: Connection, rest: Callable[[], bool]) -> int:
    """Number of tables that SQLite finds damaged; its messages are logged."""
    damage_count = 0
    ((pages,), (size,)) = (connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "page_size"))
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in sorted(names):
        if name.startswith("sqlite_") or (name == "batches" and pages * size > _WHOLE_BYTES):
            continue
        if not rest():
            break
        problems = [text for (text,) in connection.execute(f"PRAGMA quick_check({name})")]
        if problems != ["ok"]:
            damage_count += 1
            _log.error("store_damaged", table=name, found=problems[:3])
    return damage_count


def damaged_batches(reading: Connected, rest: Callable[[], bool]) -> int:
    """Number of damaged batches; each is logged with its profile."""
    damage_count = 0
    after = (0, 0)
    while rest():
        with reading("inspect") as connection:
            rows: Sequence[Any] = connection.execute(_BATCHES, (*after, _STEP_ROWS)).fetchall()
        for session, number, content_hash, payload in rows:
            if hashlib.sha256(payload).digest() != bytes(content_hash):
                damage_count += 1
                with reading("inspect") as connection:
                    names = [name for (name,) in connection.execute(_PROFILE_OF, (session,))]
                _log.error("store_damaged", table="batches", profile_ids=names, sequence_number=number)
        if len(rows) < _STEP_ROWS:
            break
        after = rows[-1][:2]
    return damage_count


def let_go(
    store: ProfileStore, rules: Retention, now_s: float, reading: Connected, adding: Connected
) -> Mapping[str, int]:
    """Delete expired data, as :meth:`ProfileStore.keep` says."""
    counts: Counter[str] = Counter()
    if rules.profiles_s is not None:
        counts["profiles"] = sum(_apply(store, some) for some in _deletions_of(reading, now_s - rules.profiles_s))
    if rules.observations_s is not None:
        counts["observations"] = _retract(store, reading, now_s - rules.observations_s)
    if rules.traces_s is not None:
        counts["traces"] = _traces(store, adding, now_s - rules.traces_s)
    return {what: count for what, count in counts.items() if count}


def _deletions_of(reading: Connected, until_s: float) -> Iterator[list[WriteRequest]]:
    """Requests to delete profiles without later changes; with their etags, so that one that changes meanwhile stays."""
    keys: set[str] = set()
    while True:
        with reading("find what is kept no longer") as connection:
            rows = connection.execute(_UNTOUCHED, (until_s, _STEP_PROFILES)).fetchall()
        new = [(name, f"{uid}-{revision}") for name, uid, revision in rows if uid not in keys]
        keys |= {uid for _, uid, _ in rows}
        if not new:
            return
        yield [DeleteRequest(name, etag) for name, etag in new]


def _retract(store: ProfileStore, reading: Connected, until_s: float) -> int:
    """Retract observations that were committed before a time; returns how many."""
    count = 0
    while True:
        with reading("find what is kept no longer") as connection:
            row = connection.execute(_OLD_ROWS, (until_s,)).fetchone()
            if row is None:
                return count
            name, key, first, rows = row
            retracted_numbers = {number for (number,) in connection.execute(_RETRACTED, (key, first, first + rows))}
        numbers = [number for number in range(first, first + rows) if number not in retracted_numbers][
            :_STEP_OBSERVATIONS
        ]
        request = RetractRequest(name, f"retention-{uuid.uuid4().hex}", Evidence.of(numbers), "kept no longer")
        if not _apply(store, [request]):
            return count
        count += len(numbers)


def _traces(store: ProfileStore, adding: Connected, until_s: float) -> int:
    """Delete traces that nothing refers to; returns how many."""
    old = [name for name, stored_s in store.traces.finished_traces() if stored_s <= until_s]
    count = 0
    for begin in range(0, len(old), _STEP_PROFILES):
        # Only write transactions finish traces, so no new reference appears while this one is open.
        with adding("delete traces") as connection:
            removed_traces = [
                name
                for name in old[begin : begin + _STEP_PROFILES]
                if connection.execute("SELECT 1 FROM traces WHERE content_sha256 = ?", (name,)).fetchone() is None
            ]
            store.traces.remove_all(removed_traces)
            count += len(removed_traces)
    return count


def _apply(store: ProfileStore, requests: list[WriteRequest]) -> int:
    """Write requests; returns how many succeeded. Raises if the store does not answer."""
    outcomes = store.apply(requests)
    errors = [outcome for outcome in outcomes if isinstance(outcome, NodewiseError)]
    for error in errors:
        if error.reason == "STORE_UNAVAILABLE":
            raise error
    return len(outcomes) - len(errors)
