"""Rows with any number of entries each, as compressed sparse rows of workers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from nodewise.domain.columns import Ints, as_ints, freeze

__all__ = ["RaggedWorkers", "offsets_of"]


@dataclass(frozen=True, slots=True, eq=False)
class RaggedWorkers:
    """Row r has entries ``offsets[r]`` to ``offsets[r + 1]`` of ``workers``, and of the subclass's columns.

    Attributes
    ----------
    offsets : (rows + 1,) int
        Start of each row's entries; an empty range means that the row states nothing.
    workers : int
        Workers of each entry.
    """

    offsets: Ints
    workers: Ints

    def counts(self) -> Ints:
        """Entries of each row."""
        return freeze(np.diff(self.offsets))

    def row_workers(self) -> Ints:
        """Sum of the workers of each row's entries; 0 where it has none."""
        up_to = np.concatenate(([0], np.cumsum(self.workers, dtype=np.int64)))
        return freeze(up_to[self.offsets[1:]] - up_to[self.offsets[:-1]])

    def take(self, rows: Ints) -> Self:
        """The entries of some rows, in their order."""
        parts = [np.arange(self.offsets[row], self.offsets[row + 1]) for row in rows.tolist()]
        entries = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        columns = (freeze(getattr(self, each.name)[entries]) for each in fields(self)[1:])
        return type(self)(offsets_of(map(len, parts)), *columns)

    @classmethod
    def concatenated(cls, parts: Sequence[Self]) -> Self:
        """The rows of all parts, one after the other."""
        columns = (freeze(np.concatenate([getattr(part, each.name) for part in parts])) for each in fields(cls)[1:])
        return cls(offsets_of(count for part in parts for count in part.counts().tolist()), *columns)


def offsets_of(counts: Iterable[int]) -> Ints:
    """Offsets of rows, from their numbers of entries."""
    return as_ints(np.concatenate(([0], np.cumsum(list(counts), dtype=np.int64))))
