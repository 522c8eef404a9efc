"""Pages of names. A token says after which name the next page begins; callers treat it as opaque."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeVar

from nodewise.domain.errors import invalid_field

__all__ = ["Paged", "next_token", "page", "page_after", "page_size", "read_token", "token_of"]

DEFAULT_PAGE: Final = 100
LARGEST_PAGE: Final = 1000
_MARK: Final = "after:"

SaidT = TypeVar("SaidT")


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

    def name(text: str) -> str:
        if not text.startswith(_MARK):
            raise ValueError
        return text.removeprefix(_MARK)

    return read_token(token, name) if token else ""


def next_token(last: str) -> str:
    """The token of the page after one that ends with ``last``."""
    return token_of(_MARK + last)


def token_of(text: str) -> str:
    """A token that says something, which is nobody else's to read."""
    return base64.urlsafe_b64encode(text.encode()).decode("ascii")


def read_token(token: str, read: Callable[[str], SaidT]) -> SaidT:
    """What a token says.

    Parameters
    ----------
    read : callable
        From the text; raises ValueError for what no token says.

    Raises
    ------
    NodewiseError
        INVALID_FIELD.
    """
    try:
        return read(base64.urlsafe_b64decode(token.encode("ascii")).decode())
    except ValueError:  # what is not of the alphabet is one, too
        raise invalid_field("page_token", "must be empty or the next_page_token of an earlier reply") from None


def page(names: Sequence[str], request: Paged) -> tuple[list[str], str]:
    """Names after the token, at most a page of them, and the next token (empty = this was the last page)."""
    size, after = page_size(request), page_after(request.page_token)
    rest = [name for name in names if name > after] if after else list(names)
    return rest[:size], next_token(rest[size - 1]) if len(rest) > size else ""
