"""Backups of stores with every kind of evidence, into stores of every kind, by the commands that people give."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from full_stores import as_asked, fill_up, go_on
from profile_batches import batch, chunk
from s3_servers import S3Server
from typer.testing import CliRunner

from nodewise.profiles.opening import open_store, open_traces
from nodewise.profiles.reader import ProfileReader
from nodewise.profiles.store import ProfileStore, StoreOptions
from nodewise_cli.app import app

Places = Callable[[str], list[str]]


@pytest.fixture
def place(tmp_path: Path, database: Callable[[], str], bucket: Callable[[], str]) -> Places:
    """The options that name an empty store of a kind."""

    def named(kind: str) -> list[str]:
        if kind == "postgresql with s3":
            return ["--store", database(), "--traces", bucket()]
        return ["--store", f"sqlite:{tmp_path / f'{kind}.db'}"]

    return named


def opened(options: list[str]) -> ProfileStore:
    traces = open_traces(options[3]) if len(options) > 2 else None
    return open_store(options[1], StoreOptions(traces=traces))


def ran(*arguments: str | Path, status: int = 0) -> dict[str, Any]:
    result = CliRunner().invoke(app, [str(argument) for argument in (*arguments, "--json")])
    assert result.exit_code == status, result.stderr
    found: dict[str, Any] = json.loads(result.stdout or result.stderr.splitlines()[-1])
    told: dict[str, Any] = found.get("error", found)
    return told


@pytest.fixture
def full(place: Places) -> list[str]:
    options = place("full")
    store = opened(options)
    fill_up(store)
    store.close()
    return options


def asked(options: list[str]) -> Any:
    store = opened(options)
    try:
        return as_asked(store)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("first", "second"), [("first", "second"), pytest.param("postgresql with s3", "back", marks=pytest.mark.stores)]
)
def test_a_backup_of_everything_comes_back_in_a_store_of_any_kind(
    tmp_path: Path, place: Places, full: list[str], first: str, second: str
) -> None:
    before = asked(full)
    made = ran("backup", tmp_path / "one", *full)
    assert (made["profiles"], made["traces"], made["copied_bytes"]) == (3, 3, 38)
    assert ran("verify", tmp_path / "one")["problems"] == []
    there, back = place(first), place(second)
    assert ran("restore", tmp_path / "one", *there)["rows"] == made["rows"]
    assert asked(there) == before
    assert ran("verify", *there)["problems"] == []
    ran("backup", tmp_path / "two", *there)
    ran("restore", tmp_path / "two", *back)
    assert asked(back) == before
    for options in (there, back):
        store = opened(options)
        go_on(store)
        store.close()
    assert ran("verify", *back)["problems"] == []


@pytest.mark.stores
def test_a_store_is_copied_into_one_of_another_kind(place: Places, full: list[str]) -> None:
    there = place("postgresql with s3")
    ran("copy", there[1], "--to-traces", there[3], *full)
    assert asked(there) == asked(full)
    back = place("copied")
    ran("copy", back[1], *there)
    assert asked(back) == asked(full)
    refused = ran("copy", back[1], *full, status=2)
    assert "not empty" in refused["message"]


def test_traces_of_an_earlier_backup_are_not_copied_again(tmp_path: Path, full: list[str]) -> None:
    ran("backup", tmp_path / "one", *full)
    assert ran("backup", tmp_path / "two", "--since", tmp_path / "one", *full)["copied_bytes"] == 7, "what is staged"
    shutil.rmtree(tmp_path / "one")
    assert "not a backup" in ran("backup", tmp_path / "three", "--since", tmp_path / "one", *full, status=2)["message"]
    assert ran("verify", tmp_path / "two")["problems"] == []


def test_a_backup_that_was_interrupted_goes_on(
    tmp_path: Path, full: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    assert "No space left" in ran("backup", tmp_path / "one", *full, status=1)["message"]
    monkeypatch.undo()
    assert not (tmp_path / "one").exists()
    assert "incomplete" in ran("restore", tmp_path / "one.partial", *full, status=2)["message"]
    assert ran("backup", tmp_path / "one", *full)["copied_bytes"] == 7, "what is staged"
    assert ran("verify", tmp_path / "one")["problems"] == []
    assert "exists" in ran("backup", tmp_path / "one", *full, status=2)["message"]


def changed(backup: Path, **values: Any) -> bytes:
    """Change a manifest as who knows its form would, to fit what the backup holds now; returns what it was."""
    path = backup / "manifest.json"
    before = path.read_bytes()
    about = {**orjson.loads(before), **values, "store_sha256": sha256((backup / "store.db").read_bytes()).hexdigest()}
    del about["digest"]
    about["digest"] = sha256(orjson.dumps(about, option=orjson.OPT_SORT_KEYS)).hexdigest()
    path.write_bytes(orjson.dumps(about))
    return before


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("UPDATE profiles SET profile_id = '../../y' WHERE profile_id = 'jobs/full'", "profile_id"),
        ("UPDATE profiles SET profile_id = 'a/../../y' WHERE profile_id = 'jobs/full'", "profile_id"),
        ("UPDATE batches SET payload = replace(payload, '3.0', '4.0')", "cannot be read"),
    ],
)
def test_what_no_server_would_have_taken_is_not_restored(
    tmp_path: Path, place: Places, full: list[str], statement: str, word: str
) -> None:
    ran("backup", tmp_path / "one", *full)
    with sqlite3.connect(tmp_path / "one" / "store.db") as connection:
        connection.execute(statement)
    connection.close()
    changed(tmp_path / "one")
    assert word in ran("restore", tmp_path / "one", *place("empty"), status=1)["message"]
    assert any(word in problem for problem in ran("verify", tmp_path / "one", status=1)["problems"])


def test_batches_that_were_changed_with_their_hashes_are_checked_as_if_they_were_sent(
    tmp_path: Path, place: Places, full: list[str]
) -> None:
    ran("backup", tmp_path / "one", *full)
    with sqlite3.connect(tmp_path / "one" / "store.db") as connection:
        connection.create_function("sha256", 1, lambda payload: sha256(payload).digest())
        connection.execute(
            "UPDATE batches SET payload = CAST(replace(CAST(payload AS TEXT), '\"steps_per_s\":3.0',"
            " '\"steps_per_s\":-3.0') AS BLOB)"
        )
        connection.execute("UPDATE batches SET content_hash = sha256(payload)")
        connection.execute("UPDATE profiles SET digest = NULL")
    connection.close()
    changed(tmp_path / "one")
    assert "steps_per_second" in ran("restore", tmp_path / "one", *place("empty"), status=1)["message"]


def test_a_backup_that_was_changed_does_not_slip_in(tmp_path: Path, place: Places, full: list[str]) -> None:
    digest = ran("backup", tmp_path / "one", *full)["digest"]
    manifest = tmp_path / "one" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b'"profiles": 3', b'"profiles": 4'))
    assert "was changed" in ran("restore", tmp_path / "one", *place("first"), status=1)["message"]
    with sqlite3.connect(tmp_path / "one" / "store.db") as connection:
        connection.execute(
            "INSERT INTO tokens VALUES ('added', 'x', '', '[\"admin\"]', '[]', 1, 0, 0)",
        )
    connection.close()
    changed(tmp_path / "one")
    assert "digest" in ran("restore", "--digest", digest, tmp_path / "one", *place("second"), status=1)["message"]
    (token,) = ran("restore", tmp_path / "one", *place("third"))["tokens"]
    assert token == "added (admin; profiles of all names)"


def test_only_their_owner_reads_a_store_and_its_backup(tmp_path: Path, full: list[str]) -> None:
    before = os.umask(0)
    try:
        store = opened(full)
        store.append("jobs/more", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"whole", last=True),), commit=True)])
        ran("backup", tmp_path / "one", *full)
        there = [path for name in ("full.db*", "one") for path in tmp_path.glob(name)]
        there += [path for folder in there for path in folder.rglob("*")]
        store.close()
    finally:
        os.umask(before)
    assert {path.name for path in there} > {"full.db", "full.db-wal", "full.db-shm", "full.db-id", "manifest.json"}
    assert [path for path in there if path.exists() and path.stat().st_mode & 0o077] == []


def test_a_store_that_cannot_be_read_is_damaged(tmp_path: Path, full: list[str]) -> None:
    path = tmp_path / "full.db"
    with sqlite3.connect(path) as connection:
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'traces'")
        ((size,),) = connection.execute("PRAGMA page_size")
    connection.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert ran("verify", *full, status=1)["problems"]


def test_what_cannot_be_restored_leaves_the_store_empty(tmp_path: Path, place: Places, full: list[str]) -> None:
    ran("backup", tmp_path / "one", *full)
    assert "not empty" in ran("restore", tmp_path / "one", *full, status=2)["message"]
    stored = tmp_path / "one" / "store.db"
    kept = stored.read_bytes()
    stored.write_bytes(kept[:-1])
    empty = place("empty")
    assert "store.db" in ran("restore", tmp_path / "one", *empty, status=1)["message"]
    assert "store.db" in ran("verify", tmp_path / "one", status=1)["problems"][0]
    stored.write_bytes(kept)
    for name, value, status, word in (("schema_version", 99, 2, "schema 99"), ("version", 3, 2, "format 3")):
        about = changed(tmp_path / "one", **{name: value})
        assert word in ran("restore", tmp_path / "one", *empty, status=status)["message"]
        (tmp_path / "one" / "manifest.json").write_bytes(about)
    damaged = next((tmp_path / "one" / "traces" / "blobs").rglob("*/*"))
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    (problem,) = ran("verify", tmp_path / "one", status=1)["problems"]
    assert damaged.name in problem
    assert damaged.name in ran("restore", tmp_path / "one", *empty, status=1)["message"]
    assert not (tmp_path / "empty.db").exists()
    assert "not a backup" in ran("verify", tmp_path, status=2)["message"]
    assert "no such file" in ran("verify", "--store", f"sqlite:{tmp_path / 'none.db'}", status=2)["message"]
    assert not (tmp_path / "none.db").exists()


def test_damage_of_a_store_is_found(tmp_path: Path, full: list[str]) -> None:
    folder = tmp_path / "full.db-traces"
    gone, changed = sorted(path for path in (folder / "blobs").rglob("*/*") if path.stat().st_size != 20)
    gone.unlink()
    changed.write_bytes(b"x" * changed.stat().st_size)
    shutil.rmtree(folder / "staged")
    with sqlite3.connect(tmp_path / "full.db") as connection:
        connection.execute("UPDATE profiles SET digest = '2:' || hex(randomblob(32)) WHERE profile_id = 'jobs/scored'")
        connection.execute("UPDATE batches SET payload = x'7b7d' WHERE session_key = 1 AND sequence_number = 1")
        connection.execute("DELETE FROM sessions WHERE session_id = 't'")
    found = ran("verify", *full, status=1)["problems"]
    for word in (gone.name, changed.name, "start of a trace", "jobs/scored", "jobs/full", "sessions is gone"):
        assert any(word in problem for problem in found), (word, found)
    quick = ran("verify", "--quick", *full, status=1)["problems"]
    assert any(gone.name in problem for problem in quick)
    assert not any(changed.name in problem for problem in quick)


@pytest.mark.stores
def test_storage_that_does_not_answer_says_nothing_of_a_store(
    place: Places, s3_server: S3Server, full: list[str]
) -> None:
    there = place("postgresql with s3")
    ran("copy", there[1], "--to-traces", there[3], *full)
    s3_server.stop()
    try:
        assert ran("verify", *there, status=3)["reason"] == "REFUSED"
    finally:
        s3_server.start()


@pytest.mark.stores
def test_replicas_that_run_follow_what_is_restored(
    tmp_path: Path, full: list[str], database: Callable[[], str]
) -> None:
    ran("backup", tmp_path / "one", *full)
    traces = str(tmp_path / "shared")
    url = database()
    ran("restore", tmp_path / "one", "--store", url, "--traces", traces)
    store = open_store(url, StoreOptions(traces=open_traces(traces)))
    reader = ProfileReader(store)
    store.append("jobs/full", "v", [batch(1, 9.0, commit=True)])
    later, generation = reader.get("jobs/full"), store.generation()
    database()
    ran("restore", tmp_path / "one", "--store", url, "--traces", traces)
    other = open_store(url, StoreOptions(traces=open_traces(traces)))
    other.append("jobs/full", "w", [batch(1, 8.0, commit=True)])
    now = other.generation()
    assert isinstance(now, int)
    assert isinstance(generation, int)
    assert now > generation
    store.check()
    _, changed = store.changes(generation)
    assert {each.profile_id for each in changed} == {"jobs/full", "jobs/gone", "jobs/scored"}
    kept = ProfileReader(other)
    kept._cache.put("jobs/full", (generation, later), 1)  # as a replica has it that was not restarted
    assert kept.get("jobs/full").digest == other.load("jobs/full").digest != later.digest
    store.close()
    other.close()
