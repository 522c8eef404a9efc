"""How one-dimensional arrays lie in messages: in full, or as one number where every row has the same."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from nodewise.domain.columns import SHARED_ROWS, constant, shared_value

__all__ = ["DTYPES", "MOST_ALIKE", "MOST_SHARED", "is_column", "laid", "shared_column"]

DTYPES: Final = frozenset("?bBhHiIlLqQefd")
"""Of arrays that cross: truth values and numbers."""
MOST_ALIKE: Final = 1 << 16
"""Entries of an array that is sent as one number: the rows of a call. A longer one is sent in full, so that memory is
taken only by what has sent as many bytes."""
MOST_SHARED: Final = 64
"""Shared columns that a message tells by their number alone: with their bytes, which were not sent, they take up to
128 KiB."""
_NUMBERS: Final[dict[str, type[Any]]] = {np.dtype(np.int64).char: int, np.dtype(np.float64).char: float}
"""What shared columns hold, by the character of their type."""


def is_column(value: Any) -> bool:
    """Whether it is an array that :func:`laid` takes."""
    return type(value) is np.ndarray and value.ndim == 1 and value.dtype.char in DTYPES


def laid(column: np.ndarray[Any, Any], *, shares: bool) -> tuple[str, str, int, Any]:
    """What is written of a column: a tag, the type's character, the rows, and its content.

    The content is bytes, to be put behind the tree, but for the tag "k" of a shared column, whose number stands in it.

    Parameters
    ----------
    shares : bool
        Whether it may be told as a shared one.
    """
    size, char = column.size, column.dtype.char
    if shares:
        value = shared_value(column)
        if value is not None and math.isfinite(value):
            return "k", char, size, value
    if 1 < size <= MOST_ALIKE and column.strides == (0,):
        return "c", char, size, column[:1].tobytes()
    return "a", char, size, column.tobytes()


def shared_column(char: str, size: int, value: Any) -> np.ndarray[Any, Any]:
    """A column that was told by its number: the same object as all that are alike here.

    Raises
    ------
    ValueError, KeyError
        For what is none.
    """
    if type(size) is not int or not 0 < size <= SHARED_ROWS or type(value) is not _NUMBERS[char]:
        raise ValueError("no shared column")
    return constant(size, value)
