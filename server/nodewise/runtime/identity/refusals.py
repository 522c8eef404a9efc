"""Why somebody is not known, as callers are told."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final

from nodewise.domain.errors import NodewiseError, Reason

__all__ = ["Cause", "unauthenticated"]


class Cause(StrEnum):
    """In the metadata of UNAUTHENTICATED."""

    NONE = "none"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    REVOKED = "revoked"
    CERTIFICATE = "certificate"


_TEXTS: Final = MappingProxyType(
    {
        Cause.NONE: "the call brings no token; send it as the metadata `authorization: Bearer TOKEN`",
        Cause.MALFORMED: "the metadata authorization must be `Bearer TOKEN`",
        Cause.UNKNOWN: "this server does not know the token",
        Cause.EXPIRED: "the token has expired",
        Cause.REVOKED: "the token was revoked",
        Cause.CERTIFICATE: "this server does not know the holder of the client's certificate, and the call brings no "
        "token",
    }
)


def unauthenticated(cause: Cause) -> NodewiseError:
    """An error that says what is wrong with what the call brings, and nothing of what it brings."""
    return NodewiseError(Reason.UNAUTHENTICATED, _TEXTS[cause], {"cause": str(cause)})
