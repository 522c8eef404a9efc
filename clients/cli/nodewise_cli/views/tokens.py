"""Bearer tokens as JSON and for people."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from nodewise_cli.console import complain, say
from nodewise_cli.views.table import print_columns, words
from nodewise_client import Token

__all__ = ["show_created", "show_tokens", "token_document"]


def token_document(token: Token | None) -> dict[str, Any]:
    """The JSON of a token, without its text."""
    assert token is not None  # the server tells it always
    return {
        "token_id": token.token_id,
        "description": token.description,
        "roles": [role.name.lower() for role in token.roles if role is not None],
        "prefixes": list(token.prefixes),
        "created": _moment(token.create_time),
        "expires": _moment(token.expire_time),
        "revoked": _moment(token.revoke_time),
    }


def show_created(text: str, token: dict[str, Any]) -> None:
    """Print the text alone on standard output, so that it can be redirected; the description goes to standard error."""
    reach = ", ".join(token["prefixes"]) or "all profiles"
    until = f"until {token['expires']}" if token["expires"] else "until it is revoked"
    complain(f"token {token['token_id']} for {', '.join(token['roles'])} on {reach}, {until}; it is not shown again:")
    say(text)


def show_tokens(tokens: Sequence[dict[str, Any]]) -> None:
    """As a table."""
    if not tokens:
        say("no tokens")
        return
    print_columns(
        (words("token"), [each["token_id"] for each in tokens]),
        (words("roles"), [", ".join(each["roles"]) for each in tokens]),
        (words("prefixes"), [", ".join(each["prefixes"]) or "all" for each in tokens]),
        (words("created"), [each["created"] or "-" for each in tokens]),
        (words("expires"), [each["expires"] or "never" for each in tokens]),
        (words("revoked"), [each["revoked"] or "-" for each in tokens]),
        (words("description"), [each["description"] or "-" for each in tokens]),
    )


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
