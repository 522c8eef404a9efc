"""Columns: a value for all rows, or one per row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")


def frozen(given: Any) -> tuple[Any, ...]:
    """One value or many, as a tuple that can be read more than once; None as no value."""
    if given is None:
        return ()
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return (given,)
    return tuple(given)


def broadcast(values: Sequence[Value], rows: int, name: str) -> tuple[Value, ...]:
    """A column with one value per row; an empty column stays empty."""
    if len(values) == rows or not values:
        return tuple(values)
    if len(values) == 1:
        return (values[0],) * rows
    raise ValueError(f"{name} has {len(values)} values for {rows} rows; give none, one or {rows}")
