"""Pages of names. A token is the last name of the page before."""

from __future__ import annotations

from collections.abc import Sequence

from nodewise.domain.errors import invalid_field

__all__ = ["page", "page_size"]

DEFAULT_PAGE = 100
LARGEST_PAGE = 1000


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


def page(names: Sequence[str], asked: int, token: str) -> tuple[list[str], str]:
    """Names after the token, at most a page of them, and the next token (empty = this was the last page)."""
    size = page_size(asked)
    rest = [name for name in names if name > token] if token else list(names)
    return rest[:size], rest[size - 1] if len(rest) > size else ""
