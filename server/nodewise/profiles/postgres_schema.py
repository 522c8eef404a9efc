"""Creation of a store's tables in a PostgreSQL database."""

from __future__ import annotations

from typing import Final

from nodewise.profiles.sql_rows import Connection
from nodewise.profiles.sql_schema import APPLICATION_ID, create_tables, upgrade_tables
from nodewise.profiles.store import StoreFormatError

__all__ = ["prepare"]

# The default compression takes more processor time than all other work of the database for a batch.
_HAS_LZ4: Final = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
_TABLES: Final = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
_COLUMNS_OF_META: Final = """
SELECT count(*) FROM information_schema.columns WHERE table_schema = current_schema()
AND table_name = 'meta' AND (column_name, data_type) IN (('name', 'text'), ('value', 'bigint'))"""


def prepare(connection: Connection) -> None:
    """Create the tables in an empty database, or upgrade them, inside a transaction.

    Other processes that do so wait.

    Raises
    ------
    StoreFormatError
        If the database holds other tables, or a schema that this release does not know; nothing was written
        then.
    """
    (encoding,) = connection.execute("SHOW server_encoding").fetchone()
    if encoding != "UTF8":
        raise StoreFormatError(f"the database has the encoding {encoding}; create one with ENCODING 'UTF8'")
    connection.execute("SELECT pg_advisory_xact_lock(?)", (APPLICATION_ID,))
    if connection.execute(_TABLES).fetchone() == (0,):
        create_tables(connection)
        if connection.execute(_HAS_LZ4).fetchone() == (True,):
            connection.execute("ALTER TABLE batches ALTER COLUMN payload SET COMPRESSION lz4")
    elif connection.execute(_COLUMNS_OF_META).fetchone() != (2,) or (
        connection.execute("SELECT value FROM meta WHERE name = 'application_id'").fetchone() != (APPLICATION_ID,)
    ):
        raise StoreFormatError("the database holds another application's tables; choose another database for the store")
    upgrade_tables(connection)
