"""Pages of names. A token says after which name the next page begins; callers treat it as opaque."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from nodewise.domain.errors import invalid_field

__all__ = ["next_token", "page", "page_after", "page_size"]

DEFAULT_PAGE: Final = 100
LARGEST_PAGE: Final = 1000
_MARK: Final = b"after:"


def page_size(asked: int) -> int:
    """Entries of a page.

    Raises
    ------
    NodewiseError
        INVALID_FIELD for a negative or too large size.
    """
    if not 0 <= asked <= LARGEST_PAGE:
        raise invalid_field("page_size", f"must be from 0 to {LARGEST_PAGE}, found {asked}")
    return asked or DEFAULT_PAGE


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


def page(names: Sequence[str], asked: int, token: str) -> tuple[list[str], str]:
    """Names after the token, at most a page of them, and the next token (empty = this was the last page)."""
    size, after = page_size(asked), page_after(token)
    rest = [name for name in names if name > after] if after else list(names)
    return rest[:size], next_token(rest[size - 1]) if len(rest) > size else ""
