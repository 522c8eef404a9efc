"""The SQLite store where the file or the disk lets it down, and what lies on the disk."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from profile_batches import batch, speeds

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles import sql_reads, sql_schema
from nodewise.profiles.batches import TraceChunk
from nodewise.profiles.digest import DIGEST_VERSION
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import AppendRequest, Durability, Evidence, RetractRequest, StoreOptions
from nodewise.profiles.traces import TraceStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteProfileStore]:
    opened = SqliteProfileStore(tmp_path / "store.db", StoreOptions(now=lambda: 1000.0))
    yield opened
    opened.close()


def sql(tmp_path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    """Behind the store's back."""
    connection = sqlite3.connect(tmp_path / "store.db")
    with connection:
        found = connection.execute(statement, values).fetchall()
    connection.close()
    return found


def unavailable(call: object, *arguments: object) -> None:
    with pytest.raises(NodewiseError) as caught:
        call(*arguments)  # type: ignore[operator]
    assert caught.value.reason == Reason.STORE_UNAVAILABLE
    assert caught.value.__cause__ is None
    assert "disk" not in str(caught.value)


def test_a_full_disk_loses_nothing_and_may_be_retried(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    pages = sql(tmp_path, "PRAGMA page_count")[0][0]
    store._writer.execute(f"PRAGMA max_page_count = {pages}")
    many = [float(number) for number in range(5000)]
    unavailable(store.append, "job", "s", [batch(2, *many)])
    small, large = store.apply(
        [AppendRequest("job", "s", [batch(2, 2.0)]), AppendRequest("other", "s", [batch(1, *many)])]
    )
    assert isinstance(large, NodewiseError)
    assert store.open_session("job", "s").durable_sequence_number == (1 if isinstance(small, NodewiseError) else 2)
    store._writer.execute("PRAGMA max_page_count = 1000000")
    assert store.append("job", "s", [batch(2, 2.0)]).durable_sequence_number == 2
    assert store.append("job", "s", [batch(3, *many, commit=True)]).observations_count == 5002


def test_a_lock_that_is_held_too_long_is_unavailable(store: SqliteProfileStore, tmp_path: Path) -> None:
    store._writer.execute("PRAGMA busy_timeout = 10")
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    unavailable(store.append, "job", "s", [batch(1, 1.0)])
    assert store.list() == ()
    other.execute("ROLLBACK")
    other.close()
    assert store.append("job", "s", [batch(1, 1.0)]).durable_sequence_number == 1


@pytest.mark.parametrize("by", ["nothing", "another store"])
def test_a_file_that_is_lost_is_said_and_nothing_acknowledged(
    store: SqliteProfileStore, tmp_path: Path, logs: list[Any], by: str
) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    path, away = tmp_path / "store.db", tmp_path / "away.db"
    path.rename(away)
    if by == "another store":
        SqliteProfileStore(tmp_path / "other.db").close()
        (tmp_path / "other.db").rename(path)
    for _ in range(2):
        unavailable(store.append, "job", "s", [batch(2, 2.0, commit=True)])
        unavailable(store.load, "job")
        unavailable(store.scores.claim, 1.0)
    said = [event["found"] for event in logs if event["event"] == "store_file_lost"]
    assert said == ["deleted" if by == "nothing" else "replaced"]
    away.replace(path)
    assert store.append("job", "s", [batch(2, 2.0, commit=True)]).durable_sequence_number == 2
    assert speeds(store.load("job")) == {1: 1.0, 2: 2.0}


def test_a_connection_creates_no_file_where_the_store_was(
    store: SqliteProfileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file may be moved between the look at its place and the opening of a connection."""
    file = next(tmp_path.glob("*.db"))
    before = store.usage()
    monkeypatch.setattr(store, "_check_place", lambda: None)
    monkeypatch.setattr(store, "_idle", [])
    file.rename(tmp_path / "elsewhere")
    with pytest.raises(NodewiseError) as failure:
        store.usage()
    assert failure.value.metadata["cause"] == "deleted"
    assert not file.exists()
    (tmp_path / "elsewhere").rename(file)
    monkeypatch.undo()
    assert store.usage() == before


def test_a_damaged_batch_spoils_its_profile_only(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("bad", "s", [batch(1, 1.0, commit=True)])
    store.append("good", "s", [batch(1, 1.0, commit=True)])
    sql(tmp_path, "UPDATE batches SET payload = ? WHERE session_key = 1", b'{"v":1')
    unavailable(store.load, "bad")
    unavailable(store.list)
    assert speeds(store.load("good")) == {1: 1.0}
    bad, good = store.apply(
        [RetractRequest("bad", "r", Evidence.of((1,))), AppendRequest("good", "s", [batch(2, 2.0, commit=True)])]
    )
    assert isinstance(bad, NodewiseError)
    assert bad.reason == Reason.STORE_UNAVAILABLE
    assert not isinstance(good, NodewiseError)
    assert store.append("good", "s", [batch(3, 3.0, commit=True)]).observations_count == 3


def test_a_damaged_profile_can_be_deleted(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("bad", "s", [batch(1, 1.0, commit=True)])
    sql(tmp_path, "UPDATE batches SET payload = ?", b'{"v":1')
    deleted = store.delete("bad")
    assert deleted.digest == ""
    assert store.list(deleted=True) == (deleted,)
    assert store.delete("bad", deleted.etag) == deleted


def test_a_batch_that_is_missing_is_noticed(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0), batch(2, 2.0, commit=True)])
    sql(tmp_path, "DELETE FROM batches WHERE sequence_number = 1")
    unavailable(store.load, "job")


def test_digests_are_put_down_with_the_next_write(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    digest = store.list()[0].digest
    assert sql(tmp_path, "SELECT digest FROM profiles") == [(None,)]
    store.append("other", "s", [batch(1, 1.0)])
    assert sql(tmp_path, "SELECT digest FROM profiles WHERE profile_id = 'job'") == [(f"{DIGEST_VERSION}:{digest}",)]
    assert store.list()[0].digest == digest
    sql(tmp_path, "UPDATE profiles SET digest = '0:of another version'")
    assert store.list()[0].digest == store.load("job").digest == digest


def test_a_digest_is_not_put_down_for_another_revision(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    old = store.list()[0].digest
    with SqliteProfileStoreOpened(tmp_path) as other:
        other.append("job", "t", [batch(1, 2.0, commit=True)])
    store.append("job", "u", [batch(1, 3.0)])
    assert store.list()[0].digest == store.load("job").digest != old


class SqliteProfileStoreOpened:
    """Another process' store of the same file."""

    def __init__(self, tmp_path: Path) -> None:
        self._store = SqliteProfileStore(tmp_path / "store.db")

    def __enter__(self) -> SqliteProfileStore:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()


def test_times_are_those_of_the_first_and_the_newest_commit(tmp_path: Path) -> None:
    now_s = 0.0
    store = SqliteProfileStore(None, StoreOptions(now=lambda: now_s))
    store.append("job", "s", [batch(1, 1.0)])
    times = []
    for call in (
        lambda: store.append("job", "s", [batch(2, commit=True)]),
        lambda: store.append("job", "s", [batch(3, 1.0, commit=True)]),
        lambda: store.retract("job", "r", Evidence.of([1])),
    ):
        now_s += 10.0
        call()
        profile = store.load("job")
        times.append((profile.create_time_s, profile.update_time_s))
    assert times == [(10.0, 10.0), (10.0, 20.0), (10.0, 30.0)]


def test_every_commit_says_what_it_covers(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0), batch(2, 2.0, commit=True), batch(3, 3.0)])
    store.append("job", "t", [batch(1, 4.0, commit=True)])
    store.append("job", "s", [batch(4, 5.0, commit=True)])
    found = sql(
        tmp_path,
        "SELECT revision, session_id, first_sequence_number, last_sequence_number, first_observation_number, rows"
        " FROM commits JOIN sessions ON key = session_key ORDER BY revision",
    )
    assert found == [(1, "s", 1, 2, 1, 2), (2, "t", 1, 1, 3, 1), (3, "s", 3, 4, 4, 2)]


