"""Tokens without a server, for owners of a store: above all the first token of a server."""

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
    """A new token of a store: its text, and what is kept of it.

    Parameters
    ----------
    config, store : Path or None, str or None
        The server's settings and store; None = as the environment or the default says.
    description, roles, prefixes, life_s
        As :func:`new_token` has them.

    Raises
    ------
    StartError
    """
    with _ledger(config, store) as (ledger, audit):
        text, token = new_token(description, roles, prefixes, life_s)
        ledger.add(token)
        _put_down(audit, "CreateToken", token)
        return text, write_token(token)


def all_tokens(config: Path | None, store: str | None, *, show_ended: bool) -> list[Token]:
    """Tokens of a store, by the time that they were made. Raises StartError."""
    with _ledger(config, store) as (ledger, _):
        now_s = time.time()
        return [write_token(token) for token in ledger.all()[1] if show_ended or not token.has_ended(now_s)]


def purge_tokens(config: Path | None, store: str | None, ended_before_s: float) -> list[Token]:
    """Tokens of a store that are forgotten: they ended before a moment (seconds since 1970). Raises StartError."""
    with _ledger(config, store) as (ledger, audit):
        tokens = ledger.purge(ended_before_s)
        for token in tokens:
            _put_down(audit, "PurgeToken", token)
        return [write_token(token) for token in tokens]


def end_token(config: Path | None, store: str | None, token_id: str) -> Token:
    """A token of a store that was ended now, or before. Raises StartError."""
    with _ledger(config, store) as (ledger, audit):
        token = ledger.revoke(token_id)
        _put_down(audit, "RevokeToken", token)
        return write_token(token)


@contextmanager
def _ledger(config: Path | None, store: str | None) -> Iterator[tuple[TokenLedger, AuditLog | None]]:
    """Tokens, and the audit log if the settings name a file for it, opened before anything changes."""
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


def _put_down(audit: AuditLog | None, method: str, token: StoredToken) -> None:
    """As a server does, by the user that may write the store."""
    if audit is not None:
        prefixes = [] if "" in token.prefixes else list(token.prefixes)
        about = {"token_id": token.token_id, "roles": list(token.roles), "prefixes": prefixes}
        audit.write(entry_of(f"nodewise.tokens.{method}", f"user:{os.getuid()}", "", "OK", about, ""))
