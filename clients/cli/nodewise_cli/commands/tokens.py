"""`nodewise tokens`: who may ask a server, and for what."""

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
    help="Make, list and revoke bearer tokens: by a server as an admin, or in its store (--store) as who owns that.",
    no_args_is_help=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """The store itself in place of a server: whoever may write it needs no token."""

    store: Annotated[
        str | None, Option(metavar="URL", help="The server's store, such as sqlite:nodewise.db; the server may run.")
    ] = None
    config: Annotated[Path | None, Option(metavar="FILE.toml", help="The server's settings, which name its store.")] = (
        None
    )

    @property
    def is_named(self) -> bool:
        """Whether the store is asked, not a server."""
        return self.store is not None or self.config is not None


_PLACE: Final = _Place()
_SOON: Final = AdminCall(timeout_s=10.0)


@tokens.command("create")
def create(
    role: Annotated[list[str], Option(help=f"What it is for: {', '.join(_ROLES)}; repeatable. admin may do all.")],
    prefix: Annotated[
        list[str] | None,
        Option(
            help="Profiles that it reaches, by first segments of their names, as team-a/; repeatable; * = all. "
            "A server must be told; default in a --store: all."
        ),
    ] = None,
    description: Annotated[str, Option(help="For people: who has it.")] = "",
    lifetime_days: Annotated[float, Option(metavar="DAYS", help="Until it expires; 0 = never, in a --store.")] = 365.0,
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """Make a token and print it: once, as the server keeps a hash alone."""
    unknown = [each for each in role if each not in _ROLES]
    if unknown:
        raise InputError(f"--role: must be of {', '.join(_ROLES)}; found {unknown[0]!r}")
    if not 0 <= lifetime_days < 1e6:
        raise InputError(f"--lifetime-days: must be 0 or more and below a million, found {lifetime_days:g}")
    life_s = lifetime_days * DAY_S or None
    if place.is_named:
        # Only here: who asks a server should not wait for this one's imports.
        from nodewise.runtime.identity.operating import make_token

        with starting():
            text, made = make_token(place.config, place.store, description, role, prefix or (), life_s)
        token = token_document(from_message(made, Token))
    elif life_s is None:
        raise InputError("--lifetime-days: must be above 0 where a server makes the token; 0 = never is for --store")
    elif not prefix:
        raise InputError("--prefix: must name what the token reaches, such as team-a/, or be '*' for all profiles")
    else:
        request = CreateTokenRequest(
            description=description,
            roles=tuple(CallerRole[each.upper()] for each in role),
            prefixes=tuple(prefix),
            lifetime_seconds=life_s,
        )
        with call.connect() as client:
            found = client.create_token(request)
        text, token = found.bearer_token, token_document(found.token)
    if call.as_json:
        print_json({"token": token, "bearer_token": text})
    else:
        show_created(text, token)


@tokens.command("list")
def list_tokens(
    ended: Annotated[bool, Option("--ended", help="Those as well that expired or were revoked.")] = False,
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """List tokens by their ids; their texts are known to nobody but who has them."""
    if place.is_named:
        from nodewise.runtime.identity.operating import all_tokens

        with starting():
            kept = all_tokens(place.config, place.store, show_ended=ended)
        found = [token_document(from_message(each, Token)) for each in kept]
    else:
        with call.connect() as client:
            found = [token_document(each) for each in client.list_tokens(ListTokensRequest(show_ended=ended)).tokens]
    call.tell(lambda entries: {"tokens": entries}, show_tokens, found)


@tokens.command("revoke")
def revoke(
    token_id: Annotated[str, Argument(metavar="ID", help="As `nodewise tokens list` shows it.")],
    place: _Place = _PLACE,
    call: AdminCall = _SOON,
) -> None:
    """End a token for good; every server of the store refuses it within about a second."""
    if place.is_named:
        from nodewise.runtime.identity.operating import end_token

        with starting():
            token = token_document(from_message(end_token(place.config, place.store, token_id), Token))
    else:
        with call.connect() as client:
            token = token_document(client.revoke_token(token_id).token)
    call.tell(lambda told: {"token": told}, lambda told: say(f"token {told['token_id']} is revoked"), token)


@tokens.command("purge")
def purge(
    ended_days: Annotated[float, Option(metavar="DAYS", help="Of those that ended so long ago, by this clock.")] = 30.0,
    place: _Place = _PLACE,
    as_json: AsJson = False,
) -> None:
    """Forget tokens of a --store that expired or were revoked long ago. Nothing else forgets them."""
    if not place.is_named:
        raise InputError("--store or --config: must name the store whose ended tokens are forgotten")
    if not 0 <= ended_days < 1e6:
        raise InputError(f"--ended-days: must be 0 or more and below a million, found {ended_days:g}")
    from nodewise.runtime.identity.operating import purge_tokens

    with starting():
        kept = purge_tokens(place.config, place.store, time.time() - ended_days * DAY_S)
    found = [token_document(from_message(each, Token)) for each in kept]
    if as_json:
        print_json({"tokens": found})
    else:
        say(f"{len(found)} tokens forgotten")