def test_history_keeps_what_was_retracted_and_why(store: SqliteProfileStore, tmp_path: Path) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.retract("job", "r", Evidence.of([1]), "throttled")
    assert sql(tmp_path, "SELECT request_id, revision, reason FROM retractions") == [("r", 2, "throttled")]
    assert sql(tmp_path, "SELECT count(*) FROM batches") == [(1,)]


def test_nothing_of_a_purged_profile_stays(tmp_path: Path) -> None:
    now_s = 1000.0
    store = SqliteProfileStore(tmp_path / "store.db", StoreOptions(now=lambda: now_s, deleted_kept_s=60.0))
    shared = TraceChunk(trace_id="shared", data=b"both", last=True, format="f", world_size=1)
    own = TraceChunk(trace_id="own", data=b"own", last=True, format="f", world_size=1)
    half = TraceChunk(trace_id="half", data=b"half", format="f", world_size=1)
    store.append("gone", "s", [batch(1, 1.0, trace_chunks=(shared, own), commit=True), batch(2, trace_chunks=(half,))])
    store.append("kept", "s", [batch(1, 1.0, trace_chunks=(shared,), commit=True)])
    store.retract("gone", "r", Evidence.of([1], facts=[], traces=[store.load("gone").traces[0].content_sha256]))
    deleted = store.delete("gone")
    assert (deleted.delete_time_s, deleted.purge_time_s) == (1000.0, 1060.0)
    assert store.list(deleted=True)[0] == deleted
    now_s = 1060.0
    assert [found.profile_id for found in store.list(deleted=True)] == ["kept"]
    with pytest.raises(NodewiseError):
        store.undelete("gone")
    (kept,) = store.load("kept").traces
    files = [path for path in (tmp_path / "store.db-traces").rglob("*") if path.is_file()]
    assert [path.name for path in files] == [kept.content_sha256]
    for table in ("sessions", "batches", "commits", "traces", "profiles"):
        assert sql(tmp_path, f"SELECT count(*) FROM {table}") == [(1,)]
    for table in ("retractions", "retracted", "retracted_evidence", "unreferenced"):
        assert sql(tmp_path, f"SELECT count(*) FROM {table}") == [(0,)]
    store.close()


