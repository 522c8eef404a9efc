"""Traces in a bucket: held before they are acknowledged, whoever goes on, and whatever becomes of the storage."""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, wait_until
from profile_batches import batch, chunk
from s3_servers import S3Server
from stores import Opener, elsewhere, refused

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles.opening import open_store, open_traces
from nodewise.profiles.remote_traces import GARBAGE_S, RemoteTraceStore
from nodewise.profiles.s3_blobs import S3Blobs
from nodewise.profiles.store import AppendRequest, DeleteRequest, ProfileStore, StoreOptions
from nodewise.profiles.writer import StoreWriter

pytestmark = pytest.mark.stores

CONTENT = b"abcdefgh"
SHA256 = hashlib.sha256(CONTENT).hexdigest()
DAYS_S = 10 * GARBAGE_S


@pytest.fixture
def url(bucket: Callable[[], str]) -> str:
    return bucket()


@pytest.fixture
def machine(tmp_path: Path, url: str) -> Opener:
    """Each call is another machine that serves the same store."""
    return elsewhere("sqlite", tmp_path, str, url)


@pytest.fixture
def later(tmp_path: Path, url: str) -> Iterator[ProfileStore]:
    """A store at a time when all that is in the bucket is old."""
    traces = RemoteTraceStore(S3Blobs(url), tmp_path / "later", now=lambda: time.time() + DAYS_S)
    store = open_store(f"sqlite:{tmp_path / 'store.db'}", StoreOptions(traces=traces))
    yield store
    store.close()


def content(store: ProfileStore, sha256: str = SHA256) -> bytes:
    with store.traces.open(sha256) as file:
        return file.read()


def test_another_replica_goes_on_with_a_trace_that_one_began(machine: Opener) -> None:
    first, second, third = machine(), machine(), machine()
    first.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc"),))])
    second.append("job", "s", [batch(2, trace_chunks=(chunk(1, b"bcde"),))])
    first.append("job", "s", [batch(3, trace_chunks=(chunk(5, b"f"),))])
    second.append("job", "s", [batch(4, trace_chunks=(chunk(6, b"gh", last=True),), commit=True)])
    assert third.load("job").traces[0].content_sha256 == SHA256
    assert content(third) == content(first) == CONTENT
    for store in (first, second, third):
        store.close()


def test_pieces_go_once_their_trace_is_whole(machine: Opener, s3_server: S3Server, url: str) -> None:
    store = machine()
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abcd"),))])
    assert [path.parts[-3] for path in s3_server.files(url)] == ["staged"]
    store.append("job", "s", [batch(2, trace_chunks=(chunk(4, b"efgh", last=True),))])
    wait_until(lambda: [path.name for path in s3_server.files(url)] == [SHA256])
    store.close()


def test_large_traces_go_and_come_in_parts(url: str) -> None:
    blobs, data = S3Blobs(url), bytes(17 << 20)
    blobs.put("blobs/large", io.BytesIO(data), len(data))
    back = io.BytesIO()
    assert blobs.fetch("blobs/large", back)
    assert back.getvalue() == data
    assert not blobs.fetch("blobs/none", back)
    assert blobs.size_bytes("blobs/none") is None


def test_storage_that_is_away_is_told_to_who_needs_it(machine: Opener, s3_server: S3Server, logs: list[Any]) -> None:
    store = machine()
    brings = [batch(1, 1.0, trace_chunks=(chunk(0, CONTENT, last=True),), commit=True)]
    s3_server.stop()
    try:
        refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", brings)
        refused(Reason.STORE_UNAVAILABLE, store.append, "job", "s", brings)
        together = [AppendRequest("job", "s", brings), AppendRequest("other", "s", [batch(1, 1.0, commit=True)])]
        failed, stored = store.apply(together)
        assert isinstance(failed, NodewiseError)
        assert not isinstance(stored, NodewiseError)
        assert len(store.load("other").observations) == 1
        refused(Reason.STORE_UNAVAILABLE, store.traces.open, SHA256)
        assert [event["event"] for event in logs].count("trace_storage_unavailable") == 1
    finally:
        s3_server.start()
    store.append("job", "s", brings)
    assert len(store.load("job").observations) == 1
    assert content(store) == CONTENT
    assert logs[-1]["event"] == "trace_storage_available"
    store.close()


