"""Errors of callers that cannot be authenticated."""

from __future__ import annotations

from typing import Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = ["unauthenticated_error"]

_TEXTS: Final = {
    "none": "the call brings no token; send it as the metadata `authorization: Bearer TOKEN`",
    "malformed": "the metadata authorization must be `Bearer TOKEN`",
    "unknown": "this server does not know the token",
    "expired": "the token has expired",
    "revoked": "the token was revoked",
    "certificate": "this server does not know the holder of the client's certificate, and the call brings no token",
}
"""By the cause in the metadata of UNAUTHENTICATED."""


def unauthenticated_error(cause: str) -> NodewiseError:
    """Return an error that says what is wrong with the credentials, without quoting them."""
    return NodewiseError(Reason.UNAUTHENTICATED, _TEXTS[cause], {"cause": cause})
