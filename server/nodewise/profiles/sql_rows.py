"""What statements run on, whatever database is behind it, and the few forms of statements that repeat."""

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
    """What a statement found or did."""

    @property
    def rowcount(self) -> int:
        """Rows that it changed."""

    @property
    def description(self) -> Any:
        """What it found, by column: the first of each is its name."""

    def fetchone(self) -> Any:
        """The next row, a tuple; None = no more."""

    def fetchall(self) -> list[Any]:
        """All rows that are left."""

    def __iter__(self) -> Iterator[Any]:
        """The rows."""


class Connection(Protocol):
    """A connection to the database of a store. Not safe from several threads at once.

    Statements are those that all databases of ours read alike, with ``?`` where values go. What they read differently
    stands here.

    Attributes
    ----------
    dialect : str
        Which database it is: ``sqlite`` or ``postgresql``.
    reading, writing : str
        Begin a transaction: one that sees a single moment, and one that excludes all others.
    labelled, labelled_as : str
        Conditions on ``labels``: it has a key; it has a key with a value.
    counting : str
        Increments the store's generation and returns it; other processes are notified when the transaction commits.
    patient : tuple of str
        Let the transaction that is open take long.
    overriding : str
        For an INSERT that states keys which the database would generate; their sequence is then moved on.
    structure : tuple of str
        Statements that find what is damaged of the database itself, a text for each.
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
        """Whether a transaction is open that can still be taken back by a statement."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Cursor:
        """Run a statement."""

    def close(self) -> None:
        """Let go of it, for good."""

    def executemany(self, statement: str, values: Iterable[Sequence[Any]], /) -> Cursor:
        """Run a statement once for each of many."""


Connected = Callable[[str], AbstractContextManager[Connection]]
"""A connection inside a transaction; the text says what for."""


@contextmanager
def translate_errors(doing: str, condition: StoreCondition) -> Iterator[None]:
    """Turn what the database, the disk or damaged content raise into STORE_UNAVAILABLE; only the log gets the text."""
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
    """A transaction: what is written in it is there as a whole, or not at all if it fails."""
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def columns_of(value: Any, but: str = "") -> dict[str, Any]:
    """The fields of a value whose columns have the same names; all but one."""
    return {f.name: getattr(value, f.name) for f in fields(value) if f.name != but}


def insert(connection: Connection, table: str, **columns: object) -> None:
    """Write a new row."""
    connection.execute(_insertion(table, columns), tuple(columns.values()))


def insert_keyed(connection: Connection, table: str, **columns: object) -> int:
    """Write a new row; returns its key."""
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
    """Change columns of a profile, at the generation that the store has once this transaction is done."""
    (generation,) = connection.execute("SELECT value + 1 FROM meta WHERE name = 'generation'").fetchone()
    update(connection, "profiles", key, changed=generation, **columns)
