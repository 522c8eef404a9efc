"""What a store keeps of bearer tokens: who may what, and the hash of each secret, never a secret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from nodewise.domain.principal import Role

__all__ = ["MOST_TOKENS", "StoredToken", "TokenLedger"]

MOST_TOKENS: Final = 10_000
"""Tokens of a store that are neither expired nor revoked: every worker knows them all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    """A token, without its secret.

    Attributes
    ----------
    token_id : str
        Names it in lists and logs; the token itself begins with it.
    secret_sha256 : str
        Of its secret, hexadecimal. The secret has 256 random bits, so no slower hash would protect it better.
    description : str
        For people.
    roles : tuple of Role
        What it is for.
    prefixes : tuple of str
        Profiles that it reaches, as ``Principal`` has them.
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

    def ended(self, now_s: float) -> bool:
        """Whether it is expired or revoked."""
        return now_s >= min(self.expire_time_s, self.revoke_time_s)


class TokenLedger(Protocol):
    """Tokens of a store. Safe from many threads and processes; may block.

    Every method raises NodewiseError STORE_UNAVAILABLE if the database does not answer.
    """

    def version(self) -> int:
        """Another number after each change."""

    def all(self) -> tuple[int, Sequence[StoredToken]]:
        """The version, and the tokens of then, by the time that they were made."""

    def add(self, token: StoredToken) -> None:
        """Keep a new one. Raises NodewiseError QUOTA_EXCEEDED if there are too many."""

    def purge(self, ended_before_s: float) -> Sequence[StoredToken]:
        """Forget those that ended before a moment, seconds since 1970; returns them.

        Nothing else forgets one: a clock that is years ahead for an hour must take no token from its owner.
        """

    def revoke(self, token_id: str) -> StoredToken:
        """End one, which may have ended before. Raises NodewiseError TOKEN_NOT_FOUND."""
