"""Checks that a store is complete and undamaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from os import SEEK_END
from typing import Any

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.profiles import sql_reads as reads
from nodewise.profiles.backups.copying import referred_traces
from nodewise.profiles.codec import PayloadError
from nodewise.profiles.sql_incoming import unfinished_traces
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.traces import TraceStore, sha256_of

__all__ = ["Verdict", "verify_store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was checked, and the problems; no problems = the store is undamaged."""

    profiles: int = 0
    traces: int = 0
    trace_bytes: int = 0
    problems: tuple[str, ...] = ()


def verify_store(
    store: SqlProfileStore, *, content: bool = True, check: Callable[[Profile], str] = lambda _: ""
) -> Verdict:
    """Check every table, profile and trace of a store as of one moment, while it serves.

    Parameters
    ----------
    content : bool
        Whether traces are read, and not only their sizes checked.
    check : callable
        Returns the problem of a readable profile; empty = none.

    Raises
    ------
    NodewiseError
        STORE_UNAVAILABLE if the database, or the storage of traces, does not answer; its cause is ``corrupt`` where the
        database itself cannot be read.
    """
    with store.whole() as connection:
        for statement in connection.patient:
            connection.execute(statement)
        problems = [text for statement in connection.structure for text in _first_column(connection, statement)]
        profiles = _first_column(connection, "SELECT key FROM profiles WHERE revision > 0 ORDER BY key")
        for key in profiles:
            problems += _wrong_profile(connection, store.condition.types, key, check)
        traces = referred_traces(connection)
        for name, size in traces:
            problems += _wrong_trace(store.traces, name, size, content=content)
        problems += _wrong_stages(connection, store.traces)
    return Verdict(
        profiles=len(profiles),
        traces=len(traces),
        trace_bytes=sum(size for _, size in traces),
        problems=tuple(problems),
    )


def _first_column(connection: Connection, statement: str) -> list[Any]:
    return [row[0] for row in connection.execute(statement).fetchall()]


def _wrong_profile(
    connection: Connection, errors: tuple[type[Exception], ...], key: int, check: Callable[[Profile], str]
) -> Iterator[str]:
    row = reads.row_of(connection, key)
    faults: tuple[type[Exception], ...] = (*errors, PayloadError, ValueError, KeyError, TypeError)
    try:
        profile = reads.replay_profile(connection, row, row.profile_id, None)
    except faults as error:
        yield f"profile {row.profile_id} cannot be read ({type(error).__name__})"
        return
    if problem := check(profile):
        yield f"profile {row.profile_id!r}: {problem}"


def _wrong_trace(traces: TraceStore, name: str, size: int, *, content: bool) -> Iterator[str]:
    holds_it, sha256 = traces.holds(name), name
    if content and holds_it is not None:
        try:
            with traces.open(name) as file:
                sha256 = sha256_of(file)
        except OSError as error:
            yield f"trace {name} cannot be read ({type(error).__name__})"
            return
        except NodewiseError as error:
            if error.reason is not Reason.INVALID_FIELD:
                raise
            holds_it = None
    if holds_it != size:
        yield f"trace {name} has {holds_it or 0} of {size} bytes"
    elif sha256 != name:
        yield f"trace {name} is damaged: its bytes do not match its SHA-256"


def _wrong_stages(connection: Connection, traces: TraceStore) -> Iterator[str]:
    try:
        for trace in unfinished_traces(connection):
            size = 0
            with suppress(FileNotFoundError), traces.open_stage(trace) as file:
                size = file.seek(0, SEEK_END)
            if size < trace.size_bytes:
                yield f"the start of a trace ({trace.stage}) is missing"
    except (ValueError, KeyError, TypeError) as error:
        yield f"batches cannot be read ({type(error).__name__})"
