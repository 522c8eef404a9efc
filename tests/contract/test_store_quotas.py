"""What every profile store counts, and whom it refuses: by namespace, in the transaction that stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Thread

import pytest
from profile_batches import batch, chunk
from stores import KINDS, POSTGRESQL, SHARED_KINDS, opener, refused

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.quotas import NO_USAGE, StoreQuotas, Usage, usage_by_namespace
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.store import AppendRequest, DeleteRequest, Evidence, ProfileStore

Database = Callable[[], str]


def counted_anew(store: ProfileStore) -> dict[str, Usage]:
    """What the tables hold, whatever the counters say."""
    assert isinstance(store, SqlProfileStore)
    with store._adding("forget the counters") as connection:
        connection.execute("DELETE FROM meta WHERE name LIKE 'usage%'")
        return usage_by_namespace(connection)


@pytest.fixture(params=KINDS)
def kept_briefly(request: pytest.FixtureRequest, tmp_path: Path, database: Database) -> Iterator[ProfileStore]:
    """A store whose deleted profiles are purged with the next write."""
    opened = opener(request.param, tmp_path, database, deleted_kept_s=0.0)()
    yield opened
    opened.close()


def test_what_is_counted_is_what_the_tables_hold(kept_briefly: ProfileStore) -> None:
    store = kept_briefly
    store.append("ours/job", "s", [batch(1, 1.0, 2.0, trace_chunks=(chunk(0, b"abc"),))])
    store.append("ours/job", "s", [batch(2, 3.0, trace_chunks=(chunk(1, b"bcdef", last=True),), commit=True)])
    store.append("ours/other", "s", [batch(1, 1.0, commit=True)])
    store.append("theirs/job", "s", [batch(1, 1.0)])
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.append("job", "s", [batch(1, 1.0, commit=True)])  # sent again: nothing more is stored
    store.retract("ours/job", "r", Evidence.of([2], facts=()), "throttled")
    found = store.usage()
    assert {name: (usage.profiles, usage.trace_bytes) for name, usage in found.items()} == {
        "": (1, 0),
        "ours": (2, 6),
        "theirs": (1, 0),
    }
    assert found == counted_anew(store)
    store.delete("ours/job")
    assert store.usage() == found, "deleted profiles count until they are purged"
    store.append("job", "t", [batch(1, 1.0, commit=True)])
    assert store.usage()["ours"].profiles == 1
    assert store.usage()["ours"].trace_bytes == 0
    assert store.usage() == counted_anew(store)


def test_a_store_of_an_earlier_release_is_counted_before_anything_is_added(store: ProfileStore) -> None:
    store.append("ours/job", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    assert counted_anew(store) == store.usage()
    outcomes = store.apply(
        [
            AppendRequest("ours/job", "s", [batch(7, 1.0)]),  # taken back: it comes out of order
            AppendRequest("ours/job", "s", [batch(2, 1.0, commit=True)]),
            AppendRequest("theirs/job", "s", [batch(1, 1.0, commit=True)]),
        ]
    )
    assert [isinstance(each, NodewiseError) for each in outcomes] == [True, False, False]
    found = store.usage()
    assert set(found) == {"ours", "theirs"}
    assert found == counted_anew(store)


def limits(kind: str, tmp_path: Path, database: Database, **quotas: int) -> ProfileStore:
    return opener(kind, tmp_path, database, quotas=StoreQuotas(**quotas))()


@pytest.mark.parametrize("kind", ["memory", POSTGRESQL])
@pytest.mark.parametrize(
    ("quota", "limit", "found"),
    [("profiles", 1, "2"), ("trace_bytes", 5, "6"), ("stored_bytes", 5000, None), ("total_bytes", 5000, None)],
)
def test_a_quota_names_itself_what_was_found_and_what_is_allowed(
    kind: str, tmp_path: Path, database: Database, quota: str, limit: int, found: str | None
) -> None:
    store = limits(kind, tmp_path, database, **{quota: limit})
    store.append("ours/first", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    rows = [] if found else [1.0 + row / 7 for row in range(2000)]
    more = batch(1, *rows, trace_chunks=(chunk(0, b"xyz", last=True),), commit=True)
    before = store.usage()
    error = refused(Reason.QUOTA_EXCEEDED, store.append, "ours/second", "s", [more])
    assert (error.metadata["quota"], error.metadata["limit"]) == (quota, str(limit))
    assert error.metadata["found"] == found or (found is None and int(error.metadata["found"]) > limit)
    assert error.metadata.get("namespace", "ours") == "ours"
    assert f"quotas.{quota} = {limit}" in error.message
    assert store.usage() == before, "nothing of it is stored"
    refused(Reason.PROFILE_NOT_FOUND, store.load, "ours/second")
    if quota != "total_bytes":
        store.append("theirs/first", "s", [batch(1, 1.0, commit=True)])
    if quota in ("profiles", "trace_bytes"):
        store.append("ours/first", "s", [batch(2, 1.0, commit=True)])
    store.retract("ours/first", "r", Evidence.of([1]))
    store.close()


def test_a_disk_that_is_nearly_full_takes_no_evidence(tmp_path: Path, database: Database) -> None:
    store = limits("sqlite", tmp_path, database, free_bytes=1 << 60)
    error = refused(Reason.QUOTA_EXCEEDED, store.append, "job", "s", [batch(1, 1.0, commit=True)])
    assert error.metadata["quota"] == "free_bytes"
    store.close()


@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_two_that_write_at_once_do_not_pass_a_quota_together(kind: str, tmp_path: Path, database: Database) -> None:
    opened = opener(kind, tmp_path, database, quotas=StoreQuotas(profiles=10))
    stores, together = [opened(), opened()], Barrier(2)
    outcomes: list[object] = []

    def write(store: ProfileStore, name: str) -> None:
        together.wait()
        for number in range(20):
            request = AppendRequest(f"ours/{name}{number}", "s", [batch(1, 1.0, commit=True)])
            outcomes.extend(store.apply([request]))

    threads = [Thread(target=write, args=each) for each in zip(stores, "ab")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals = [each for each in outcomes if isinstance(each, NodewiseError)]
    assert {each.reason for each in refusals} == {Reason.QUOTA_EXCEEDED}
    assert len(outcomes) - len(refusals) == 10
    assert stores[0].usage() == stores[1].usage() == counted_anew(stores[0])
    for store in stores:
        store.close()


def test_what_a_batch_of_writes_has_in_common_counts_together(tmp_path: Path, database: Database) -> None:
    store = limits("memory", tmp_path, database, profiles=1)
    first, second, third = store.apply(
        [
            AppendRequest("ours/a", "s", [batch(1, 1.0, commit=True)]),
            AppendRequest("ours/b", "s", [batch(1, 1.0, commit=True)]),
            DeleteRequest("ours/a"),
        ]
    )
    assert not isinstance(first, NodewiseError)
    assert not isinstance(third, NodewiseError)
    assert isinstance(second, NodewiseError)
    assert second.reason is Reason.QUOTA_EXCEEDED
    assert store.usage()["ours"] != NO_USAGE
    store.close()
