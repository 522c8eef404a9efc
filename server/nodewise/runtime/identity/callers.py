"""Tells callers apart: by the token that a call brings, else by the certificate of its connection."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.domain.principal import Principal, normal_prefix
from nodewise.profiles.store import ProfileStore
from nodewise.profiles.tokens import TokenLedger
from nodewise.rpc.calls import Context, Metadata, metadata_of
from nodewise.runtime.identity.jwt import JwtReader, KeysError
from nodewise.runtime.identity.refusals import unauthenticated_error
from nodewise.runtime.identity.tokens import PREFIX, TokenBook, UnknownTokenError
from nodewise.runtime.settings import Settings, SettingsError

__all__ = ["LOOK_EVERY_S", "Callers", "callers_of"]

_log = structlog.get_logger(__name__)

LOOK_EVERY_S: Final = 0.5
"""Between two looks for tokens that were made or revoked elsewhere, and for other keys."""
SOONEST_S: Final = 0.1
"""Between two looks for a token that is not known, which may be new; so many strangers cost no more."""
MOST_KEPT: Final = 4096
"""Callers whose tokens need not be checked again."""
_HEADER: Final = "authorization"
_BEARER: Final = "bearer "
_NAMES: Final = ("x509_subject_alternative_name", "x509_common_name", "peer_spiffe_id")
"""In what gRPC tells of a certificate."""


class Callers:
    """Implements ``rpc.access.Identity``. Belongs to the event loop's thread.

    Parameters
    ----------
    book : TokenBook or None
        None = bearer tokens are not taken.
    jwt : JwtReader or None
        None = JSON Web Tokens are not taken.
    holders : mapping of str to Principal, or None
        By the certificate's common name, or an alternative name; None = certificates do not authenticate.
    """

    def __init__(
        self,
        book: TokenBook | None,
        jwt: JwtReader | None,
        holders: Mapping[str, Principal] | None,
    ) -> None:
        self.epoch = 0
        """Another number after each change of tokens or keys."""
        self._book = book
        self._jwt = jwt
        self._holders = holders
        # By what calls brought, as it stood in their metadata. Python compares texts only where their keyed hashes are
        # alike, so how long a look takes tells nothing of what is kept.
        self._principals: dict[str | bytes, Principal] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nodewise-identity")
        self._looking = asyncio.Lock()
        self._looked_s = float("-inf")
        self._behind = False
        self._following: asyncio.Task[None] | None = None

    @property
    def ledger(self) -> TokenLedger | None:
        """Where bearer tokens are kept; None = they are not taken."""
        return None if self._book is None else self._book.ledger

    async def begin(self) -> None:
        """Read tokens, and follow what changes. Raises NodewiseError STORE_UNAVAILABLE."""
        await self.look()
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def end(self) -> None:
        """Follow nothing any more."""
        if self._following is not None:
            self._following.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def known_principal(self, metadata: Metadata) -> Principal | None:
        """As the protocol says."""
        principal = self._principals.get(_authorization(metadata) or "")
        return None if principal is None or principal.is_expired() else principal

    async def principal(self, context: Context) -> Principal:
        """As the protocol says."""
        value = _authorization(metadata_of(context))
        if value is not None:
            return await self.bearer(value)
        if self._holders is None:
            raise unauthenticated_error("none")
        auth_context = context.auth_context()
        for name in (name for kind in _NAMES for name in auth_context.get(kind, ())):
            holder = self._holders.get(name.decode("utf-8", "replace"))
            if holder is not None:
                return holder
        raise unauthenticated_error("certificate" if auth_context.get("x509_pem_cert") else "none")

    async def bearer(self, value: str | bytes) -> Principal:
        """The principal of a call with this metadata. Raises NodewiseError."""
        principal = self._principals.get(value)
        if principal is not None and not principal.is_expired():
            return principal
        self._principals.pop(value, None)
        if not isinstance(value, str) or value[: len(_BEARER)].lower() != _BEARER:
            raise unauthenticated_error("malformed")
        epoch = self.epoch
        principal = await self._check(value[len(_BEARER) :].strip())
        if epoch == self.epoch:
            if len(self._principals) >= MOST_KEPT:
                del self._principals[next(iter(self._principals))]
            self._principals[value] = principal
        return principal

    async def look(self) -> None:
        """Look for changes now. Raises NodewiseError STORE_UNAVAILABLE."""
        self._looked_s = time.monotonic()
        if await asyncio.get_running_loop().run_in_executor(self._thread, self._has_changed):
            self.epoch += 1
            self._principals.clear()

    async def _check(self, text: str) -> Principal:
        if self._jwt is not None and not text.startswith(PREFIX):
            return self._jwt.principal(text)
        if self._book is None:
            raise unauthenticated_error("unknown")
        try:
            return self._book.principal(text)
        except UnknownTokenError:
            return await self._perhaps_new(self._book, text)

    async def _perhaps_new(self, book: TokenBook, text: str) -> Principal:
        """Another worker may have made it a moment ago: callers that ask together wait for one look together."""
        asked_s = time.monotonic()
        with suppress(NodewiseError):  # what is known is believed for a while
            async with self._looking:
                if self._looked_s < asked_s:
                    await asyncio.sleep(SOONEST_S - (time.monotonic() - self._looked_s))
                    await self.look()
        try:
            return book.principal(text)
        except UnknownTokenError:
            raise unauthenticated_error("unknown") from None

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
                self._behind = False
            except NodewiseError:  # the store has logged it
                if not self._behind:
                    _log.warning("tokens_not_followed")
                self._behind = True
            except Exception:  # noqa: BLE001  # the next look may know more
                _log.exception("tokens_not_followed")

    def _has_changed(self) -> bool:
        keys = self._jwt is not None and self._jwt.refresh()
        tokens = self._book is not None and self._book.refresh()
        return keys or tokens


def callers_of(settings: Settings, store: ProfileStore) -> Callers | None:
    """The authentication of callers, as the settings say; None = there is none.

    Raises
    ------
    SettingsError
    """
    ways = settings.authentication
    if not ways:
        return None
    if "tokens" in ways and store.tokens is None:
        raise SettingsError(
            "setting authentication: this kind of store keeps no tokens; use SQLite or PostgreSQL, or jwt"
        )
    book = TokenBook(store.tokens) if "tokens" in ways and store.tokens is not None else None
    try:
        jwt = JwtReader(settings.jwt) if "jwt" in ways else None
    except KeysError as error:
        raise SettingsError(f"setting jwt.keys: {settings.jwt.keys} {error}") from None
    holders = {
        name: Principal(f"certificate:{name}", frozenset(grant.roles), tuple(map(normal_prefix, grant.prefixes)))
        for name, grant in settings.certificates.items()
    }
    return Callers(book, jwt, holders if "certificates" in ways else None)


def _authorization(metadata: Metadata) -> str | bytes | None:
    """The credentials of a call; None = it has none."""
    return next((value for name, value in metadata if name == _HEADER), None)
