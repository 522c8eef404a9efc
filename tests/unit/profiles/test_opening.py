"""From a URL to a store, and what is no store."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from profile_batches import batch

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.opening import open_store
from nodewise.profiles.sqlite_schema import APPLICATION_ID, SCHEMA_VERSION
from nodewise.profiles.store import StoreFormatError
from nodewise.profiles.traces import MemoryTraceStore


@pytest.mark.parametrize("form", ["{}", "sqlite:{}", "sqlite://{}", "SQLITE:{}"])
def test_paths_name_files(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a directory" / "store.db"
    path.parent.mkdir()
    store = open_store(form.format(path))
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.close()
    assert path.exists()
    header = path.read_bytes()[:100]
    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    again = open_store(str(path))
    assert again.load("job").revision == 1
    again.close()


def test_relative_paths_are_taken_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:here.db").close()
    open_store("there.db").close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.db", "there.db"]


def test_memory_is_gone_with_the_store() -> None:
    one, other = open_store("memory:"), open_store("memory:")
    one.append("job", "s", [batch(1, 1.0, commit=True)])
    assert other.list() == ()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("postgresql://host/db", "later release"),
        ("postgres://host/db", "later release"),
        ("mysql://host/db", "mysql: is not known"),
        ("memory:x", "sqlite:PATH"),
        ("sqlite:", "sqlite:PATH"),
        ("sqlite::memory:", "memory:"),
        ("sqlite://host/path", "must not name a host"),
        ("", "sqlite:PATH"),
    ],
)
def test_what_names_no_store_is_told_what_would(url: str, says: str) -> None:
    with pytest.raises(NodewiseError) as caught:
        open_store(url)
    assert caught.value.reason == Reason.INVALID_FIELD
    assert caught.value.violations[0].field == "store"
    assert says in caught.value.violations[0].description


def test_an_unknown_durability_is_told() -> None:
    with pytest.raises(NodewiseError, match="'process' or 'power'"):
        open_store("memory:", "hope")  # type: ignore[arg-type]  # as it comes from a setting


def test_traces_may_live_elsewhere() -> None:
    traces = MemoryTraceStore()
    store = open_store("memory:", traces=traces)
    assert store.traces is traces


def test_files_of_others_are_refused_and_left_alone(tmp_path: Path) -> None:
    text, foreign, stamped = tmp_path / "text", tmp_path / "foreign.db", tmp_path / "stamped.db"
    text.write_text("not a database, but long enough to be told apart from an empty file" * 20)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    with sqlite3.connect(stamped) as connection:
        connection.execute("PRAGMA application_id = 7")
    connection.close()
    for path in (text, foreign, stamped):
        before = path.read_bytes()
        with pytest.raises(StoreFormatError):
            open_store(str(path))
        assert path.read_bytes() == before


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    open_store(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema_version'", (SCHEMA_VERSION + 1,))
    connection.close()
    with pytest.raises(StoreFormatError, match="open it with the release that wrote it"):
        open_store(str(path))
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM meta")
    connection.close()
    with pytest.raises(StoreFormatError):
        open_store(str(path))


def test_a_file_of_an_older_release_gets_what_it_lacks(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = open_store(str(path))
    store.append("job", "s", [batch(1, 1.0, commit=True)])
    store.close()
    with sqlite3.connect(path) as connection:
        for table in ("unscored", "scores"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("UPDATE meta SET value = 1 WHERE name = 'schema_version'")
    connection.close()
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(str(path)), range(4)))
    for number, each in enumerate(stores, start=2):
        each.append("job", "s", [batch(number, 1.0, commit=True)])
    assert stores[0].scores.waiting() == 4
    for each in stores:
        each.close()


def test_a_place_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(NodewiseError) as caught:
        open_store(str(tmp_path))
    assert caught.value.reason == Reason.STORE_UNAVAILABLE
    assert str(tmp_path) not in str(caught.value)


def test_a_directory_is_not_made_for_a_slip_of_the_pen(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for parent in (tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(NodewiseError, match="does not exist") as caught:
            open_store(f"sqlite:{parent}/store.db")
        assert caught.value.reason == Reason.INVALID_FIELD
    assert not (tmp_path / "nowhere").exists()


def test_many_may_create_the_same_file_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: open_store(str(tmp_path / "store.db")), range(8)))
    for number, store in enumerate(stores):
        store.append("job", f"s{number}", [batch(1, 1.0, commit=True)])
    assert stores[0].load("job").revision == 8
    for store in stores:
        store.close()
