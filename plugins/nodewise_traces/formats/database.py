"""SQLite databases that recorders export: tables read as rows, safe against malicious files."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

from nodewise.plugin import TraceSource
from nodewise_traces.refusals import unusable_error

__all__ = ["MAGIC", "Database", "database_of"]

MAGIC: Final = b"SQLite format 3\0"
_LONGEST_VALUE_BYTES: Final = 1 << 24
_ROW_BYTES: Final = 2
"""No row of a table takes fewer bytes: pages that name each other in a circle give more rows than a file has."""


_DAMAGE: Final = (sqlite3.Error, OverflowError, UnicodeDecodeError)
"""What reading a damaged database raises: its messages quote the damage, which may be no text."""


class Database:
    """Tables by name in lower case; views, virtual tables and computed columns are none, as these run what they say."""

    def __init__(self, connection: sqlite3.Connection, most_rows: int, counts: Counter[str]) -> None:
        self._connection = connection
        self._most_rows = most_rows
        self._counts = counts
        self._columns: dict[str, dict[str, str]] = {}
        self._names: dict[str, str] = {}
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall()
        for (name,) in tables:
            columns = connection.execute("SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", (name,)).fetchall()
            self._names[str(name).lower()] = str(name)
            self._columns[str(name).lower()] = {str(column).lower(): str(column) for (column,) in columns}

    def __contains__(self, table: str) -> bool:
        return table.lower() in self._names

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of all tables, in lower case."""
        return tuple(self._names)

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Rows in the order of the file; a column that a release does not have is None. No such table: none.

        Where the table is damaged, rows up to there; ``truncated`` counts it.
        """
        table = table.lower()
        if table not in self._names:
            return
        there = self._columns[table]
        selection = ", ".join(_quote(there[one.lower()]) if one.lower() in there else "NULL" for one in columns)
        try:
            cursor = self._connection.execute(f"SELECT {selection} FROM {_quote(self._names[table])}")  # noqa: S608
            for place, row in enumerate(cursor):
                if place >= self._most_rows:
                    raise sqlite3.DatabaseError("more rows than the file can hold")
                yield row
        except _DAMAGE:
            self._counts["truncated"] += 1


def _quote(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


@contextmanager
def database_of(stream: BinaryIO, source: TraceSource, counts: Counter[str], export: str) -> Iterator[Database]:
    """The database in a stream, while it is read: a copy in a temporary file, opened read-only.

    Parameters
    ----------
    counts
        Gets ``truncated``.
    export : str
        The command that writes such a file, for the error.

    Raises
    ------
    NodewiseError
        INVALID_FIELD if it is no database.
    """
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file:
        shutil.copyfileobj(stream, file)
        size = file.tell()
        file.flush()
        try:
            address = f"{Path(file.name).as_uri()}?mode=ro&immutable=1"
            with closing(sqlite3.connect(address, uri=True)) as connection:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE_BYTES)
                connection.text_factory = lambda value: value.decode("utf-8", errors="replace")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA cell_size_check = ON")
                yield Database(connection, size // _ROW_BYTES, counts)
        except _DAMAGE as error:
            raise unusable_error(
                source, f"the file is not a complete SQLite database ({error}); export it again with: {export}"
            ) from None
