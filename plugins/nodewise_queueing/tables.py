"""Curves over workers as tables: whatever is costly happens once, and an answer is one look-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, Notice, freeze

__all__ = ["SMALLEST_TABLE", "Curve", "Table", "tabulated"]

SMALLEST_TABLE: Final = 32
"""Workers that the first table of a curve covers: so few take milliseconds at most."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Predictions of one curve for 0..n workers (0 is never asked and holds 0).

    Attributes
    ----------
    values : (columns, n + 1) float
        step_s, log_spread, extrapolation, staleness_mean, then the parts, then the utilisations.
    bottleneck : (n + 1,) int
        Index into ``parts``.
    parts, stations : tuple of str
        Names of the parts of a step, and of what has a utilisation.
    notices : tuple of Notice
        What holds of every row of the curve.
    """

    values: Floats
    bottleneck: Ints
    parts: tuple[str, ...]
    stations: tuple[str, ...]
    notices: tuple[Notice, ...] = field(default=())

    @property
    def population(self) -> int:
        """Largest number of workers in the table."""
        return len(self.bottleneck) - 1

    def noticed(self, notices: tuple[Notice, ...]) -> Table:
        """The same table with more to know."""
        return replace(self, notices=(*self.notices, *notices))


def tabulated(
    *,
    step_s: Floats,
    log_spread: Floats,
    extrapolation: Floats,
    staleness: Floats,
    parts: Mapping[str, Floats],
    utilisation: Mapping[str, Floats],
    bottleneck: Sequence[int] | Ints,
    notices: tuple[Notice, ...],
) -> Table:
    """A table from columns whose index 0 is one worker."""
    columns = [step_s, log_spread, extrapolation, staleness, *parts.values(), *utilisation.values()]
    values = np.zeros((len(columns), len(step_s) + 1))
    for row, column in zip(values, columns, strict=True):
        row[1:] = column
    return Table(
        values=freeze(values),
        bottleneck=freeze(np.concatenate(([0], np.asarray(bottleneck, dtype=np.int64)))),
        parts=tuple(parts),
        stations=tuple(utilisation),
        notices=notices,
    )


class Curve:
    """A table that grows by doubling. Safe to share between threads: a grown table replaces the old one whole.

    Parameters
    ----------
    build : callable
        Makes the table for 1..n workers; pure, and tables of different n agree where they overlap.
    """

    __slots__ = ("_build", "_table")

    def __init__(self, build: Callable[[int], Table]) -> None:
        self._build = build
        self._table: Table | None = None

    def reaching(self, workers: int) -> Table:
        """A table that holds at least so many workers."""
        table = self._table
        if table is None or table.population < workers:
            table = self._build(max(SMALLEST_TABLE, 1 << (workers - 1).bit_length()))
            self._table = table
        return table
