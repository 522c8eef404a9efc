"""Checks which web pages may call (only those of the setting), and by which names of this machine.

A browser lets any page send a request to 127.0.0.1, and tells by the header Origin which one it was. What such a page
may not read it must not cause either, so it is refused before it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

__all__ = ["Origins"]

_ANY: Final = "*"
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})
_ASKED: Final = (
    *("authorization", "content-type", "content-encoding", "x-request-id", "x-user-agent"),
    *("connect-protocol-version", "connect-timeout-ms", "connect-accept-encoding", "connect-content-encoding"),
)
_TOLD: Final = "x-request-id, retry-after, content-encoding, connect-content-encoding"
_LASTS_S: Final = 7200
"""Seconds for which a browser may cache the answer: the most that browsers accept."""


class Origins:
    """Checks origins of web pages.

    Parameters
    ----------
    allowed : iterable of str
        Origins such as https://app.example.com; ``*`` = all.
    local_names : bool
        Whether calls must name this machine as localhost. Else a page whose name is made to lead to 127.0.0.1 is of
        the same origin for its browser.
    """

    def __init__(self, origins: Iterable[str], *, local_names: bool) -> None:
        self._origins = frozenset(origins)
        self._local_names = local_names

    def refusal(self, headers: Mapping[str, str]) -> str:
        """Why a request must be refused; empty = it need not."""
        host = headers.get("Host", "")
        if self._local_names and _name(host) not in _LOCAL:
            return (
                f"the request is for {host[:80]!r}; this listener answers to localhost and 127.0.0.1 alone, as "
                "callers need no token"
            )
        origin = headers.get("Origin")
        if origin is None or self.permits(origin) or origin.partition("://")[2] == host:
            return ""
        return f"pages of {origin[:80]!r} may not call; add the origin to the setting http_origins to allow them"

    def permits(self, origin: str) -> bool:
        """Whether pages of an origin may call."""
        return origin in self._origins or _ANY in self._origins

    def response_headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Headers that let the calling page read the response."""
        origin = headers.get("Origin")
        if origin is None or not self.permits(origin):
            return {}
        return {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _TOLD}

    def preflight(self, headers: Mapping[str, str], verbs: Iterable[str]) -> dict[str, str]:
        """Headers of the answer to a browser that asks whether a page may call; empty = it may not."""
        headers_of_response = self.response_headers(headers)
        if not headers_of_response or "Access-Control-Request-Method" not in headers:
            return {}
        headers_of_response |= {
            "Access-Control-Allow-Methods": ", ".join(verbs),
            "Access-Control-Allow-Headers": ", ".join(_ASKED),
            "Access-Control-Max-Age": str(_LASTS_S),
        }
        if headers.get("Access-Control-Request-Private-Network") == "true":
            headers_of_response["Access-Control-Allow-Private-Network"] = "true"
        return headers_of_response


def _name(host: str) -> str:
    """The name in a header Host, without its port."""
    end = host.find("]") + 1 if host.startswith("[") else host.rfind(":")
    return (host[:end] if end > 0 else host).lower()
