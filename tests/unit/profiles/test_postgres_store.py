"""What only the store in PostgreSQL does: lost connections, replicas that follow, databases that are not ours."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import wait_until
from postgres_clusters import PostgresCluster
from profile_batches import batch, speeds
from stores import Opener, opener, refused

from nodewise.domain.errors import Reason
from nodewise.profiles.opening import open_store
from nodewise.profiles.sql_schema import SCHEMA_VERSION
from nodewise.profiles.store import ProfileStore, StoreFormatError, StoreOptions
from nodewise.profiles.traces import TraceStore
from nodewise.runtime.identity.tokens import new_token

psycopg = pytest.importorskip("psycopg")
pytestmark = pytest.mark.stores

NOWHERE = "postgresql://nodewise@/none?host=/nowhere"


@pytest.fixture
def opened(tmp_path: Path, database: Callable[[], str]) -> Opener:
    return opener("postgresql", tmp_path, database)


@pytest.fixture
def store(opened: Opener) -> Iterator[ProfileStore]:
    store = opened()
    yield store
    store.close()


def execute(cluster: PostgresCluster, statement: str) -> list[Any]:
    """As another client of the database."""
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return list(cursor) if cursor.description else []


def test_a_database_that_crashed_has_what_it_acknowledged(store: ProfileStore, cluster: PostgresCluster) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    known = store.load("job")
    cluster.stop()
    try:
        refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", [batch(2, 2.0, commit=True)])
        refused(Reason.STORE_UNAVAILABLE, store.load, "job")
        refused(Reason.STORE_UNAVAILABLE, store.open_session, "job", "s")
    finally:
        cluster.start()
    assert store.append("job", "s", [batch(1, 1.0, commit=True)]).durable_sequence_number == 1
    assert store.append("job", "s", [batch(2, 2.0, commit=True)]).revision == 2
    assert speeds(store.load("job", known)) == {1: 1.0, 2: 2.0}


def test_what_is_not_confirmed_any_more_is_not_believed(
    store: ProfileStore, cluster: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    wait_until(lambda: store.generation() == 1)
    monkeypatch.setattr("nodewise.profiles.postgres_following.MOST_BEHIND_S", -1.0)
    assert store.generation() == 1
    cluster.stop()
    try:
        refused(Reason.STORE_UNAVAILABLE, store.generation)
    finally:
        cluster.start()
    assert store.generation() == 1


def test_a_connection_that_was_ended_is_made_anew_unnoticed(store: ProfileStore, cluster: PostgresCluster) -> None:
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    for number in (2, 3):
        execute(
            cluster,
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        )
        assert len(store.load("job").observations) == number - 1
        assert store.append("job", "s", [batch(number, 1.0, commit=True)]).revision == number


def test_a_change_that_nobody_told_is_seen(store: ProfileStore, cluster: PostgresCluster) -> None:
    before = store.generation()
    execute(cluster, "UPDATE meta SET value = value + 1 WHERE name = 'generation'")
    wait_until(lambda: store.generation() != before)


def test_a_writer_that_keeps_others_waiting_is_no_end(store: ProfileStore, cluster: PostgresCluster) -> None:
    with psycopg.connect(cluster.url) as other:
        other.execute("SELECT value FROM meta WHERE name = 'generation' FOR UPDATE")
        store._writer.execute("SET lock_timeout = '10ms'")  # type: ignore[attr-defined]  # patience is 10 s
        error = refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", [batch(1, 1.0)])
        assert error.metadata == {"cause": "locked"}
        assert refused(Reason.STORE_UNAVAILABLE, store.check).metadata == {"cause": "locked"}
        assert store.list() == ()
    store.check()
    assert store.append("job", "s", [batch(1, 1.0)]).durable_sequence_number == 1


def test_a_database_that_takes_no_writes_is_told_until_it_does(store: ProfileStore) -> None:
    writer = store._writer  # type: ignore[attr-defined]  # its session stands for the database
    writer.execute("SET default_transaction_read_only = on")
    for _ in range(2):
        error = refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", [batch(1, 1.0, commit=True)])
        assert error.metadata == {"cause": "read_only"}
        assert refused(Reason.STORE_UNAVAILABLE, store.check).metadata == {"cause": "read_only"}
        assert store.list() == ()
    writer.execute("SET default_transaction_read_only = off")
    store.check()
    assert store.append("job", "s", [batch(1, 1.0, commit=True)]).revision == 1


def test_a_database_that_went_is_told(store: ProfileStore, cluster: PostgresCluster) -> None:
    cluster.stop()
    try:
        assert refused(Reason.STORE_UNAVAILABLE, store.check).metadata == {"cause": "unreachable"}
    finally:
        cluster.start()
    store.check()


def test_another_store_in_the_place_of_the_database_is_refused(opened: Opener, cluster: PostgresCluster) -> None:
    store = opened()
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    execute(cluster, "DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    assert refused(Reason.STORE_UNAVAILABLE, store.check).metadata == {"cause": "deleted"}
    opened().close()
    for call in (store.check, store.generation, lambda: store.append("job", "s", [batch(2, 2.0)])):
        assert refused(Reason.STORE_UNAVAILABLE, call).metadata == {"cause": "replaced"}
    store.close()


def test_another_application_s_tables_are_left_alone(cluster: PostgresCluster, opened: Opener) -> None:
    execute(cluster, "CREATE TABLE theirs (name TEXT)")
    with pytest.raises(StoreFormatError, match="another application"):
        opened()
    execute(cluster, "CREATE TABLE meta (name TEXT, value BIGINT)")
    with pytest.raises(StoreFormatError, match="another application"):
        opened()
    assert execute(cluster, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1") == [
        ("meta",),
        ("theirs",),
    ]


def test_a_newer_schema_is_refused_in_words(cluster: PostgresCluster, opened: Opener) -> None:
    opened().close()
    execute(cluster, "UPDATE meta SET value = 99 WHERE name = 'schema_version'")
    with pytest.raises(StoreFormatError, match="schema 99, this release supports"):
        opened()


def test_a_database_of_before_tokens_gets_them_and_keeps_the_rest(cluster: PostgresCluster, opened: Opener) -> None:
    before = opened()
    before.append("job", "s", [batch(1, 1.0, commit=True)])
    before.close()
    execute(cluster, "DROP TABLE tokens, step_reports, step_hours; DELETE FROM meta WHERE name = 'tokens'")
    execute(cluster, "UPDATE meta SET value = 3 WHERE name = 'schema_version'")
    after = opened()
    assert after.tokens is not None
    assert after.tokens.all()[1] == ()
    after.tokens.add(new_token("", ["read"], [], None)[1])
    assert speeds(after.load("job")) == {1: 1.0}
    after.close()
    assert execute(cluster, "SELECT value FROM meta WHERE name = 'schema_version'") == [(SCHEMA_VERSION,)]


def test_a_url_that_cannot_be_read_is_not_repeated(tmp_path: Path) -> None:
    options = StoreOptions(traces=TraceStore(tmp_path))
    error = refused(Reason.INVALID_FIELD, open_store, "postgres://host/db?x=secret", options)
    assert error.violations[0].field == "store"
    assert "as libpq reads it" in error.violations[0].description
    assert "secret" not in str(error)


def test_a_database_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    refused(Reason.STORE_UNAVAILABLE, lambda: open_store(NOWHERE, StoreOptions(traces=TraceStore(tmp_path))))


def test_traces_need_a_place_that_replicas_share() -> None:
    error = refused(Reason.INVALID_FIELD, open_store, NOWHERE)
    assert error.violations[0].field == "traces"


def test_without_the_driver_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nodewise.profiles.postgres_store", None)
    error = refused(Reason.INVALID_FIELD, open_store, NOWHERE)
    assert "nodewise[postgresql]" in error.violations[0].description
