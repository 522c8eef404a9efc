"""The stores of traces."""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.traces import TraceStore, stage_name

STAGE = stage_name("uid", "session", "trace")
Opener = Callable[[], TraceStore]


@pytest.fixture(params=["temporary", "directory", "synced directory"])
def open_traces(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """For directories with a name each call is another process."""
    if request.param == "temporary":
        store = TraceStore(max_bytes=100)
        return lambda: store
    return lambda: TraceStore(tmp_path / "traces", max_bytes=100, sync_chunks="synced" in request.param)


def content(store: TraceStore, name: str) -> bytes:
    with store.open(name) as file:
        return file.read()


def test_chunks_become_a_blob_under_the_hash_of_its_bytes(open_traces: Opener) -> None:
    store = open_traces()
    assert store.write(STAGE, 0, 0, b"abc") == 3
    assert store.write(STAGE, 3, 3, b"def") == 6
    name = store.finish(STAGE, 6)
    assert name == hashlib.sha256(b"abcdef").hexdigest()
    assert store.finish(STAGE, 6) == name
    assert content(store, name) == b"abcdef"
    store.discard(STAGE)
    store.discard(STAGE)
    assert content(open_traces(), name) == b"abcdef"
    store.remove(name)
    store.remove(name)
    with pytest.raises(NodewiseError, match="must name a stored trace"):
        store.open(name)


def test_bytes_sent_again_must_be_the_same(open_traces: Opener) -> None:
    store = open_traces()
    store.write(STAGE, 0, 0, b"abc")
    assert store.write(STAGE, 3, 0, b"abc") == 3
    assert store.write(STAGE, 3, 1, b"bcd") == 4
    assert store.write(STAGE, 4, 1, b"b") == 4
    with pytest.raises(NodewiseError) as caught:
        store.write(STAGE, 4, 1, b"bX")
    assert caught.value.violations[0].field == "trace_chunks.data"
    assert store.finish(STAGE, 4) == hashlib.sha256(b"abcd").hexdigest()


@pytest.mark.parametrize("offset", [-1, 4])
def test_gaps_are_refused(open_traces: Opener, offset: int) -> None:
    store = open_traces()
    store.write(STAGE, 0, 0, b"abc")
    with pytest.raises(NodewiseError) as caught:
        store.write(STAGE, 3, offset, b"x")
    assert caught.value.violations[0].field == "trace_chunks.offset_bytes"


def test_a_trace_has_a_largest_size(open_traces: Opener) -> None:
    store = open_traces()
    store.write(STAGE, 0, 0, b"x" * 100)
    with pytest.raises(NodewiseError) as caught:
        store.write(STAGE, 100, 100, b"x")
    assert caught.value.reason == Reason.LIMIT_EXCEEDED
    assert caught.value.metadata == {"limit_bytes": "100"}


def test_what_was_never_acknowledged_is_replaced(open_traces: Opener) -> None:
    store = open_traces()
    store.write(STAGE, 0, 0, b"abc")
    store.write(STAGE, 3, 3, b"LOST")
    other = open_traces()
    other.write(STAGE, 3, 3, b"de")
    assert other.finish(STAGE, 5) == hashlib.sha256(b"abcde").hexdigest()


def test_bytes_of_another_process_are_hashed_too(open_traces: Opener) -> None:
    store, other = open_traces(), open_traces()
    store.write(STAGE, 0, 0, b"abc")
    other.write(STAGE, 3, 3, b"def")
    store.write(STAGE, 6, 6, b"g")
    assert store.finish(STAGE, 7) == hashlib.sha256(b"abcdefg").hexdigest()


def test_a_doubted_write_of_equal_length_is_not_taken_for_the_new_one(open_traces: Opener) -> None:
    store, other = open_traces(), open_traces()
    store.write(STAGE, 0, 0, b"abc")
    store.write(STAGE, 3, 3, b"OLD")
    store.doubt(STAGE)
    other.write(STAGE, 3, 3, b"new")
    store.write(STAGE, 6, 6, b"!")
    assert store.finish(STAGE, 7) == hashlib.sha256(b"abcnew!").hexdigest()


@pytest.mark.parametrize("settled", [0, 2])
def test_a_blob_does_not_change_when_its_stage_is_written_anew(open_traces: Opener, settled: int) -> None:
    store = open_traces()
    store.write(STAGE, 0, 0, b"ab")
    store.write(STAGE, 2, 2, b"cd")
    name = store.finish(STAGE, 4)  # and then the transaction fails
    store.doubt(STAGE)
    store.write(STAGE, settled, settled, b"XYZ")
    again = store.finish(STAGE, settled + 3)
    assert content(store, name) == b"abcd"
    assert content(store, again) == b"ab"[:settled] + b"XYZ"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_temporary_directory_comes_with_the_first_trace_and_goes_with_the_store(temporary: Path) -> None:
    store = TraceStore()
    store.close()
    assert not list(temporary.iterdir())
    store.write(STAGE, 0, 0, b"abc")
    (made,) = temporary.iterdir()
    assert (store.root, stat.S_IMODE(made.stat().st_mode)) == (made, 0o700)
    assert content(store, store.finish(STAGE, 3)) == b"abc"
    store.close()
    store.close()
    assert not list(temporary.iterdir())


def test_a_temporary_directory_goes_with_a_store_that_is_never_closed(temporary: Path) -> None:
    store = TraceStore()
    store.write(STAGE, 0, 0, b"abc")
    assert list(temporary.iterdir())
    del store
    gc.collect()
    assert not list(temporary.iterdir())


def test_a_directory_that_was_named_stays(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    store.write(STAGE, 0, 0, b"abc")
    name = store.finish(STAGE, 3)
    store.close()
    assert content(TraceStore(tmp_path), name) == b"abc"


def test_names_are_never_paths(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    (tmp_path / "secret").write_text("x")
    for name in ("../secret", "secret", "A" * 64, "", "0" * 63):
        with pytest.raises(NodewiseError):
            store.open(name)
        store.remove(name)
        with pytest.raises(ValueError, match="stage_name"):
            store.write(name, 0, 0, b"x")
    assert (tmp_path / "secret").exists()
    assert len({stage_name(*parts) for parts in (("a", "b", "c"), ("ab", "", "c"), ("a", "bc", ""))}) == 3


def test_without_links_the_blob_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object) -> NoReturn:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    store = TraceStore(tmp_path)
    store.write(STAGE, 0, 0, b"abc")
    assert content(store, store.finish(STAGE, 3)) == b"abc"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blobs", "staged"]


def test_a_stage_that_lost_bytes_is_an_error(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    store.write(STAGE, 0, 0, b"abc")
    with pytest.raises(OSError, match="short"):
        store.finish(STAGE, 5)


def test_hashes_of_more_traces_than_are_remembered(tmp_path: Path) -> None:
    store = TraceStore(tmp_path)
    stages = [stage_name("uid", "session", str(number)) for number in range(300)]
    for stage in stages:
        store.write(stage, 0, 0, stage.encode())
    assert len(store._hashes) < 300
    for stage in (stages[0], stages[-1]):
        assert store.finish(stage, 64) == hashlib.sha256(stage.encode()).hexdigest()
