"""Bearer tokens in a store: their rights and the hash of each secret, never a secret."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Role
from nodewise.profiles.sql_rows import Connected, Connection, insert

__all__ = ["MOST_TOKENS", "StoredToken", "TokenLedger"]


MOST_TOKENS: Final = 10_000
"""Tokens of a store that are neither expired nor revoked: every worker knows them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token, without its secret.

    Attributes
    ----------
    token_id : str
        Identifies it in lists and logs; the token itself begins with it.
    secret_sha256 : str
        Of its secret, hexadecimal. The secret has 256 random bits, so no slower hash would protect it better.
    description : str
        For people.
    roles : tuple of Role
        Roles of its holder.
    prefixes : tuple of str
        Prefixes of profiles, as in ``Principal``.
    create_time_s, expire_time_s, revoke_time_s : float
        Seconds since 1970; infinite = never.
    """

    token_id: str
    secret_sha256: str
    description: str
    roles: tuple[Role, ...]
    prefixes: tuple[str, ...]
    create_time_s: float
    expire_time_s: float
    revoke_time_s: float

    def has_ended(self, now_s: float) -> bool:
        """Whether it is expired or revoked."""
        return now_s >= min(self.expire_time_s, self.revoke_time_s)


_COLUMNS: Final = "token_id, secret_sha256, description, roles, prefixes, create_time_s, expire_time_s, revoke_time_s"
_COUNTED: Final = "UPDATE meta SET value = value + 1 WHERE name = 'tokens'"
_ENDED: Final = "(revoke_time_s > 0 AND revoke_time_s <= ?) OR (expire_time_s > 0 AND expire_time_s <= ?)"
_NEVER: Final = 0.0
"""Stands for "never" in the table, as databases differ in their infinities."""


class TokenLedger:
    """Tokens of a store. Safe from many threads and processes; may block.

    Every method raises NodewiseError STORE_UNAVAILABLE if the database does not answer.


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
        """A number that differs after each change."""
        with self._reading("look for changes of tokens") as connection:
            return _version(connection)

    def all(self) -> tuple[int, Sequence[StoredToken]]:
        """The version, and its tokens by their time of creation."""
        with self._reading("read tokens") as connection:
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY create_time_s, token_id").fetchall()  # noqa: S608  # names are the schema's
            return _version(connection), tuple(map(_token, rows))

    def add(self, token: StoredToken) -> None:
        """Add a token. Raises NodewiseError QUOTA_EXCEEDED if there are too many."""
        now_s = self._now()
        with self._writing("add a token") as connection:
            live = f"SELECT count(*) FROM tokens WHERE NOT ({_ENDED})"  # noqa: S608  # a constant
            ((count,),) = connection.execute(live, (now_s, now_s)).fetchall()
            if count >= MOST_TOKENS:
                raise NodewiseError(
                    Reason.QUOTA_EXCEEDED,
                    f"the store holds {MOST_TOKENS} tokens, the limit; revoke and purge some first",
                    {"limit": "tokens", "value": str(MOST_TOKENS)},
                )
            insert(connection, "tokens", **_row(token))
            connection.execute(_COUNTED)

    def purge(self, ended_before_s: float) -> Sequence[StoredToken]:
        """Delete tokens that ended before a time, seconds since 1970; returns them.

        Nothing else deletes tokens, so that a wrong clock removes none.
        """
        with self._writing("purge tokens") as connection:
            moments = (ended_before_s,) * 2
            rows = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE {_ENDED}", moments).fetchall()  # noqa: S608  # constants
            connection.execute(f"DELETE FROM tokens WHERE {_ENDED}", moments)  # noqa: S608  # a constant
            connection.execute(_COUNTED)
            return tuple(map(_token, rows))

    def revoke(self, token_id: str) -> StoredToken:
        """Revoke a token, which may have ended before. Raises NodewiseError TOKEN_NOT_FOUND."""
        with self._writing("revoke a token") as connection:
            row = connection.execute(f"SELECT {_COLUMNS} FROM tokens WHERE token_id = ?", (token_id,)).fetchone()  # noqa: S608  # names are the schema's
            if row is None:
                raise NodewiseError(Reason.TOKEN_NOT_FOUND, f"no token {token_id!r} is stored", {"token_id": token_id})
            token = _token(row)
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
    token_id, secret_sha256, description, roles, prefixes, create_time_s, expires, revoke_time_s = row
    return StoredToken(
        token_id=token_id,
        secret_sha256=secret_sha256,
        description=description,
        roles=tuple(map(Role, orjson.loads(roles))),
        prefixes=tuple(orjson.loads(prefixes)),
        create_time_s=create_time_s,
        expire_time_s=expires or math.inf,
        revoke_time_s=revoke_time_s or math.inf,
    )


def _finite(time_s: float) -> float:
    return time_s if math.isfinite(time_s) else _NEVER
