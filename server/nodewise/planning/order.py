"""The canonical order of configurations, which breaks the last tie and does not depend on the order of the search."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.domain.planning import DIMENSIONS

__all__ = ["canonical", "first"]

_NAMED: Final = {"device_index": "devices", "precision_index": "precisions"}


def canonical(rows: Configurations) -> tuple[Ints, ...]:
    """Columns to compare rows by, in order. Names compare alphabetically: their numbers depend on the chunk."""
    return tuple(_column(rows, name) for name in DIMENSIONS)


def _column(rows: Configurations, name: str) -> Ints:
    column: Ints = getattr(rows, name)
    if name not in _NAMED:
        return column
    names = getattr(rows, _NAMED[name])
    ranks = np.argsort(np.argsort(np.array(names, dtype=np.str_), kind="stable"), kind="stable")
    return ranks[column].astype(np.int64)


def first(rows: Configurations, keys: Floats) -> int:
    """The row with the least keys, of shape (keys, rows); among equal rows the first in canonical order."""
    left = np.arange(len(rows))
    for key in keys:
        least = key[left]
        left = left[least == least.min()]
        if len(left) == 1:
            return int(left[0])
    few = rows.take(left)
    return int(left[np.lexsort(tuple(reversed(canonical(few))))[0]])
