"""Identifies callers by the token of a call, else by the certificate of its connection."""

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
"""Seconds between two checks for tokens that other processes made or revoked, and for new keys."""
SOONEST_S: Final = 0.1
"""Least seconds between two checks for an unknown token, which may be new; many unknown callers cost no more."""
MOST_KEPT: Final = 4096
"""Most cached callers, whose tokens need not be checked again."""
_HEADER: Final = "authorization"
_BEARER: Final = "bearer "
_NAMES: Final = ("x509_subject_alternative_name", "x509_common_name", "peer_spiffe_id")
"""Properties of gRPC's authentication context with the names of a certificate."""


class Callers:
    """Implements ``rpc.access.Identity``. Belongs to the event loop's thread.

    Parameters
    ----------
    book : TokenBook or None
        None = bearer tokens are not accepted.
    jwt : JwtReader or None
        None = JSON Web Tokens are not accepted.
    holders : mapping of str to Principal, or None
        Principals by common name or alternative name of certificates; None = certificates do not authenticate.
    """

    def __init__(self, book: TokenBook | None, jwt: JwtReader | None, holders: Mapping[str, Principal] | None) -> None:
        self.epoch = 0
        """A number that increases with each change of tokens or keys."""
        self._book = book
        self._jwt = jwt
        self._holders = holders
        # By the credentials in the metadata of calls. Python compares texts only if their keyed hashes are equal, so
        # the time of a lookup reveals nothing about stored credentials.
        self._principals: dict[str | bytes, Principal] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nodewise-identity")
        self._looking = asyncio.Lock()
        self._looked_s = float("-inf")
        self._behind = False
        self._following: asyncio.Task[None] | None = None

    @property
    def ledger(self) -> TokenLedger | None:
        """Store of bearer tokens; None = they are not accepted."""
        return None if self._book is None else self._book.ledger

    async def begin(self) -> None:
        """Read the tokens, and start to follow changes. Raises NodewiseError STORE_UNAVAILABLE."""
        await self.look()
        self._following = asyncio.get_running_loop().create_task(self._follow())

    def end(self) -> None:
        """Stop following changes."""
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
        """Return the principal of a call with this metadata. Raises NodewiseError."""
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
        """Check for changes now. Raises NodewiseError STORE_UNAVAILABLE."""
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
        """Check the store for a token that another worker may just have created. Concurrent calls share one check."""
        asked_s = time.monotonic()
        with suppress(NodewiseError):  # known tokens stay valid while the store does not answer
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
            except Exception:  # noqa: BLE001  # the next check may succeed
                _log.exception("tokens_not_followed")

    def _has_changed(self) -> bool:
        keys = self._jwt is not None and self._jwt.refresh()
        tokens = self._book is not None and self._book.refresh()
        return keys or tokens


def callers_of(settings: Settings, store: ProfileStore) -> Callers | None:
    """Return the authentication that the settings ask for; None = no authentication.

    Raises
    ------
    SettingsError
    """
    ways = settings.authentication
    if not ways:
        return None
    if "tokens" in ways and store.tokens is None:
        raise SettingsError(
            "setting authentication: this kind of store cannot store tokens; use SQLite or PostgreSQL, or jwt"
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
    """Return the credentials of a call; None = it has none."""
    return next((value for name, value in metadata if name == _HEADER), None)
