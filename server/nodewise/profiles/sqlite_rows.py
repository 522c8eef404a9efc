"""Rows of the SQLite file by the names of their columns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

__all__ = ["change_profile", "columns_of", "insert", "transaction", "update"]


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
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


def insert(connection: sqlite3.Connection, table: str, **columns: object) -> int:
    """Write a new row; returns its key, where the table has one."""
    names, places = ", ".join(columns), ", ".join("?" * len(columns))
    text = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608  # names are the schema's
    return connection.execute(text, tuple(columns.values())).lastrowid or 0


def update(connection: sqlite3.Connection, table: str, key: int, **columns: object) -> None:
    """Change columns of a row."""
    text = f"UPDATE {table} SET {' = ?, '.join(columns)} = ? WHERE key = ?"  # noqa: S608  # names are the schema's
    connection.execute(text, (*columns.values(), key))


def change_profile(connection: sqlite3.Connection, key: int, **columns: object) -> None:
    """Change columns of a profile, at the generation that the store has once this transaction is done."""
    (generation,) = connection.execute("SELECT value + 1 FROM meta WHERE name = 'generation'").fetchone()
    update(connection, "profiles", key, changed=generation, **columns)
