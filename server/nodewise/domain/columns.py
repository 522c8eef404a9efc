"""Columns: read-only NumPy arrays, shared where they are constant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Floats",
    "Ints",
    "as_floats",
    "as_ints",
    "constant",
    "constant_floats",
    "constant_ints",
    "freeze",
    "holds",
    "largest",
    "only_value",
    "shared_value",
    "sum_columns",
    "take_rows",
]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


ArrayT = TypeVar("ArrayT", bound=NDArray[Any])


def freeze(array: ArrayT) -> ArrayT:
    """The same array, made read-only."""
    array.flags.writeable = False
    return array


def sum_columns(columns: Iterable[Floats]) -> Floats:
    """The sum of at least one column, added in their order, as NumPy's order depends on the number of rows."""
    first, *others = columns
    total: Floats = first.copy()
    for each in others:
        total += each
    return total


SHARED_ROWS = 256
"""Longest constant column that takes memory for every row; 4,096 of these are 8 MB."""


@lru_cache(maxsize=4096)
def constant_ints(rows: int, value: int) -> Ints:
    """A read-only constant column of integers, shared; a long one is a single number with stride 0."""
    return _constant(rows, np.int64(value))


@lru_cache(maxsize=4096)
def constant_floats(rows: int, value: float) -> Floats:
    """A read-only constant column, shared."""
    return _constant(rows, np.float64(value))


def constant(rows: int, value: float) -> NDArray[Any]:
    """A read-only constant column, of integers if the value is an int."""
    return constant_ints(rows, value) if isinstance(value, int) else constant_floats(rows, value)


class _Alike(bytes):
    """The buffer of a shared constant column; its type identifies such columns."""


def shared_value(column: NDArray[Any]) -> Any:
    """The value of a shared constant column; None = the column is not one."""
    base: Any = column.base
    return column.item(0) if type(base) is _Alike else None


def _repeat(one: ArrayT, rows: int) -> ArrayT:
    """One number as a long column, twenty times faster than ``np.broadcast_to``."""
    column: Any = np.ndarray((rows,), one.dtype, one, strides=(0,))
    result: ArrayT = column
    return result


def take_rows(column: ArrayT, rows: NDArray[np.integer]) -> ArrayT:
    """Some rows of a column; a long constant column stays a single number."""
    constant = len(column) > 0 and column.strides == (0,)
    rows_taken: Any = _repeat(column[:1], len(rows)) if constant else freeze(column[rows])
    result: ArrayT = rows_taken
    return result


def holds(column: NDArray[Any], value: float) -> bool:
    """Whether some row has a value. A list is faster for short columns than NumPy: 16 rows in 0.4 against 3 us."""
    base: Any = column.base
    if type(base) is _Alike:
        return bool(column.item(0) == value)
    return value in column.tolist() if len(column) <= SHARED_ROWS else bool((column == value).any())


def only_value(column: NDArray[Any]) -> Any:
    """The value of all rows; None where rows differ, or there are none."""
    base: Any = column.base
    if type(base) is _Alike:
        return column.item(0)
    if len(column) > SHARED_ROWS:
        return column[0].item() if (column == column[0]).all() else None
    values = column.tolist()
    return values[0] if values and values.count(values[0]) == len(values) else None


def largest(column: Ints) -> int:
    """The largest value, at least 0."""
    base: Any = column.base
    if type(base) is _Alike:
        return max(column.item(0), 0)
    if len(column) > SHARED_ROWS:
        return int(np.maximum.reduce(column, initial=0))
    return max(column.tolist(), default=0)


def _constant(rows: int, number: np.generic) -> NDArray[Any]:
    if not rows:
        return freeze(np.empty(0, number.dtype))
    own: NDArray[Any] = np.frombuffer(_Alike(number.tobytes() * min(rows, SHARED_ROWS)), number.dtype)
    return own if rows <= SHARED_ROWS else _repeat(own[:1], rows)


def as_ints(values: Sequence[int] | NDArray[Any]) -> Ints:
    """A read-only column of integers; copies unless the input is one."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64 and not values.flags.writeable:
        return values
    return freeze(np.array(values, dtype=np.int64))


def as_floats(values: Sequence[float] | NDArray[Any]) -> Floats:
    """A read-only column of floats; copies unless the input is one."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64 and not values.flags.writeable:
        return values
    return freeze(np.array(values, dtype=np.float64))
