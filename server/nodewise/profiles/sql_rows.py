"""The interface to databases, and the common forms of statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import fields
from typing import Any, Protocol

import structlog

from nodewise.profiles.codec import PayloadError
from nodewise.profiles.condition import StoreCondition, store_unavailable

__all__ = [
    "Connected",
    "Connection",
    "Cursor",
    "change_profile",
    "columns_of",
    "insert",
    "insert_keyed",
    "transaction",
    "translate_errors",
    "update",
]

_log = structlog.get_logger(__name__)


class Cursor(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement changed."""

    @property
    def description(self) -> Any:
        """The columns of the result; the first entry of each is its name."""

    def fetchone(self) -> Any:
        """The next row, a tuple; None = no more."""

    def fetchall(self) -> list[Any]:
        """All remaining rows."""

    def __iter__(self) -> Iterator[Any]:
        """The rows."""


class Connection(Protocol):
    """A connection to the database of a store. Not safe from several threads at once.

    Statements are in the SQL that SQLite and PostgreSQL share, with ``?`` for values. Parts that differ
    are attributes.

    Attributes
    ----------
    dialect : str
        Which database it is: ``sqlite`` or ``postgresql``.
    reading, writing : str
        Statements that begin a transaction: one that sees a single moment, and one that excludes other writers.
    labelled, labelled_as : str
        Conditions on ``labels``: it has a key; it has a key with a value.
    counting : str
        Increments the store's generation and returns it; other processes are notified when the transaction commits.
    patient : tuple of str
        Statements that lift the time limits of the open transaction.
    overriding : str
        For an INSERT that states keys which the database would generate; their sequence is then moved on.
    structure : tuple of str
        Statements that return damage of the database's own structure, one text each.
    """

    dialect: str
    reading: str
    writing: str
    labelled: str
    labelled_as: str
    counting: str
    patient: tuple[str, ...]
    overriding: str
    structure: tuple[str, ...]

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open that a statement can still roll back."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Run a statement."""

    def close(self) -> None:
        """Close the connection for good."""

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each of many."""


Connected = Callable[[str], AbstractContextManager[Connection]]
"""A connection inside a transaction; the text states the purpose, for the log."""


@contextmanager
def translate_errors(doing: str, condition: StoreCondition) -> Iterator[None]:
    """Convert errors of the database, the disk or damaged content to STORE_UNAVAILABLE; only the log gets the text."""
    caught: tuple[type[Exception], ...] = (*condition.types, OSError, PayloadError)
    try:
        yield
    except caught as error:
        cause = condition.note(error)
        # Checks come every moment; their caller logs what changes.
        tell = _log.debug if doing == "check" else _log.error
        tell("store_failed", doing=doing, cause=cause, error=type(error).__name__, text=str(error))
        raise store_unavailable(cause) from None


@contextmanager
def transaction(connection: Connection, begin: str) -> Iterator[Connection]:
    """A transaction: commits at the end, and rolls back on an error."""
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def columns_of(value: Any, but: str = "") -> dict[str, Any]:
    """The fields of a value as columns of the same names, without one of them."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.name != but}


def insert(connection: Connection, table: str, **columns: object) -> None:
    """Insert a row."""
    connection.execute(_insertion(table, columns), tuple(columns.values()))


def insert_keyed(connection: Connection, table: str, **columns: object) -> int:
    """Insert a row; returns its key."""
    text = f"{_insertion(table, columns)} RETURNING key"
    ((key,),) = connection.execute(text, tuple(columns.values())).fetchall()
    return int(key)


def _insertion(table: str, columns: dict[str, object]) -> str:
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608  # names are the schema's


def update(connection: Connection, table: str, key: int, **columns: object) -> None:
    """Change columns of a row."""
    text = f"UPDATE {table} SET {' = ?, '.join(columns)} = ? WHERE key = ?"  # noqa: S608  # names are the schema's
    connection.execute(text, (*columns.values(), key))


def change_profile(connection: Connection, key: int, **columns: object) -> None:
    """Change columns of a profile, and set its generation to the one after this transaction."""
    (generation,) = connection.execute("SELECT value + 1 FROM meta WHERE name = 'generation'").fetchone()
    update(connection, "profiles", key, changed=generation, **columns)
