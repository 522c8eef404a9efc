"""Copying all content of a store into an empty one, of any kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from nodewise.profiles.sql_incoming import unfinished_traces
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_schema import TABLES
from nodewise.profiles.sql_store import SqlProfileStore

__all__ = ["CopyError", "CopyFigures", "copy_store", "referred_traces"]

_PAGE: Final = 500
_DROPPED: Final = {"batches": "key"}
"""Columns of SQLite files of earlier releases that are not copied."""


class CopyError(Exception):
    """A copy, backup or restore failed; the text is for the operator.

    Attributes
    ----------
    of_input : bool
        Whether other arguments could succeed.
    """

    def __init__(self, text: str, *, of_input: bool = True) -> None:
        super().__init__(text)
        self.of_input = of_input


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFigures:
    """What a copy wrote to a store.

    Attributes
    ----------
    copied_bytes : int
        Bytes of traces, without those that were there already.
    generation : int
        Generation that the store continues from.
    tokens : tuple of str
        Tokens that have not ended, with their rights.
    """

    profiles: int
    rows: int
    traces: int
    trace_bytes: int
    copied_bytes: int
    generation: int
    tokens: tuple[str, ...]


def copy_store(
    source: SqlProfileStore,
    target: SqlProfileStore,
    *,
    same_store: bool | None = None,
    now: Callable[[], float] = time.time,
) -> CopyFigures:
    """Copy everything, as of one moment, into an empty store: all rows or none. Traces are copied first.

    The target's generation goes on from the nanoseconds since 1970, if that is more than both had: so it is newer
    than any that a replica saw before, and every profile counts as changed.

    Parameters
    ----------
    same_store : bool or None
        Whether the target takes the source's identity; None = only if it is a database, which replicas may have
        open all the while. A new file is a new store.

    Raises
    ------
    CopyError
        If the target is not empty. NodewiseError and OSError as stores raise them.
    """
    with source.whole() as rows:
        for statement in rows.patient:
            rows.execute(statement)
        with target.whole() as connection:
            _refuse_full(connection)
        traces = referred_traces(rows)
        row_count = 0
        for name, size in traces:
            if target.traces.holds(name) != size:
                with source.traces.open(name) as file:
                    target.traces.keep(name, file)
                row_count += size
        for trace in unfinished_traces(rows):
            with source.traces.open_stage(trace) as file:
                target.traces.keep_stage(trace, file)
            row_count += trace.size_bytes
        meta = dict(rows.execute("SELECT name, value FROM meta").fetchall())
        with target.fill() as connection:
            for statement in connection.patient:
                connection.execute(statement)
            _refuse_full(connection)
            count = sum(_copy_table(rows, connection, table) for table in TABLES)
            if (connection.dialect == "postgresql" if same_store is None else same_store) and "store_id" in meta:
                connection.execute("UPDATE meta SET value = ? WHERE name = 'store_id'", (meta["store_id"],))
            generation = _moved_on(connection, meta["generation"], now())
            (profiles,) = connection.execute("SELECT count(*) FROM profiles WHERE revision > 0").fetchone()
    return CopyFigures(
        profiles=profiles,
        rows=count,
        traces=len(traces),
        trace_bytes=sum(size for _, size in traces),
        copied_bytes=row_count,
        generation=generation,
        tokens=tuple(_tokens(target, now())),
    )


def referred_traces(connection: Connection) -> list[tuple[str, int]]:
    """The hash and the size in bytes of every trace that rows refer to, each once."""
    return connection.execute(
        "SELECT content_sha256, max(size_bytes) FROM traces WHERE content_sha256 IS NOT NULL"
        " GROUP BY content_sha256 ORDER BY content_sha256"
    ).fetchall()


def _refuse_full(connection: Connection) -> None:
    for table in TABLES:
        if connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:  # noqa: S608
            raise CopyError(f"the store is not empty (it has {table}); name a store that does not exist yet")


def _copy_table(source: Connection, target: Connection, table: str) -> int:
    """Copy the rows of a table; returns how many."""
    names = [column[0] for column in source.execute(f"SELECT * FROM {table} LIMIT 0").description]  # noqa: S608
    columns = [name for name in names if name != _DROPPED.get(table)]
    overriding = target.overriding if "key" in columns else ""
    marks = ", ".join("?" * len(columns))
    statement = f"INSERT INTO {table} ({', '.join(columns)}){overriding} VALUES ({marks})"  # noqa: S608  # the schema's
    count = 0
    for page in _pages(source, table, columns):
        target.executemany(statement, page)
        count += len(page)
    if overriding:  # keys that were used since the moment of the copy are not used again
        target.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'key'), max(key) + 1000) FROM {table}")  # noqa: S608
    return count


def _pages(source: Connection, table: str, columns: Sequence[str]) -> Iterator[list[Any]]:
    """The rows of a table in the order of its key, a page at a time: the table may not fit into memory."""
    key = TABLES[table]
    places = [columns.index(column) for column in key.split(", ")]
    begin, end = f"SELECT {', '.join(columns)} FROM {table}", f"ORDER BY {key} LIMIT {_PAGE}"  # noqa: S608
    after = f"WHERE ({key}) > ({', '.join('?' * len(places))})"
    page = source.execute(f"{begin} {end}").fetchall()
    while page:
        yield page
        page = source.execute(f"{begin} {after} {end}", [page[-1][place] for place in places]).fetchall()


def _moved_on(connection: Connection, generation: int, now_s: float) -> int:
    (own,) = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    before = max(own, generation, int(now_s * 1e9))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (before,))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'tokens'", (before,))
    connection.execute("UPDATE profiles SET changed = ?", (before + 1,))
    return int(connection.execute(connection.counting).fetchall()[0][0])


def _tokens(store: SqlProfileStore, now_s: float) -> Iterator[str]:
    for token in store.tokens.all()[1]:
        if not token.has_ended(now_s):
            roles, prefixes = ", ".join(token.roles), ", ".join(token.prefixes)
            yield f"{token.token_id} ({roles}; profiles {prefixes or 'of all names'})"
