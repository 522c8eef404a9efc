"""From a URL to a store, and what is no store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from profile_batches import batch

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.digest import content_digest
from nodewise.profiles.opening import StoreOptions, open_store
from nodewise.profiles.sql_schema import APPLICATION_ID, SCHEMA_VERSION
from nodewise.profiles.store import Evidence, ProfileStore, StoreFormatError
from nodewise.profiles.traces import TraceStore

FILE_OF_0_1 = Path(__file__).parents[2] / "fixtures" / "stores" / "store_of_0_1.sql"
DIGESTS_OF_0_1 = [
    "481039895de602fe768752b54af21bac17708fee6ea3de094540186c27adb4b8",
    "5687adb5d5a3b4cf47ebd0d2c115a82463b5a0913c751c5d19308ca8c9595288",
    "78af219dc620a7dc1e8e327dd1adc779935603093b6e6fcc7881ca6d979e0fe7",
]
"""Of the revisions of its profile, as 0.1 computed them."""


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
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "here.db",
        "here.db-id",
        "there.db",
        "there.db-id",
    ]


def test_memory_is_gone_with_the_store() -> None:
    one, other = open_store("memory:"), open_store("memory:")
    one.append("job", "s", [batch(1, 1.0, commit=True)])
    assert other.list() == ()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://host/db", "mysql: is not a known scheme"),
        ("memory:x", "has no path"),
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
        StoreOptions(durability="hope")  # type: ignore[arg-type]  # as it comes from a setting


def test_traces_may_live_elsewhere(tmp_path: Path) -> None:
    traces = TraceStore(tmp_path)
    store = open_store("memory:", StoreOptions(traces=traces))
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


def of_0_1(path: Path, version: int = 2) -> Path:
    """A store as release 0.1 wrote it; its first version kept no scores."""
    with sqlite3.connect(path) as connection:
        connection.executescript(FILE_OF_0_1.read_text(encoding="utf-8"))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if version == 1:
            connection.executescript("DROP TABLE unscored; DROP TABLE scores")
            connection.execute("UPDATE meta SET value = 1 WHERE name = 'schema_version'")
    connection.close()
    return path


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_0_1_opens_and_has_lost_nothing(tmp_path: Path, version: int) -> None:
    store = open_store(str(of_0_1(tmp_path / "store.db", version)))
    (found,) = store.list()
    profile = store.load("kept")
    assert (profile.uid, profile.revision) == (found.uid, found.revision) == ("ace456604d4d4383bba761b845ce38f9", 3)
    assert profile.digest == found.digest == content_digest(profile) == DIGESTS_OF_0_1[-1]
    assert [store.load("kept", None, revision).digest for revision in (1, 2, 3)] == DIGESTS_OF_0_1
    assert (found.create_time_s, found.update_time_s) == (1_700_000_001.0, 1_700_000_003.0)
    assert profile.observations.number.tolist() == [1, 3, 4, 5, 6]
    assert profile.phase_timing_numbers.tolist() == [1, 2, 3]
    assert [trace.size_bytes for trace in profile.traces] == [5]
    assert store.scores.waiting() == (1 if version == 2 else 0)
    assert store.tokens is not None
    assert store.tokens.all() == (0, ())
    # Requests and sessions of then go on: what was sent may be sent again, and what was staged is committed.
    assert store.retract("kept", "r", Evidence.of([2]), "throttled").revision == 3
    status = store.open_session("kept", "s")
    assert (status.durable_sequence_number, status.committed_sequence_number) == (2, 1)
    assert store.append("kept", "s", [batch(3, commit=True)]).revision == 4
    assert store.load("kept").phase_timing_numbers.tolist() == [1, 2, 3, 4, 5, 6]
    assert store.append("staged", "s", [batch(2, commit=True)]).revision == 1
    store.close()


def test_keys_of_then_are_not_used_again(tmp_path: Path) -> None:
    path = of_0_1(tmp_path / "store.db")
    store = open_store(str(path))
    store.append("new", "s", [batch(1, 1.0, commit=True)])
    store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT key FROM profiles WHERE profile_id = 'new'").fetchone() == (4,)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_many_may_open_a_file_of_0_1_at_once(tmp_path: Path) -> None:
    path = of_0_1(tmp_path / "store.db", version=1)
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: open_store(str(path)), range(4)))
    for number, each in enumerate(stores, start=2):
        each.append("kept", "t", [batch(number, 1.0, commit=True)])
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


def entries(*values: str) -> Callable[..., EntryPoints]:
    """Stands in for the distributions that are installed."""
    found = EntryPoints(EntryPoint("Theirs", value, "nodewise.stores") for value in values)
    return lambda group: found.select(group=group)


def test_a_store_of_an_installed_distribution_is_opened_by_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, StoreOptions]] = []

    def opening(url: str, options: StoreOptions) -> ProfileStore:
        asked.append((url, options))
        return open_store("memory:")

    monkeypatch.setattr("nodewise.profiles.batches.opening", opening, raising=False)
    monkeypatch.setattr("nodewise.profiles.opening.entry_points", entries("nodewise.profiles.batches:opening"))
    open_store("theirs://somewhere", StoreOptions(scored=False)).close()
    assert [(url, options.scored, options.durability) for url, options in asked] == [
        ("theirs://somewhere", False, "process")
    ]


@pytest.mark.parametrize(
    ("values", "says"),
    [(("a:x", "b:x"), "several distributions"), (("nodewise.no_module:x",), "cannot be loaded")],
)
def test_a_store_that_cannot_be_loaded_is_told(
    values: tuple[str, ...], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nodewise.profiles.opening.entry_points", entries(*values))
    with pytest.raises(NodewiseError) as caught:
        open_store("theirs://somewhere")
    assert caught.value.violations[0].field == "store"
    assert says in caught.value.violations[0].description
