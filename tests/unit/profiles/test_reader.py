"""The reader: same object while nothing changed, newest otherwise, bounded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from profile_batches import batch, speeds

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.ports.cache import CacheSpace
from nodewise.profiles.reader import ProfileReader, profile_bytes
from nodewise.profiles.sqlite_store import SqliteProfileStore
from nodewise.profiles.store import Evidence


class CountingStore(SqliteProfileStore):
    """Notes what is loaded."""

    def __init__(self) -> None:
        super().__init__(None)
        self.loaded: list[str] = []

    def load(self, profile_id: str, known: Profile | None = None) -> Profile:
        self.loaded.append(profile_id)
        return super().load(profile_id, known)


@pytest.fixture
def store() -> CountingStore:
    store = CountingStore()
    for name in "abc":
        store.append(name, "s", [batch(1, 1.0, 2.0, commit=True)])
    return store


def two_of(store: CountingStore) -> CacheSpace:
    """Room for two of the store's profiles."""
    room = CacheSpace(2 * profile_bytes(store.load("a")))
    store.loaded.clear()
    return room


def test_loads_once_while_nothing_changes(store: CountingStore) -> None:
    reader = ProfileReader(store)
    first = reader.get("a")
    store.append("b", "s", [batch(2, 3.0)])
    assert reader.get("a") is reader.get("a") is first
    assert store.loaded == ["a"]


def test_sees_every_change_and_keeps_what_did_not(store: CountingStore) -> None:
    reader = ProfileReader(store)
    a, b = reader.get("a"), reader.get("b")
    store.append("a", "s", [batch(2, 3.0, commit=True)])
    assert speeds(reader.get("a")) == {1: 1.0, 2: 2.0, 3: 3.0}
    assert reader.get("b") is b
    store.retract("a", "r", Evidence.of([1]))
    assert speeds(reader.get("a")) == {2: 2.0, 3: 3.0}
    assert speeds(a) == {1: 1.0, 2: 2.0}
    store.delete("a")
    with pytest.raises(NodewiseError) as caught:
        reader.get("a")
    assert caught.value.reason == Reason.PROFILE_NOT_FOUND
    store.append("a", "s", [batch(1, 9.0, commit=True)])
    assert speeds(reader.get("a")) == {1: 9.0}


def test_keeps_the_profiles_used_last(store: CountingStore) -> None:
    reader = ProfileReader(store, two_of(store))
    for name in ("a", "b", "a", "c", "a", "b"):
        reader.get(name)
    assert store.loaded == ["a", "b", "c", "b"]


def test_always_keeps_the_last(store: CountingStore) -> None:
    small = ProfileReader(store, CacheSpace(1))
    for name in ("a", "a", "b", "a"):
        small.get(name)
    assert store.loaded == ["a", "b", "a"]


def test_threads_share_a_reader(store: CountingStore) -> None:
    reader = ProfileReader(store, two_of(store))

    def read(worker: int) -> None:
        for turn in range(300):
            name = "abc"[(worker + turn) % 3]
            assert reader.get(name).profile_id == name
            if turn % 100 == worker:
                store.append(name, f"s{worker}-{turn}", [batch(1, 1.0, commit=True)])

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(read, worker) for worker in range(3)]:
            done.result()
    assert sum(reader.get(name).revision for name in "abc") == 12


def test_tells_what_it_has_without_reading(store: CountingStore) -> None:
    reader = ProfileReader(store, two_of(store))

    def from_cache(name: str) -> Profile | None:
        return reader.from_cache(name, store.generation())

    assert from_cache("a") is None
    a = reader.get("a")
    reader.get("b")
    assert from_cache("a") is a
    reader.get("c")
    assert from_cache("a") is a
    assert from_cache("b") is None
    store.append("c", "s", [batch(2, 3.0, commit=True)])
    assert from_cache("a") is a
    assert from_cache("c") is None
    assert store.loaded == ["a", "b", "c"]


def test_a_commit_of_one_profile_leaves_others_known(store: CountingStore) -> None:
    reader = ProfileReader(store, two_of(store))
    reader.get("a")
    b, generation = reader.get("b"), store.generation()
    store.append("a", "s", [batch(2, 3.0, commit=True)])
    assert reader.from_cache("b", store.generation()) is b
    assert reader.confirm("b", generation) == store.generation()
    assert reader.confirm("a", generation) is None
    reader.get("b")
    assert store.loaded == ["a", "b"]
    assert reader.get("a").revision == 2
    store.append("a", "s", [batch(3, 4.0, commit=True)])
    store.append("b", "s", [batch(2, 4.0, commit=True)])
    assert reader.from_cache("b", store.generation()) is None
    assert reader.from_cache("a", store.generation()) is None


def test_a_store_that_does_not_tell_what_changed_has_everything_read_anew(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(store), "changed_since", lambda *_: None)
    reader = ProfileReader(store, two_of(store))
    reader.get("b")
    generation = store.generation()
    store.append("a", "s", [batch(2, 3.0, commit=True)])
    assert reader.from_cache("b", store.generation()) is None
    assert reader.confirm("b", generation) is None
