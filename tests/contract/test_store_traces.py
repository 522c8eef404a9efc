"""Traces in every profile store: they come in chunks and are kept under their hash."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from profile_batches import batch, chunk
from stores import refused

from nodewise.domain.errors import Reason
from nodewise.profiles.batches import TraceChunk
from nodewise.profiles.digest import content_digest
from nodewise.profiles.store import ProfileStore


@pytest.fixture
def store(traced: ProfileStore) -> ProfileStore:
    """Wherever its traces are."""
    return traced


def test_traces_are_kept_under_their_hash_from_the_commit_on(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, 1.0, trace_chunks=(chunk(0, b"abc"),))])
    store.append("job", "s", [batch(2, trace_chunks=(chunk(3, b"def", last=True), chunk(0, b"x", "../..", last=True)))])
    refused(Reason.PROFILE_NOT_FOUND, store.load, "job")
    store.append("job", "s", [batch(3, commit=True)])
    first, second = store.load("job").traces
    assert first.content_sha256 == hashlib.sha256(b"abcdef").hexdigest()
    assert (first.format, first.rank, first.world_size, first.size_bytes) == ("kineto", 0, 2, 6)
    assert second.content_sha256 == hashlib.sha256(b"x").hexdigest()
    assert store.load("job").digest != content_digest(replace(store.load("job"), traces=()))


def test_the_same_trace_twice_is_one_reference(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    known = store.load("job")
    store.append("job", "t", [batch(1, trace_chunks=(chunk(0, b"abc", last=True),), commit=True)])
    assert len(store.load("job").traces) == len(store.load("job", known).traces) == 1


def test_half_a_trace_is_never_committed(store: ProfileStore) -> None:
    sent = batch(1, trace_chunks=(chunk(0, b"abc"),), commit=True)
    assert refused(Reason.INVALID_FIELD, store.append, "job", "s", [sent]).violations[0].field == "commit"
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abd"),))])
    refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(2, commit=True)])
    store.append("job", "s", [batch(2, trace_chunks=(chunk(3, b"e", last=True),), commit=True)])
    assert store.load("job").traces[0].content_sha256 == hashlib.sha256(b"abde").hexdigest()


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (chunk(4, b"x"), "offset_bytes"),
        (chunk(-1, b"x"), "offset_bytes"),
        (chunk(0, b"abx"), "data"),
        (chunk(1, b"", ""), "trace_id"),
        (chunk(0, b"", "new", last=True), "data"),
        (replace(chunk(0, b"x", "new"), format=""), "format"),
        (replace(chunk(0, b"x", "new"), world_size=-1), "world_size"),
        (replace(chunk(0, b"x", "new"), rank=-2), "rank"),
        (replace(chunk(0, b"x", "new"), rank=2), "rank"),
        (chunk(1, b"y", "done"), "trace_id"),
    ],
)
def test_chunks_that_do_not_continue_their_trace_are_refused(store: ProfileStore, bad: TraceChunk, field: str) -> None:
    status = store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc"), chunk(0, b"z", "done", last=True)))])
    sent = batch(2, trace_chunks=(chunk(3, b"de"), bad)) if bad.offset_bytes != 4 else batch(2, trace_chunks=(bad,))
    error = refused(Reason.INVALID_FIELD, store.append, "job", "s", [sent])
    assert error.violations[0].field.startswith("trace_chunks")
    assert error.violations[0].field.endswith(field)
    assert store.open_session("job", "s") == status
    # What was refused left nothing behind: other bytes may come, and bytes sent again may overlap.
    store.append("job", "s", [batch(2, trace_chunks=(chunk(1, b"bcXY", last=True),), commit=True)])
    assert hashlib.sha256(b"abcXY").hexdigest() in {trace.content_sha256 for trace in store.load("job").traces}


def test_a_trace_that_ended_in_a_refused_append_may_end_again(store: ProfileStore) -> None:
    store.append("job", "s", [batch(1, trace_chunks=(chunk(0, b"abc"), chunk(0, b"abc", "other")))])
    ends, wrong = chunk(3, b"d", last=True), chunk(0, b"X", "other")
    refused(Reason.INVALID_FIELD, store.append, "job", "s", [batch(2, trace_chunks=(ends, wrong))])
    right = chunk(3, b"e", "other", last=True)
    store.append("job", "s", [batch(2, trace_chunks=(ends, right), commit=True)])
    contents = []
    for trace in store.load("job").traces:
        with store.traces.open(trace.content_sha256) as file:
            contents.append(file.read())
    assert contents == [b"abcd", b"abce"]
