"""Bringing all that a store or a backup holds into an empty store, whatever its kind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from nodewise.profiles.backups.contents import Contents, Rows
from nodewise.profiles.backups.directory import BackupError
from nodewise.profiles.backups.forms import Table, forms_of, ordered_tables
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_schema import SCHEMA_VERSION
from nodewise.profiles.sql_store import SqlProfileStore

__all__ = ["FillFigures", "fill"]

_TOGETHER: Final = 500
_MADE_ANEW: Final = frozenset({("batches", "key")})
"""Columns of one kind of database alone, whose values mean nothing elsewhere."""
_TEXTS: Final = frozenset({"text", "character varying"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FillFigures:
    """What a store was filled with; ``generation`` is the one that it counts from now."""

    profiles: int
    rows: int
    traces: int
    trace_bytes: int
    generation: int


def fill(store: SqlProfileStore, contents: Contents, *, now: Callable[[], float] = time.time) -> FillFigures:
    """Bring everything into an empty store: all of it, or no row. Traces come first; those that are there stay.

    The store's generation goes on from the nanoseconds since 1970, if that is more than both had: so it is newer
    than any that a replica saw before, also of what was written after a backup was made, and every profile counts as
    changed.

    Raises
    ------
    BackupError
        If the store is not empty, or the contents are of a newer schema. NodewiseError, OSError as stores raise them.
    """
    if contents.schema_version > SCHEMA_VERSION:
        raise BackupError(
            f"it has schema {contents.schema_version} and this release knows {SCHEMA_VERSION}:"
            " bring it back with the release that wrote it"
        )
    with store.whole() as connection:
        _refuse_full(connection, ordered_tables(connection))
    traces = contents.traces()
    for trace in traces:
        if store.traces.holds(trace.content_sha256) != trace.size_bytes:
            with contents.trace(trace) as source:
                store.traces.keep(trace.content_sha256, source)
    for arriving in contents.unfinished():
        with contents.staged(arriving) as source:
            store.traces.keep_stage(arriving, source)
    with store.filled() as connection:
        for statement in forms_of(connection).patient:
            connection.execute(statement)
        tables = ordered_tables(connection)
        _refuse_full(connection, tables)
        rows = _brought(connection, tables, contents)
        if contents.store_id is not None and forms_of(connection).keeps_identity:
            connection.execute("DELETE FROM meta WHERE name = 'store_id'")
            connection.execute("INSERT INTO meta VALUES ('store_id', ?)", (contents.store_id,))
        generation = _moved_on(connection, contents.generation, now())
        (profiles,) = connection.execute("SELECT count(*) FROM profiles WHERE revision > 0").fetchone()
    return FillFigures(
        profiles=profiles,
        rows=rows,
        traces=len(traces),
        trace_bytes=sum(trace.size_bytes for trace in traces),
        generation=generation,
    )


def _refuse_full(connection: Connection, tables: Sequence[Table]) -> None:
    for table in tables:
        if connection.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() is not None:  # noqa: S608
            raise BackupError(f"the store is not empty (it has {table.name}): name one that does not exist yet")


def _brought(connection: Connection, tables: Sequence[Table], contents: Contents) -> int:
    given = {rows.table: rows for rows in contents.tables()}
    if unknown := sorted(set(given) - {table.name for table in tables}):
        raise BackupError(f"the store has no table {unknown[0]}: bring it back with the release that wrote it")
    return sum(_inserted(connection, table, given[table.name]) for table in tables if table.name in given)


def _inserted(connection: Connection, table: Table, given: Rows) -> int:
    kept = [place for place, column in enumerate(given.columns) if column in table.columns]
    lost = set(given.columns) - set(table.columns)
    if any((table.name, column) not in _MADE_ANEW for column in lost):
        raise BackupError(f"{table.name} has no {min(lost)} here: bring it back with the release that wrote it")
    names = [given.columns[place] for place in kept]
    texts = [table.columns[name] in _TEXTS for name in names]
    keyed = forms_of(connection).overriding if "key" in names else ""
    marks = ", ".join("?" * len(names))
    statement = f"INSERT INTO {table.name} ({', '.join(names)}){keyed} VALUES ({marks})"  # noqa: S608  # the schema's

    def fitting(row: Sequence[Any]) -> tuple[Any, ...]:
        values = (row[place] for place in kept)
        return tuple(str(value) if text and isinstance(value, int) else value for value, text in zip(values, texts))

    count = 0
    left: Iterator[Sequence[Any]] = iter(given.rows)
    while together := [fitting(row) for row in islice(left, _TOGETHER)]:
        connection.executemany(statement, together)
        count += len(together)
    if given.last_key and "key" in names:
        forms_of(connection).go_on(connection, table.name, given.last_key)
    return count


def _moved_on(connection: Connection, generation: int, now_s: float) -> int:
    (own,) = connection.execute("SELECT value FROM meta WHERE name = 'generation'").fetchone()
    before = max(own, generation, int(now_s * 1e9))
    connection.execute("UPDATE meta SET value = ? WHERE name = 'generation'", (before,))
    connection.execute("UPDATE profiles SET changed = ?", (before + 1,))
    return int(connection.execute(connection.counting).fetchall()[0][0])