def test_a_key_that_is_refused_is_not_logged(machine: Opener, monkeypatch: pytest.MonkeyPatch, logs: list[Any]) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret-that-is-wrong")
    store = machine()
    error = refused(Reason.STORE_UNAVAILABLE, store.traces.open, SHA256)
    store.close()
    assert [event["text"] for event in logs] == ["403 (HTTP 403)"]
    assert "wrong" not in f"{error}{logs}"


def test_a_trace_that_went_before_its_batch_was_stored_is_kept_anew(machine: Opener, url: str) -> None:
    store = machine()
    request = AppendRequest("job", "s", [batch(1, trace_chunks=(chunk(0, CONTENT, last=True),), commit=True)], True)
    store.prepare(request)
    S3Blobs(url).remove([f"blobs/{SHA256}"])
    (failed,) = store.apply([request])
    assert isinstance(failed, NodewiseError)
    assert failed.reason == Reason.STORE_UNAVAILABLE
    store.append("job", "s", request.batches)
    assert content(store) == CONTENT
    store.close()


def test_copies_take_no_more_than_they_may(tmp_path: Path, machine: Opener, url: str) -> None:
    names = []
    store = machine()
    for number in range(4):
        data = bytes([number]) * 100
        names.append(hashlib.sha256(data).hexdigest())
        store.append("job", f"s{number}", [batch(1, trace_chunks=(chunk(0, data, last=True),), commit=True)])
    store.close()
    traces = open_traces(url, tmp_path / "small", cache_bytes=250)
    for name in (*names, names[0]):
        traces.open(name).close()
        wait_until(lambda: len(list((tmp_path / "small" / "blobs").glob("*/*"))) <= 2)
    traces.close()
    refused(Reason.INVALID_FIELD, open_traces(url, tmp_path / "small").open, "0" * 64)
    refused(Reason.INVALID_FIELD, open_traces(url, tmp_path / "small").open, "../../secret")


def test_what_was_written_for_nothing_goes(machine: Opener, later: ProfileStore, s3_server: S3Server, url: str) -> None:
    store = machine()
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, CONTENT, last=True),), commit=True)])
    store.append("job", "t", [batch(1, trace_chunks=(chunk(0, b"unfinished"),))])
    store.prepare(AppendRequest("job", "u", [batch(1, trace_chunks=(chunk(0, b"whole", last=True),))]))
    store.prepare(AppendRequest("job", "v", [batch(1, trace_chunks=(chunk(0, b"a part"),))]))
    store.close()
    assert len(s3_server.files(url)) == 4
    later.prepare(AppendRequest("job", "w", [batch(1, trace_chunks=(chunk(0, CONTENT, last=True),))]))
    wait_until(lambda: len(s3_server.files(url)) == 2)
    kept = [path.name.partition("-")[0] for path in s3_server.files(url)]
    assert sorted(kept) == sorted([SHA256, hashlib.sha256(b"unfinished").hexdigest()])


def test_a_trace_goes_with_the_last_profile_that_refers_to_it(tmp_path: Path, s3_server: S3Server, url: str) -> None:
    store = open_store("memory:", StoreOptions(traces=open_traces(url, tmp_path / "cache"), deleted_kept_s=0))
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, CONTENT, last=True),), commit=True)])
    assert s3_server.files(url)
    store.apply([DeleteRequest("job")])
    store.append("other", "s", [batch(1, 1.0)])
    assert not s3_server.files(url)
    store.close()


def test_batches_that_follow_each_other_without_waiting_stay_in_order(machine: Opener) -> None:
    store = machine()
    writer = StoreWriter(store)
    sent = [batch(number + 1, trace_chunks=(chunk(number, CONTENT[number : number + 1]),)) for number in range(7)]
    sent += [batch(8, trace_chunks=(chunk(7, b"h", last=True),)), batch(9, commit=True)]
    futures = [writer.append("job", "s", [each]) for each in sent]
    beside = writer.append("other", "s", [batch(1, 1.0, commit=True)])
    assert beside.result(PATIENCE_S).revision == 1
    assert [future.result(PATIENCE_S).durable_sequence_number for future in futures] == list(range(1, 10))
    writer.close()
    assert content(store) == CONTENT
    store.close()
    refused(Reason.STORE_UNAVAILABLE, writer.append("job", "x", sent[:1]).result, PATIENCE_S)


@pytest.mark.parametrize("where", ["s3://", "s3://b", "s3://Bucket/x", "s3://bucket/a b", "gs://bucket/x"])
def test_places_that_are_none_are_refused(where: str) -> None:
    assert refused(Reason.INVALID_FIELD, open_traces, where).violations[0].field == "traces"
