"""Pages of names. A token says after which name the next page begins; callers treat it as opaque."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Final, Protocol

from nodewise.domain.errors import invalid_field

__all__ = ["Paged", "next_token", "page", "page_after", "page_size"]

DEFAULT_PAGE: Final = 100
LARGEST_PAGE: Final = 1000
_MARK: Final = b"after:"


class Paged(Protocol):
    """A request for a page: ``optional`` size, and the token of an earlier reply."""

    page_size: int
    page_token: str

    def HasField(self, field_name: Any, /) -> bool:  # noqa: N802  # as messages have it
        """Whether a field is present."""
        ...


def page_size(request: Paged, *, default: int = DEFAULT_PAGE, largest: int = LARGEST_PAGE) -> int:
    """Entries of a page.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a size below 1, or too large.
    """
    if not request.HasField("page_size"):
        return default
    if not 1 <= request.page_size <= largest:
        raise invalid_field("page_size", f"must be from 1 to {largest}, found {request.page_size}")
    return request.page_size


def page_after(token: str) -> str:
    """The name that the page before ended with; empty = from the first.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a token that no reply gave.
    """
    if not token:
        return ""
    try:
        marked = base64.urlsafe_b64decode(token.encode("ascii"))
        if marked.startswith(_MARK):
            return marked.removeprefix(_MARK).decode("utf-8")
    except (binascii.Error, UnicodeError):
        pass
    raise invalid_field("page_token", "must be empty or the next_page_token of an earlier reply")


def next_token(last: str) -> str:
    """The token of the page after one that ends with ``last``."""
    return base64.urlsafe_b64encode(_MARK + last.encode("utf-8")).decode("ascii")


def page(names: Sequence[str], request: Paged) -> tuple[list[str], str]:
    """Names after the token, at most a page of them, and the next token (empty = this was the last page)."""
    size, after = page_size(request), page_after(request.page_token)
    rest = [name for name in names if name > after] if after else list(names)
    return rest[:size], next_token(rest[size - 1]) if len(rest) > size else ""
