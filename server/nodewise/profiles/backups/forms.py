"""What the two databases say of their own tables, each in its way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nodewise.profiles.sql_rows import Connection

__all__ = ["Table", "forms_of", "ordered_tables"]


@dataclass(frozen=True, slots=True)
class Forms:
    """Statements of one kind of database.

    Attributes
    ----------
    patient : tuple of str
        Let the transaction that is open take long.
    tables : str
        Names of all tables.
    columns : str
        Of a table, in order: name, type, and place in the primary key, 0 = it is in none.
    referred : str
        Tables that a table refers to.
    overriding : str
        In an INSERT that states keys which the database would make.
    last_key : str
        The newest key that was ever made for a table; none = it has no such keys.
    go_on : callable
        Makes keys go on after one, for a table.
    wrong : tuple of str
        Statements that find what is damaged, row by row.
    keeps_identity : bool
        Whether what is filled from a backup is the store that the backup is of: a database that replicas have open
        all the while. A new file is another one.
    """

    patient: tuple[str, ...]
    tables: str
    columns: str
    referred: str
    overriding: str
    last_key: str
    go_on: Callable[[Connection, str, int], None]
    wrong: tuple[str, ...]
    keeps_identity: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns with their types, and those of its primary key."""

    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]


def _sqlite_goes_on(connection: Connection, table: str, last: int) -> None:
    connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table,))
    connection.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (table, last))


def _postgres_goes_on(connection: Connection, table: str, last: int) -> None:
    connection.execute(
        "SELECT setval(pg_get_serial_sequence(CAST(? AS text), 'key'), CAST(? AS bigint))", (table, last)
    )


_SQLITE: Final = Forms(
    patient=(),
    tables="SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
    columns="SELECT name, lower(type), pk FROM pragma_table_info(?) ORDER BY cid",
    referred='SELECT "table" FROM pragma_foreign_key_list(?)',
    overriding="",
    last_key="SELECT seq FROM sqlite_sequence WHERE name = ?",
    go_on=_sqlite_goes_on,
    wrong=(
        "SELECT quick_check FROM pragma_quick_check WHERE quick_check <> 'ok'",
        "SELECT \"table\" || ' holds rows whose ' || parent || ' is gone' FROM pragma_foreign_key_check GROUP BY 1",
    ),
    keeps_identity=False,
)
_POSTGRES: Final = Forms(
    patient=("SET LOCAL statement_timeout = 0", "SET LOCAL idle_in_transaction_session_timeout = 0"),
    tables="SELECT CAST(tablename AS text) FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1",
    columns="""
SELECT CAST(c.column_name AS text), CAST(c.data_type AS text), coalesce(k.ordinal_position, 0)
FROM information_schema.columns c
LEFT JOIN information_schema.table_constraints t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    AND t.constraint_type = 'PRIMARY KEY'
LEFT JOIN information_schema.key_column_usage k ON k.constraint_schema = t.constraint_schema
    AND k.constraint_name = t.constraint_name AND k.table_name = c.table_name AND k.column_name = c.column_name
WHERE c.table_schema = current_schema() AND c.table_name = ? ORDER BY c.ordinal_position""",
    referred="""
SELECT CAST(r.relname AS text) FROM pg_constraint c JOIN pg_class o ON o.oid = c.conrelid
JOIN pg_class r ON r.oid = c.confrelid JOIN pg_namespace n ON n.oid = o.relnamespace
WHERE c.contype = 'f' AND n.nspname = current_schema() AND o.relname = ?""",
    overriding=" OVERRIDING SYSTEM VALUE",
    last_key="""
SELECT coalesce(s.last_value, 0) FROM pg_sequences s
WHERE format('%I.%I', s.schemaname, s.sequencename) = pg_get_serial_sequence(
    (SELECT table_name FROM information_schema.columns WHERE table_schema = current_schema() AND column_name = 'key'
        AND is_identity = 'YES' AND table_name = ?), 'key')""",
    go_on=_postgres_goes_on,
    wrong=(),
    keeps_identity=True,
)
_FORMS: Final = MappingProxyType({"sqlite": _SQLITE, "postgresql": _POSTGRES})


def forms_of(connection: Connection) -> Forms:
    """Those of the database behind a connection."""
    return _FORMS[connection.dialect]


def ordered_tables(connection: Connection) -> list[Table]:
    """All tables but ``meta``, each after those that it refers to."""
    forms = forms_of(connection)
    names = [name for (name,) in connection.execute(forms.tables).fetchall() if name != "meta"]
    referred = {name: {to for (to,) in connection.execute(forms.referred, (name,)).fetchall()} for name in names}
    found: list[Table] = []
    done: set[str] = set()
    while left := [name for name in names if name not in done]:
        ready = [name for name in left if referred[name] - {name} <= done]
        for name in ready or left:  # none is ready: they refer to each other, and the database must sort it out
            rows = connection.execute(forms.columns, (name,)).fetchall()
            key = sorted((place, column) for column, _, place in rows if place)
            found.append(Table(name, {column: kind for column, kind, _ in rows}, tuple(column for _, column in key)))
            done.add(name)
    return found
