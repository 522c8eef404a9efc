"""All that a store holds, as it is read from a store or from a backup, and brought to another."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, Protocol

from nodewise.profiles import sql_reads as reads
from nodewise.profiles.backups.forms import Table, forms_of, ordered_tables
from nodewise.profiles.sql_incoming import unfinished_traces
from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_store import SqlProfileStore
from nodewise.profiles.traces import Unfinished

__all__ = ["Contents", "Digest", "Rows", "StoreContents", "StoredTrace", "digests_of", "from_json", "to_json"]

_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """A trace that rows refer to."""

    content_sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Digest:
    """A profile, deleted ones that are not purged among them, and the digest of what it holds."""

    profile_id: str
    uid: str
    revision: int
    digest: str


@dataclass(frozen=True, slots=True)
class Rows:
    """A table with its rows, in the order of its key."""

    table: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    last_key: int


class Contents(Protocol):
    """What a store holds, at one moment.

    Attributes
    ----------
    schema_version, generation : int
        Of the store.
    store_id : int or None
        Its number, by which processes that have it open know it; None = it has none yet.
    """

    schema_version: int
    generation: int
    store_id: int | None

    def tables(self) -> Iterator[Rows]:
        """Every table but ``meta``."""

    def traces(self) -> Sequence[StoredTrace]:
        """Every trace that rows refer to, once."""

    def trace(self, trace: StoredTrace) -> BinaryIO:
        """Its bytes; FileNotFoundError or NodewiseError if they are gone."""

    def unfinished(self) -> Sequence[Unfinished]:
        """Traces of which some chunks are stored."""

    def staged(self, unfinished: Unfinished) -> BinaryIO:
        """What is stored of one, from its beginning on."""


class StoreContents:
    """Implements Contents by a transaction that reads a store.

    Parameters
    ----------
    store : SqlProfileStore
        Read from.
    connection : Connection
        In the transaction of :meth:`SqlProfileStore.whole`.
    """

    def __init__(self, store: SqlProfileStore, connection: Connection) -> None:
        self._store = store
        self._connection = connection
        self._forms = forms_of(connection)
        for statement in self._forms.patient:
            connection.execute(statement)
        meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
        self.schema_version: int = meta["schema_version"]
        self.generation: int = meta["generation"]
        self.store_id: int | None = meta.get("store_id")

    def tables(self) -> Iterator[Rows]:
        """As the protocol says."""
        for table in ordered_tables(self._connection):
            made = self._connection.execute(self._forms.last_key, (table.name,)).fetchone()
            yield Rows(table.name, tuple(table.columns), self._rows(table), made[0] if made else 0)

    def _rows(self, table: Table) -> Iterator[Sequence[Any]]:
        """By pages: a table may not fit into memory."""
        columns, key = tuple(table.columns), ", ".join(table.key)
        places = [columns.index(column) for column in table.key]
        marks = ", ".join("?" * len(places))
        begin = f"SELECT {', '.join(columns)} FROM {table.name}"  # noqa: S608  # names are the schema's
        end = f"ORDER BY {key} LIMIT {_PAGE}"
        found = self._connection.execute(f"{begin} {end}").fetchall()
        while found:
            yield from found
            last = [found[-1][place] for place in places]
            found = self._connection.execute(f"{begin} WHERE ({key}) > ({marks}) {end}", last).fetchall()

    def traces(self) -> list[StoredTrace]:
        """As the protocol says."""
        rows = self._connection.execute(
            "SELECT content_sha256, max(size_bytes) FROM traces WHERE content_sha256 IS NOT NULL"
            " GROUP BY content_sha256 ORDER BY content_sha256"
        )
        return [StoredTrace(*row) for row in rows.fetchall()]

    def trace(self, trace: StoredTrace) -> BinaryIO:
        """As the protocol says."""
        return self._store.traces.open(trace.content_sha256)

    def unfinished(self) -> list[Unfinished]:
        """As the protocol says."""
        return unfinished_traces(self._connection)

    def staged(self, unfinished: Unfinished) -> BinaryIO:
        """As the protocol says."""
        return self._store.traces.open_stage(unfinished)


def digests_of(connection: Connection) -> Iterator[Digest]:
    """Of every profile, from what is stored, whatever digest was remembered."""
    for (key,) in connection.execute("SELECT key FROM profiles WHERE revision > 0 ORDER BY key").fetchall():
        profile = reads.row_of(connection, key)
        digest = reads.replayed(connection, profile, profile.profile_id, None).digest
        yield Digest(profile.profile_id, profile.uid, profile.revision, digest)


def to_json(value: Any) -> Any:
    """A value of a row: bytes become an object, the rest is JSON already."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes | memoryview) else value


def from_json(value: Any) -> Any:
    """What :func:`to_json` was given."""
    return base64.b64decode(value["base64"]) if isinstance(value, Mapping) else value
