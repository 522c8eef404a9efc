"""The tokens of a store as a worker knows them: all of them at hand, so that strangers cost no look at the database."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.principal import Principal
from nodewise.profiles.tokens import StoredToken, TokenLedger
from nodewise.runtime.identity.refusals import Cause, unauthenticated
from nodewise.runtime.identity.secret_texts import holds, parted, principal_of

__all__ = ["BELIEVED_S", "TokenBook", "UnknownTokenError"]

BELIEVED_S: Final = 60.0
"""What was not confirmed for longer is not believed: a token may have been revoked since."""


class UnknownTokenError(Exception):
    """No token of this id is known, yet: it may be new."""


class TokenBook:
    """Knows callers by the tokens of a store.

    Parameters
    ----------
    ledger : TokenLedger
        Where tokens are kept.
    now : callable
        Seconds by a clock that only goes forward.
    """

    def __init__(self, ledger: TokenLedger, now: Callable[[], float] = time.monotonic) -> None:
        self.ledger = ledger
        self._now = now
        self._version = -1
        self._tokens: dict[str, StoredToken] = {}
        self._confirmed_s = float("-inf")

    def refresh(self) -> bool:
        """Read what changed; blocks. Returns whether anything did. Raises NodewiseError STORE_UNAVAILABLE."""
        asked_s = self._now()
        changed = self.ledger.version() != self._version
        if changed:
            version, tokens = self.ledger.all()
            self._tokens = {token.token_id: token for token in tokens}
            self._version = version
        self._confirmed_s = asked_s
        return changed

    def principal(self, text: str) -> Principal:
        """Who calls with a token.

        Raises
        ------
        NodewiseError
            UNAUTHENTICATED; STORE_UNAVAILABLE if the store was not heard of for long.
        UnknownTokenError
            A look at the store may know more.
        """
        if self._now() - self._confirmed_s > BELIEVED_S:
            told = "the store of tokens does not answer, so nobody can be told apart; retry"
            raise NodewiseError(Reason.STORE_UNAVAILABLE, told)
        found = parted(text)
        if found is None:
            raise unauthenticated(Cause.UNKNOWN)
        token = self._tokens.get(found[0])
        if token is None:
            raise UnknownTokenError
        if not holds(token, found[1]):
            raise unauthenticated(Cause.UNKNOWN)
        now_s = time.time()
        if now_s >= token.revoke_time_s:
            raise unauthenticated(Cause.REVOKED)
        if now_s >= token.expire_time_s:
            raise unauthenticated(Cause.EXPIRED)
        return principal_of(token)
