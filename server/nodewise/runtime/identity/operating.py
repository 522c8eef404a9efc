"""Token commands that need no server, for the owner of a store. They create the first token of a server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nodewise.domain.errors import Kind, NodewiseError
from nodewise.profiles.opening import StoreOptions, open_store
from nodewise.profiles.store import StoreFormatError
from nodewise.profiles.tokens import StoredToken, TokenLedger
from nodewise.profiles.traces import TraceStore
from nodewise.rpc.audit import entry_of
from nodewise.runtime.audit_log import AuditLog
from nodewise.runtime.identity.administering import write_token
from nodewise.runtime.identity.tokens import new_token
from nodewise.runtime.settings import SettingsError, load_settings, redacted_url
from nodewise.runtime.starting import StartError
from nodewise_protos.v1beta1.admin_service_pb2 import Token

__all__ = ["all_tokens", "end_token", "make_token", "purge_tokens"]


def make_token(
    config: Path | None,
    store: str | None,
    description: str,
    roles: Sequence[str],
    prefixes: Sequence[str],
    life_s: float | None,
) -> tuple[str, Token]:
    """Create a token in a store. Return its text and its stored record.

    Parameters
    ----------
    config, store : Path or None, str or None
        The server's settings and store; None = from the environment, or the default.
    description, roles, prefixes, life_s
        As in :func:`new_token`.

    Raises
    ------
    StartError
    """
    with _ledger(config, store) as (ledger, audit):
        text, token = new_token(description, roles, prefixes, life_s)
        ledger.add(token)
        _write_entry(audit, "CreateToken", token)
        return text, write_token(token)


def all_tokens(config: Path | None, store: str | None, *, show_ended: bool) -> list[Token]:
    """Return the tokens of a store in the order of their creation. Raises StartError."""
    with _ledger(config, store) as (ledger, _):
        now_s = time.time()
        return [write_token(token) for token in ledger.all()[1] if show_ended or not token.has_ended(now_s)]


def purge_tokens(config: Path | None, store: str | None, ended_before_s: float) -> list[Token]:
    """Delete the tokens of a store that ended before a time (seconds since 1970). Return them. Raises StartError."""
    with _ledger(config, store) as (ledger, audit):
        tokens = ledger.purge(ended_before_s)
        for token in tokens:
            _write_entry(audit, "PurgeToken", token)
        return [write_token(token) for token in tokens]


def end_token(config: Path | None, store: str | None, token_id: str) -> Token:
    """Revoke a token of a store, unless it ended before. Return it. Raises StartError."""
    with _ledger(config, store) as (ledger, audit):
        token = ledger.revoke(token_id)
        _write_entry(audit, "RevokeToken", token)
        return write_token(token)


@contextmanager
def _ledger(config: Path | None, store: str | None) -> Iterator[tuple[TokenLedger, AuditLog | None]]:
    """Open the token store, and the audit log if the settings name its file, before any change."""
    try:
        settings = load_settings(config, store=store)
        audit = AuditLog(settings.audit_log) if settings.audit_log else None
    except SettingsError as error:
        raise StartError(str(error), of_input=True) from None
    if settings.store == "memory:":
        raise StartError("--store: memory: ends with its server; name a store that lasts", of_input=True)
    where = redacted_url(settings.store)
    try:
        # Tokens need no traces, and where the server has them is nothing to ask for.
        options = StoreOptions(durability=settings.durability, traces=TraceStore(), scored=settings.scoring)
        profile_store = open_store(settings.store, options)
    except StoreFormatError as error:
        raise StartError(f"store {where}: {error}", of_input=False) from None
    except NodewiseError as error:
        raise StartError(f"store {where}: {error.message}", of_input=error.kind is Kind.INVALID) from None
    try:
        if profile_store.tokens is None:
            raise StartError(f"store {where}: this kind of store cannot store tokens", of_input=True)
        yield profile_store.tokens, audit
    except NodewiseError as error:
        raise StartError(error.message, of_input=error.kind in (Kind.INVALID, Kind.NOT_FOUND)) from None
    finally:
        profile_store.close()


def _write_entry(audit: AuditLog | None, method: str, token: StoredToken) -> None:
    """Write an entry into the audit log, as a server does."""
    if audit is not None:
        prefixes = [] if "" in token.prefixes else list(token.prefixes)
        about = {"token_id": token.token_id, "roles": list(token.roles), "prefixes": prefixes}
        audit.write(entry_of(f"nodewise.tokens.{method}", f"user:{os.getuid()}", "", "OK", about, ""))
