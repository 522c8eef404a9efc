"""Bearer tokens: their text, their stored form, and a worker's copy of the tokens of a store.

A worker holds all tokens in memory, so unknown tokens cost no database query.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import re
import secrets
import time
from collections.abc import Callable, Sequence
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason, Violation
from nodewise.domain.principal import EVERYTHING, Principal, Role, normal_prefix
from nodewise.profiles.tokens import StoredToken, TokenLedger
from nodewise.runtime.identity.refusals import unauthenticated_error

__all__ = ["BELIEVED_S", "PREFIX", "TokenBook", "UnknownTokenError", "holds", "new_token", "split_token"]

PREFIX: Final = "nodewise_"
"""Tokens begin so: scanners find them in what should hold none."""
_ID_CHARACTERS: Final = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH: Final = 12
_SECRET_BYTES: Final = 32
_TEXT: Final = re.compile(PREFIX + r"([a-z2-7]{12})_([A-Za-z0-9_-]{43})")
_PROFILE_PREFIX: Final = re.compile(r"(?!.*//)[A-Za-z0-9][A-Za-z0-9._~/-]{0,126}/")
_MOST_PREFIXES: Final = 64
_LONGEST_DESCRIPTION: Final = 256
BELIEVED_S: Final = 60.0
"""What was not confirmed for longer is not believed: a token may have been revoked since."""


def new_token(
    description: str, roles: Sequence[str], prefixes: Sequence[str], life_s: float | None
) -> tuple[str, StoredToken]:
    """Create a token. Return its text, which is not stored, and its stored record.

    Parameters
    ----------
    roles : sequence of str
        At least one.
    prefixes : sequence of str
        Allowed prefixes of profile ids, in whole segments; none, or ``*`` = all profiles.
    life_s : float or None
        Seconds until it expires; None = never.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    violations = _violations_of(description, roles, prefixes, life_s)
    if violations:
        raise NodewiseError.invalid(violations)
    token_id = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(_ID_LENGTH))
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    own = EVERYTHING if not prefixes or "*" in prefixes else tuple(sorted({normal_prefix(each) for each in prefixes}))
    now_s = time.time()
    record = StoredToken(
        token_id=token_id,
        secret_sha256=_hash(secret),
        description=description,
        roles=tuple(role for role in Role if role in roles),
        prefixes=own,
        create_time_s=now_s,
        expire_time_s=math.inf if life_s is None else now_s + life_s,
        revoke_time_s=math.inf,
    )
    return f"{PREFIX}{token_id}_{secret}", record


def split_token(text: str) -> tuple[str, str] | None:
    """Return the id and the secret of a token; None = the text is not a token."""
    match = _TEXT.fullmatch(text)
    return None if match is None else (match[1], match[2])


def holds(record: StoredToken, secret: str) -> bool:
    """Return whether the secret is that of the token, in constant time."""
    return hmac.compare_digest(record.secret_sha256, _hash(secret))


class UnknownTokenError(Exception):
    """No token with this id is known. It may be new."""


class TokenBook:
    """Identifies callers by the tokens of a store.

    Parameters
    ----------
    ledger : TokenLedger
        Store of the tokens.
    now : callable
        Returns seconds of a monotonic clock.
    """

    def __init__(self, ledger: TokenLedger, now: Callable[[], float] = time.monotonic) -> None:
        self.ledger = ledger
        self._now = now
        self._version = -1
        self._tokens: dict[str, StoredToken] = {}
        self._confirmed_s = float("-inf")

    def refresh(self) -> bool:
        """Read changes from the store; blocks. Returns whether there were any. Raises STORE_UNAVAILABLE."""
        asked_s = self._now()
        has_changed = self.ledger.version() != self._version
        if has_changed:
            version, tokens = self.ledger.all()
            self._tokens = {token.token_id: token for token in tokens}
            self._version = version
        self._confirmed_s = asked_s
        return has_changed

    def principal(self, text: str) -> Principal:
        """Return the caller with a token.

        Raises
        ------
        NodewiseError
            UNAUTHENTICATED; STORE_UNAVAILABLE if the store has not answered for too long.
        UnknownTokenError
            The token may be new: read the store, then try again.
        """
        if self._now() - self._confirmed_s > BELIEVED_S:
            message = "the store of tokens does not answer, so callers cannot be identified; retry"
            raise NodewiseError(Reason.STORE_UNAVAILABLE, message)
        parts = split_token(text)
        if parts is None:
            raise unauthenticated_error("unknown")
        token = self._tokens.get(parts[0])
        if token is None:
            raise UnknownTokenError
        if not holds(token, parts[1]):
            raise unauthenticated_error("unknown")
        now_s = time.time()
        if now_s >= token.revoke_time_s:
            raise unauthenticated_error("revoked")
        if now_s >= token.expire_time_s:
            raise unauthenticated_error("expired")
        ends_s = min(token.expire_time_s, token.revoke_time_s)
        return Principal(f"token:{token.token_id}", frozenset(token.roles), token.prefixes, ends_s)


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _violations_of(
    description: str, roles: Sequence[str], prefixes: Sequence[str], life_s: float | None
) -> list[Violation]:
    role_names = ", ".join(Role)
    wrong = [] if roles else [Violation("roles", f"must name at least one of {role_names}")]
    wrong += [
        Violation("roles", f"must be one of {role_names}, found {each[:32]!r}") for each in roles if each not in [*Role]
    ]
    if len(prefixes) > _MOST_PREFIXES:
        wrong.append(Violation("prefixes", f"must be at most {_MOST_PREFIXES}, found {len(prefixes)}"))
    for each in prefixes:
        if each != "*" and not _PROFILE_PREFIX.fullmatch(normal_prefix(each)):
            right = "must be whole segments of profile ids that end with /, such as team-a/, or *"
            wrong.append(Violation("prefixes", f"{right}, found {each[:64]!r}"))
    if len(description) > _LONGEST_DESCRIPTION:
        wrong.append(Violation("description", f"must be at most {_LONGEST_DESCRIPTION} characters"))
    if life_s is not None and not 0 < life_s < math.inf:
        wrong.append(Violation("ttl", "must be above 0"))
    return wrong
