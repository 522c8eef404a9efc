"""`nodewise tokens`: which callers may call a server, and for what."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from typer import Argument, Option

from nodewise_cli.commands.options import AsJson, Commands
from nodewise_cli.commands.reload import AdminCall
from nodewise_cli.console import print_json, say
from nodewise_cli.failures import InputError
from nodewise_cli.service import starting
from nodewise_cli.views.tokens import show_created, show_tokens, token_document
from nodewise_client import CallerRole, CreateTokenRequest, ListTokensRequest, Token
from nodewise_values.wire import from_message

__all__ = ["tokens"]

DAY_S: Final = 86_400.0
_ROLES: Final = tuple(role.name.lower() for role in CallerRole)

tokens = Commands(
    help="Create, list and revoke bearer tokens: through a server as an admin, or directly in its store (--store).",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The store itself instead of a server: a user with write access needs no token."""

    store: Annotated[
        str | None, Option(metavar="URL", help="The server's store, such as sqlite:nodewise.db; the server may run.")
    ] = None
    config: Annotated[Path | None, Option(metavar="FILE.toml", help="The server's settings, which name its store.")] = (
        None
    )

    @property
    def is_named(self) -> bool:
        """Whether the command works on the store, not on a server."""
        return self.store is not None or self.config is not None


_PLACE: Final = _Place()
_SOON: Final = AdminCall(timeout_s=10.0)


@tokens.command("create")
def create(
    role: Annotated[
        list[str], Option(help=f"Role of the token: {', '.join(_ROLES)}; repeatable. admin includes all others.")
    ],
    prefix: Annotated[
        list[str] | None,
        Option(
            help="Profiles that the token may use, by the first segments of their names, such as team-a/; repeatable; "
            "* = all. Required with a server; default with --store: all."
        ),
    ] = None,
    description: Annotated[str, Option(metavar="TEXT", help="Description for people, such as the owner.")] = "",
    lifetime_days: Annotated[
        float, Option(metavar="DAYS", help="Days until the token expires; 0 = never, with --store only.")
    ] = 365.0,
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """Create a token and print it. It is printed only once: the server stores a hash."""
    unknown = [each for each in role if each not in _ROLES]
    if unknown:
        raise InputError(f"--role: must be of {', '.join(_ROLES)}; found {unknown[0]!r}")
    if not 0 <= lifetime_days < 1e6:
        raise InputError(f"--lifetime-days: must be 0 or more and below a million, found {lifetime_days:g}")
    life_s = lifetime_days * DAY_S or None
    if place.is_named:
        # Only here: a call to a server should not wait for the imports of the server's code.
        from nodewise.runtime.identity.operating import make_token

        with starting():
            text, message = make_token(place.config, place.store, description, role, prefix or (), life_s)
        token = token_document(from_message(message, Token))
    elif life_s is None:
        raise InputError(
            "--lifetime-days: must be above 0 when a server creates the token; only --store allows 0 (never)"
        )
    elif not prefix:
        raise InputError("--prefix: must name the profiles that the token may use, such as team-a/, or '*' for all")
    else:
        request = CreateTokenRequest(
            description=description,
            roles=tuple(CallerRole[each.upper()] for each in role),
            prefixes=tuple(prefix),
            lifetime_seconds=life_s,
        )
        with call.connect() as client:
            response = client.create_token(request)
        text, token = response.bearer_token, token_document(response.token)
    if call.as_json:
        print_json({"token": token, "bearer_token": text})
    else:
        show_created(text, token)


@tokens.command("list")
def list_tokens(
    ended: Annotated[bool, Option("--ended", help="Also list tokens that expired or were revoked.")] = False,
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """List tokens by their ids. The text of a token is not stored."""
    if place.is_named:
        from nodewise.runtime.identity.operating import all_tokens

        with starting():
            messages = all_tokens(place.config, place.store, show_ended=ended)
        documents = [token_document(from_message(each, Token)) for each in messages]
    else:
        with call.connect() as client:
            documents = [
                token_document(each) for each in client.list_tokens(ListTokensRequest(show_ended=ended)).tokens
            ]
    call.tell(lambda entries: {"tokens": entries}, show_tokens, documents)


@tokens.command("revoke")
def revoke(
    token_id: Annotated[str, Argument(metavar="ID", help="Id of the token in `nodewise tokens list`.")],
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """Revoke a token for good. Every server of the store refuses it within about a second."""
    if place.is_named:
        from nodewise.runtime.identity.operating import end_token

        with starting():
            token = token_document(from_message(end_token(place.config, place.store, token_id), Token))
    else:
        with call.connect() as client:
            token = token_document(client.revoke_token(token_id).token)
    call.tell(lambda entry: {"token": entry}, lambda entry: say(f"token {entry['token_id']} is revoked"), token)


@tokens.command("purge")
def purge(
    ended_days: Annotated[
        float,
        Option(
            metavar="DAYS", help="Delete tokens that ended more than this many days ago, by the clock of this machine."
        ),
    ] = 30.0,
    place: _Place = _PLACE,
    as_json: AsJson = False,
) -> None:
    """Delete tokens of a --store that expired or were revoked long ago. Nothing else deletes them."""
    if not place.is_named:
        raise InputError("--store, --config: one of them must name the store whose ended tokens are deleted")
    if not 0 <= ended_days < 1e6:
        raise InputError(f"--ended-days: must be 0 or more and below a million, found {ended_days:g}")
    from nodewise.runtime.identity.operating import purge_tokens

    with starting():
        messages = purge_tokens(place.config, place.store, time.time() - ended_days * DAY_S)
    entries = [token_document(from_message(each, Token)) for each in messages]
    if as_json:
        print_json({"tokens": entries})
    else:
        say(f"{len(entries)} tokens deleted")
