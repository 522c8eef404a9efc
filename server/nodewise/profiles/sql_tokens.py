"""Bearer tokens in the store's tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

import orjson

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Role
from nodewise.profiles.sql_rows import Connection, insert
from nodewise.profiles.tokens import MOST_TOKENS, StoredToken

__all__ = ["SqlTokenLedger"]

_COLUMNS: Final = "token_id, secret_sha256, description, roles, prefixes, create_time_s, expire_time_s, revoke_time_s"
_COUNTED: Final = "UPDATE meta SET value = value + 1 WHERE name = 'tokens'"
_ENDED: Final = "(revoke_time_s > 0 AND revoke_time_s <= ?) OR (expire_time_s > 0 AND expire_time_s <= ?)"
_NEVER: Final = 0.0
"""In the table, for what has no end: no database has the same infinity."""

Connected = Callable[[str], AbstractContextManager[Connection]]
"""A connection inside a transaction; the text says what for."""


class SqlTokenLedger:
    """Implements TokenLedger on a store's connections.

    Parameters
    ----------
    reading, writing : callable
        Give a connection in a transaction of either kind.
    now : callable
        Seconds since 1970.
    """

    def __init__(self, reading: Connected, writing: Connected, now: Callable[[], float]) -> None:
        self._reading, self._writing, self._now = reading, writing, now

    def version(self) -> int:
        """As the protocol says."""
        with self._reading("look for changes of tokens") as connection:
            return _version(connection)

    def all(self) -> tuple[int, Sequence[StoredToken]]:
        """As the protocol says."""
        with self._reading("read tokens") as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY create_time_s, token_id").fetchall()  # noqa: S608  # names are the schema's
            return _version(connection), tuple(map(_token, rows))

    def add(self, token: StoredToken) -> None:
        """As the protocol says."""
        now_s = self._now()
        with self._writing("add a token") as connection:
            live = f"SELECT count(*) FROM tokens WHERE NOT ({_ENDED})"  # noqa: S608  # a constant
            ((count,),) = connection.execute(live, (now_s, now_s)).fetchall()
            if count >= MOST_TOKENS:
                raise NodewiseError(
                    Reason.QUOTA_EXCEEDED,
                    f"the store holds {MOST_TOKENS} tokens; revoke some first",
                    {"limit": "tokens", "value": str(MOST_TOKENS)},
                )
            insert(connection, "tokens", **_row(token))
            connection.execute(_COUNTED)

    def purge(self, ended_before_s: float) -> Sequence[StoredToken]:
        """As the protocol says."""
        with self._writing("purge tokens") as connection:
            moments = (ended_before_s,) * 2
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE {_ENDED}", moments).fetchall()  # noqa: S608  # constants
            connection.execute(f"DELETE FROM tokens WHERE {_ENDED}", moments)  # noqa: S608  # a constant
            connection.execute(_COUNTED)
            return tuple(map(_token, rows))

    def revoke(self, token_id: str) -> StoredToken:
        """As the protocol says."""
        with self._writing("revoke a token") as connection:
            found = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE token_id = ?", (token_id,)).fetchone()  # noqa: S608  # names are the schema's
            if found is None:
                raise NodewiseError(Reason.TOKEN_NOT_FOUND, f"no token {token_id!r} is stored", {"token_id": token_id})
            token = _token(found)
            if math.isfinite(token.revoke_time_s):
                return token
            now_s = self._now()
            connection.execute("UPDATE tokens SET revoke_time_s = ? WHERE token_id = ?", (now_s, token_id))
            connection.execute(_COUNTED)
            return replace(token, revoke_time_s=now_s)


def _version(connection: Connection) -> int:
    ((value,),) = connection.execute("SELECT value FROM meta WHERE name = 'tokens'").fetchall()
    return int(value)


def _row(token: StoredToken) -> dict[str, Any]:
    return {
        "token_id": token.token_id,
        "secret_sha256": token.secret_sha256,
        "description": token.description,
        "roles": orjson.dumps(token.roles).decode(),
        "prefixes": orjson.dumps(token.prefixes).decode(),
        "create_time_s": token.create_time_s,
        "expire_time_s": _finite(token.expire_time_s),
        "revoke_time_s": _finite(token.revoke_time_s),
    }


def _token(row: tuple[Any, ...]) -> StoredToken:
    token_id, secret_sha256, description, roles, prefixes, created, expires, revoked = row
    return StoredToken(
        token_id=token_id,
        secret_sha256=secret_sha256,
        description=description,
        roles=tuple(map(Role, orjson.loads(roles))),
        prefixes=tuple(orjson.loads(prefixes)),
        create_time_s=created,
        expire_time_s=expires or math.inf,
        revoke_time_s=revoked or math.inf,
    )


def _finite(time_s: float) -> float:
    return time_s if math.isfinite(time_s) else _NEVER
