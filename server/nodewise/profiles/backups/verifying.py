"""Whether all of a store, or of a backup, is there and as it was written."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import SEEK_END
from typing import Any, Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.backups.contents import Contents, StoreContents, StoredTrace, digests_of
from nodewise.profiles.backups.directory import BackupContents, BackupError
from nodewise.profiles.backups.filling import fill
from nodewise.profiles.backups.forms import forms_of
from nodewise.profiles.codec import PayloadError
from nodewise.profiles.opening import open_store
from nodewise.profiles.sql_reads import ProfileRow
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.traces import Unfinished

__all__ = ["Verdict", "verify_backup", "verify_store"]

_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was looked at, and what was found wrong; nothing = all is as it was written."""

    profiles: int
    traces: int
    trace_bytes: int
    problems: tuple[str, ...]


def verify_store(store: SqlProfileStore, *, content: bool = True) -> Verdict:
    """Look at every table, profile and trace of a store as it is at one moment, while it serves.

    Parameters
    ----------
    content : bool
        Whether traces are read, and not only their sizes asked for.

    Raises
    ------
    NodewiseError
        STORE_UNAVAILABLE if the database, or the storage of traces, does not answer.
    """
    problems: list[str] = []
    with store.whole() as connection:
        contents = StoreContents(store, connection)
        for statement in forms_of(connection).wrong:
            problems += _found(connection, statement)
        profiles = _found(connection, "SELECT key FROM profiles WHERE revision > 0 ORDER BY key")
        problems += [key for key in profiles if isinstance(key, str)]
        for key in profiles:
            problems += _wrong_profile(connection, key) if isinstance(key, int) else ()
        traces = contents.traces()
        for trace in traces:
            held = trace.size_bytes if content else store.traces.holds(trace.content_sha256)
            if held != trace.size_bytes:
                problems.append(f"trace {trace.content_sha256} has {held or 0} of {trace.size_bytes} bytes")
            elif content:
                problems += _wrong_trace(contents, trace)
        for arriving in contents.unfinished():
            problems += _wrong_stage(contents, arriving)
    return _verdict(len(profiles), traces, problems)


def verify_backup(contents: BackupContents, *, content: bool = True) -> Verdict:
    """Look at every file of a backup, and at every profile by bringing the rows back into memory.

    Parameters
    ----------
    content : bool
        Whether traces are read, and not only their sizes asked for.
    """
    problems = list(contents.wrong())
    profiles = 0
    if not problems:
        profiles, wrong = _brought_back(contents)
        problems += wrong
    traces = contents.traces()
    for trace in traces:
        problems += _wrong_trace(contents, trace, content=content)
    for arriving in contents.unfinished():
        problems += _wrong_stage(contents, arriving)
    return _verdict(profiles, traces, problems)


class _RowsAlone:
    """The contents of a backup without its traces."""

    def __init__(self, contents: BackupContents) -> None:
        self.schema_version = contents.schema_version
        self.generation = contents.generation
        self.store_id = contents.store_id
        self.tables = contents.tables
        self.trace = contents.trace
        self.staged = contents.staged

    def traces(self) -> Sequence[StoredTrace]:
        return ()

    def unfinished(self) -> Sequence[Unfinished]:
        return ()


def _brought_back(contents: BackupContents) -> tuple[int, list[str]]:
    """How many profiles there are, and which are not those that the store had."""
    store = open_store("memory:")
    assert isinstance(store, SqlProfileStore)
    try:
        fill(store, _RowsAlone(contents))
        with store.whole() as connection:
            found = {digest.uid: digest for digest in digests_of(connection)}
    except BackupError as error:
        return 0, [str(error)]
    except NodewiseError:  # the log says which row
        return 0, ["the rows do not make profiles"]
    finally:
        store.close()
    stated = list(contents.digests())
    wrong = [f"profile {digest.profile_id} is not as it was" for digest in stated if found.get(digest.uid) != digest]
    return len(stated), wrong


def _found(connection: Connection, statement: str) -> list[Any]:
    """The first column of what a statement finds; that it cannot be read, as a text."""
    try:
        return [row[0] for row in connection.execute(statement).fetchall()]
    except connection.faults.types as error:
        return [f"the database cannot be read ({type(error).__name__})"]


def _wrong_profile(connection: Connection, key: int) -> Iterator[str]:
    row: ProfileRow | None = None
    faults: tuple[type[Exception], ...] = (*connection.faults.types, PayloadError, ValueError, KeyError, TypeError)
    try:
        row = reads.row_of(connection, key)
        digest = reads.replayed(connection, row, row.profile_id, None).digest
    except faults as error:
        yield f"profile {row.profile_id if row else key} cannot be read ({type(error).__name__})"
        return
    if reads.memorised(row.digest) not in (None, digest):
        yield f"profile {row.profile_id} is not what its digest was remembered of"


def _wrong_trace(contents: Contents, trace: StoredTrace, *, content: bool = True) -> Iterator[str]:
    hasher, size = hashlib.sha256(), 0
    try:
        with contents.trace(trace) as file:
            if not content:
                size = file.seek(0, SEEK_END)
            while content and (piece := file.read(_READ_BYTES)):
                hasher.update(piece)
                size += len(piece)
    except OSError as error:
        yield f"trace {trace.content_sha256} cannot be read ({type(error).__name__})"
        return
    except NodewiseError as error:
        if error.reason is not Reason.INVALID_FIELD:
            raise
        yield f"trace {trace.content_sha256} is gone"
        return
    if size != trace.size_bytes:
        yield f"trace {trace.content_sha256} has {size} of {trace.size_bytes} bytes"
    elif content and hasher.hexdigest() != trace.content_sha256:
        yield f"trace {trace.content_sha256} holds other bytes"


def _wrong_stage(contents: Contents, arriving: Unfinished) -> Iterator[str]:
    try:
        with contents.staged(arriving) as file:
            if file.seek(0, SEEK_END) >= arriving.size_bytes:
                return
    except FileNotFoundError:
        pass
    yield f"the beginning of a trace ({arriving.stage}) is gone"


def _verdict(profiles: int, traces: Sequence[StoredTrace], problems: list[str]) -> Verdict:
    return Verdict(
        profiles=profiles,
        traces=len(traces),
        trace_bytes=sum(trace.size_bytes for trace in traces),
        problems=tuple(problems),
    )