def test_a_trace_store_that_fails_fails_its_own_request(tmp_path: Path) -> None:
    class Failing(TraceStore):
        def write(self, stage: str, settled_bytes: int, offset_bytes: int, data: bytes) -> int:
            if data == b"fail":
                raise OSError(28, "No space left on disk", "/secret")
            return super().write(stage, settled_bytes, offset_bytes, data)

    store = SqliteProfileStore(tmp_path / "store.db", StoreOptions(traces=Failing(tmp_path / "traces")))
    chunks = [TraceChunk(trace_id="t", data=data, format="f", world_size=1) for data in (b"ok", b"fail")]
    bad, good = store.apply(
        [
            AppendRequest("job", name, [batch(1, 1.0, trace_chunks=(chunk,), commit=False)])
            for name, chunk in zip("ab", reversed(chunks))
        ]
    )
    assert isinstance(bad, NodewiseError)
    assert bad.reason == Reason.STORE_UNAVAILABLE
    assert "secret" not in str(bad)
    assert not isinstance(good, NodewiseError)
    assert store.open_session("job", "a").durable_sequence_number == 0
    assert store.open_session("job", "b").durable_sequence_number == 1
    store.close()


def test_tidying_up_that_fails_is_done_with_the_next_purge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteProfileStore(tmp_path / "store.db", StoreOptions(deleted_kept_s=0.0))

    def busy(*_: object) -> NoReturn:
        raise OSError("busy")

    for name in ("a", "b"):
        chunk = TraceChunk(trace_id="t", data=name.encode(), last=True, format="f", world_size=1)
        store.append(name, "s", [batch(1, 1.0, trace_chunks=(chunk,), commit=True)])
    with monkeypatch.context() as patched:
        patched.setattr(TraceStore, "remove", busy)
        store.delete("a")
        store.append("c", "s", [batch(1, 1.0)])
    assert len([path for path in (tmp_path / "store.db-traces").rglob("*") if path.is_file()]) == 2
    store.delete("b")
    store.append("c", "s", [batch(2, 1.0)])
    assert [path for path in (tmp_path / "store.db-traces").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(("durability", "synchronous"), [("process", 1), ("power", 2)])
def test_durability_is_the_journal_s(tmp_path: Path, durability: Durability, synchronous: int) -> None:
    store = SqliteProfileStore(tmp_path / "store.db", StoreOptions(durability=durability))
    assert store._writer.execute("PRAGMA synchronous").fetchone() == (synchronous,)
    assert store._writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._writer.execute("PRAGMA foreign_keys").fetchone() == (1,)
    store.close()


def test_creation_that_fails_leaves_an_empty_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sql_schema, "_NEW", ("CREATE TABLE profiles (a); CREATE TABLE profiles (a)",))
        with pytest.raises(NodewiseError):
            SqliteProfileStore(tmp_path / "store.db")
    SqliteProfileStore(tmp_path / "store.db").close()
    assert (tmp_path / "store.db").stat().st_size > 0


def test_a_fault_inside_a_transaction_takes_it_back(store: SqliteProfileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> NoReturn:
        raise RuntimeError("fault")

    with monkeypatch.context() as patched:
        patched.setattr("nodewise.profiles.sql_writes.plan_append", fault)
        with pytest.raises(RuntimeError):
            store.append("job", "s", [batch(1, 1.0)])
    assert store.append("job", "s", [batch(1, 2.0, commit=True)]).revision == 1


@pytest.mark.parametrize("statement", [sql_reads._CHANGED, sql_reads._NAMES_CHANGED])
def test_changes_are_searched_by_their_index(store: SqliteProfileStore, tmp_path: Path, statement: str) -> None:
    """At each commit, by each worker: reading all profiles would cost the more the more are stored."""
    store.append("team/job", "s", [batch(1, 1.0, commit=True)])
    values = (0, 0, "")[: statement.count("?")]
    plan = " ".join(str(row[3]) for row in sql(tmp_path, f"EXPLAIN QUERY PLAN {statement}", *values))
    assert "USING INDEX profiles_by_change" in plan, plan
    assert "SCAN" not in plan, plan


def test_changes_come_by_prefix_in_the_order_of_their_first_commit(store: SqliteProfileStore) -> None:
    for name in ("team/b", "team/a", "other/a", "team/b"):
        store.append(name, f"s-{store.generation()}", [batch(1, 1.0, commit=True)])
    _, changed = store.changes(0, "team/")
    assert [each.profile_id for each in changed] == ["team/b", "team/a"]
