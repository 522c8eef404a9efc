"""Queries about traces in a bucket: the state of unfinished ones, and unreferenced ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import orjson

from nodewise.profiles.batches import TraceChunk
from nodewise.profiles.sql_reads import profile_row
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.store import AppendRequest
from nodewise.profiles.traces import Piece, UnfinishedTrace, stage_name

__all__ = ["brings_traces", "incoming_of", "pieces_of", "unfinished_folders", "unfinished_traces", "unreferenced_of"]

_ASKED_TOGETHER: Final = 500


def brings_traces(request: AppendRequest) -> bool:
    """Whether a request holds chunks of traces."""
    return any(batch.trace_chunks for batch in request.batches)


def incoming_of(
    connection: Connection, request: AppendRequest, pieces: Callable[[int, str], Sequence[Piece]]
) -> list[tuple[UnfinishedTrace, list[TraceChunk]]]:
    """A request's chunks by the trace that they continue; chunks that continue none are left to the transaction.

    Parameters
    ----------
    pieces : callable
        As :func:`pieces_of`, with a connection of its own.
    """
    profile = profile_row(connection, request.profile_id)
    key, durable, sizes = None, 0, {}
    if profile is not None:
        row = connection.execute(
            "SELECT key, durable FROM sessions WHERE profile_key = ? AND session_id = ?",
            (profile.key, request.session_id),
        ).fetchone()
        if row is not None:
            key, durable = row
            rows = connection.execute(
                "SELECT trace_id, size_bytes, finished_sequence_number FROM traces WHERE session_key = ?", (key,)
            )
            sizes = {trace_id: -1 if is_complete else size for trace_id, size, is_complete in rows}
    settled_bytes, finished_ids = dict(sizes), {trace_id for trace_id, size in sizes.items() if size < 0}
    chunks_by_trace: dict[str, list[TraceChunk]] = {}
    for batch in request.batches:
        for chunk in batch.trace_chunks if batch.sequence_number > durable else ():
            size = settled_bytes.get(chunk.trace_id, 0)
            if chunk.trace_id in finished_ids or not 0 <= chunk.offset_bytes <= size:
                continue
            settled_bytes[chunk.trace_id] = max(size, chunk.offset_bytes + len(chunk.data))
            chunks_by_trace.setdefault(chunk.trace_id, []).append(chunk)
            if chunk.last:
                finished_ids.add(chunk.trace_id)
    return [
        (
            UnfinishedTrace(
                stage="" if profile is None else stage_name(profile.uid, request.session_id, trace_id),
                folder=_folder(request.profile_id, request.session_id, trace_id),
                size_bytes=sizes.get(trace_id, 0),
                pieces=partial(pieces, key, trace_id) if key is not None else tuple,
            ),
            chunks,
        )
        for trace_id, chunks in chunks_by_trace.items()
    ]


def _folder(profile_id: str, session_id: str, trace_id: str) -> str:
    """Folder of the pieces of a trace, before its profile has a uid; a later profile of that name uses it too."""
    return stage_name(profile_id, session_id, trace_id)


def pieces_of(connection: Connection, session_key: int, trace_id: str) -> list[Piece]:
    """The settled chunks of a trace, in order."""
    payloads = connection.execute(
        "SELECT payload FROM batches WHERE session_key = ? ORDER BY sequence_number", (session_key,)
    )
    return [
        Piece(offset_bytes=chunk.get("offset_bytes", 0), size_bytes=chunk["size_bytes"], sha256=chunk["sha256"])
        for (payload,) in payloads
        if b'"trace_chunks"' in payload
        for chunk in orjson.loads(payload).get("trace_chunks", ())
        if chunk.get("id") == trace_id
    ]


_UNFINISHED: Final = """
SELECT p.profile_id, p.uid, s.session_id, t.trace_id, s.key, t.size_bytes FROM traces t
JOIN sessions s ON s.key = t.session_key JOIN profiles p ON p.key = s.profile_key
WHERE t.content_sha256 IS NULL ORDER BY t.key"""


def unfinished_folders(connection: Connection) -> set[str]:
    """Folders of pieces that a later batch may need."""
    rows = connection.execute(_UNFINISHED).fetchall()
    return {_folder(profile_id, session_id, trace_id) for profile_id, _, session_id, trace_id, _, _ in rows}


def unfinished_traces(connection: Connection) -> list[UnfinishedTrace]:
    """All unfinished traces with stored bytes."""
    return [
        UnfinishedTrace(
            stage=stage_name(uid, session_id, trace_id),
            folder=_folder(profile_id, session_id, trace_id),
            size_bytes=size,
            pieces=partial(pieces_of, connection, session_key, trace_id),
        )
        for profile_id, uid, session_id, trace_id, session_key, size in connection.execute(_UNFINISHED).fetchall()
        if size
    ]


def unreferenced_of(connection: Connection, names: Sequence[str]) -> list[str]:
    """Those of some traces that no row refers to."""
    referred_names: set[str] = set()
    for first in range(0, len(names), _ASKED_TOGETHER):
        batch = names[first : first + _ASKED_TOGETHER]
        marks = ", ".join("?" * len(batch))
        rows = connection.execute(
            f"SELECT DISTINCT content_sha256 FROM traces WHERE content_sha256 IN ({marks})",  # noqa: S608
            batch,
        )
        referred_names.update(name for (name,) in rows)
    return [name for name in names if name not in referred_names]
