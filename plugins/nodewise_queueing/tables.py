"""Curves over workers as tables: costly work is done once, and an answer is one look-up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints, Notice, Predictions, RowStatus, constant_ints, freeze
from nodewise_queueing.unsaid import Unsaid, unsaid_notices

__all__ = ["BASIC", "SMALLEST_TABLE", "Columns", "Curve", "combined_spread", "tabulate"]

_ANSWERED: Final = int(RowStatus.ANSWERED)

SMALLEST_TABLE: Final = 32
"""Workers that the first table of a curve covers: so few take milliseconds at most."""

BASIC: Final = ("step_s", "log_spread", "extrapolation", "staleness_mean", "staleness_p95")
"""First rows of a table's values; then come parts of the step, utilisations, and extra columns."""


LARGEST_LOG_SPREAD: Final = 5.0
"""A factor of 150 either way: a larger deviation would add no information."""

KEPT_WORKERS: Final = 8192
"""Workers up to which a table is kept; a longer one is made for each question about so many."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """Answers to some rows; or, as the table of a curve, to 0..n workers (index 0 is not used and holds 0).

    Attributes
    ----------
    values : (columns, rows) float
        BASIC, then the parts, the utilisations and the extra columns.
    bottleneck : (rows,) int
        Index into ``parts``.
    parts, stations, extra : tuple of str
        Names of the parts of a step, of stations with a utilisation, and of extra columns.
    notices : tuple of Notice
        Notices of every row.
    once_s : (rows,) float or None
        Seconds spent once besides the steps.
    unsaid : tuple of Unsaid
        Facts that are not stated; ``log_spread`` includes their uncertainty.
    """

    values: Floats
    bottleneck: Ints
    parts: tuple[str, ...]
    stations: tuple[str, ...]
    extra: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    once_s: Floats | None = None
    unsaid: tuple[Unsaid, ...] = ()

    @property
    def basic(self) -> dict[str, Floats]:
        """Columns of BASIC by name."""
        return self._slice_columns(0, BASIC)

    @property
    def breakdown_s(self) -> dict[str, Floats]:
        """Parts of the step by name."""
        return self._slice_columns(len(BASIC), self.parts)

    @property
    def utilisation(self) -> dict[str, Floats]:
        """Share of time that each station is busy, by name."""
        return self._slice_columns(len(BASIC) + len(self.parts), self.stations)

    def predictions(self) -> Predictions:
        """The answers as predictions of a model."""
        columns = iter(self.values)
        return Predictions(
            status=constant_ints(len(self.bottleneck), _ANSWERED),
            **dict(zip(BASIC, columns)),
            breakdown_s=dict(zip(self.parts, columns)),
            utilisation=dict(zip(self.stations, columns)),
            bottlenecks=self.parts,
            bottleneck_index=self.bottleneck,
            once_s=self.once_s,
            extra=dict(zip(self.extra, columns)),
            notices=self.notices + unsaid_notices(self.unsaid, self.values[1]) if self.unsaid else self.notices,
        )

    def take(self, rows: Ints) -> Columns:
        """Some rows, in the given order."""
        return Columns(
            values=freeze(self.values.take(rows, axis=1)),
            bottleneck=freeze(self.bottleneck.take(rows)),
            parts=self.parts,
            stations=self.stations,
            extra=self.extra,
            notices=self.notices,
            once_s=None if self.once_s is None else freeze(self.once_s[rows]),
            unsaid=tuple(each.take(rows) for each in self.unsaid),
        )

    @property
    def population(self) -> int:
        """Largest number of workers in a table."""
        return len(self.bottleneck) - 1

    @property
    def step_s(self) -> Floats:
        """Seconds of a step."""
        return self.basic["step_s"]

    def with_notices(self, notices: tuple[Notice, ...]) -> Columns:
        """The same answers with more notices."""
        return replace(self, notices=(*self.notices, *notices))

    def with_unsaid(self, unsaid: Unsaid) -> Columns:
        """The same table with one more fact that is not stated."""
        values = self.values.copy()
        values[1, 1:] = combined_spread(0.0, values[1, 1:], unsaid.deviation)
        return replace(self, values=freeze(values), unsaid=(*self.unsaid, unsaid.prepend_row()))

    def lengthen(self, least_s: Floats) -> Columns:
        """The same with every step at least so long: its parts are scaled, rates and utilisations follow from it."""
        before_s = self.step_s
        step_s = np.maximum(before_s, least_s)
        factor = np.divide(step_s, before_s, out=np.ones_like(step_s), where=least_s > 0.0)
        if not np.any(factor > 1.0):
            return self
        values = self.values.copy()
        first, stations = len(BASIC), len(BASIC) + len(self.parts)
        values[0] = step_s
        values[first:stations] *= factor
        values[stations : stations + len(self.stations)] /= factor
        for row, name in enumerate(self.extra, start=stations + len(self.stations)):
            if name.endswith("_per_s"):
                values[row] /= factor
        return replace(self, values=freeze(values))

    def _slice_columns(self, start: int, names: tuple[str, ...]) -> dict[str, Floats]:
        return dict(zip(names, self.values[start : start + len(names)], strict=True))

    @staticmethod
    def row(
        basic: Mapping[str, float],
        *,
        parts: Mapping[str, float],
        utilisation: Mapping[str, float],
        notices: tuple[Notice, ...],
        unsaid: tuple[Unsaid, ...] = (),
    ) -> Columns:
        """One row, whose bottleneck is its longest part."""

        def alone(values: Mapping[str, float]) -> dict[str, Floats]:
            return {name: np.array([value]) for name, value in values.items()}

        longest = max(parts, key=parts.__getitem__)
        return Columns.of(
            alone(basic),
            parts=alone(parts),
            utilisation=alone(utilisation),
            extra={},
            bottleneck=[list(parts).index(longest)],
            notices=notices,
            unsaid=unsaid,
        )

    @staticmethod
    def of(
        basic: Mapping[str, Floats],
        *,
        parts: Mapping[str, Floats],
        utilisation: Mapping[str, Floats],
        extra: Mapping[str, Floats],
        bottleneck: Sequence[int] | Ints,
        notices: tuple[Notice, ...],
        once_s: Floats | None = None,
        unsaid: tuple[Unsaid, ...] = (),
    ) -> Columns:
        """From named columns of one length; ``basic`` has every name of BASIC."""
        columns = [*(basic[name] for name in BASIC), *parts.values(), *utilisation.values(), *extra.values()]
        return Columns(
            values=freeze(np.array(columns, dtype=np.float64)),
            bottleneck=freeze(np.asarray(bottleneck, dtype=np.int64)),
            parts=tuple(parts),
            stations=tuple(utilisation),
            extra=tuple(extra),
            notices=notices,
            once_s=once_s,
            unsaid=unsaid,
        )


def combined_spread(variance: float, *parts: Floats | float) -> Floats:
    """Standard deviation from independent causes; at most LARGEST_LOG_SPREAD."""
    total = np.sqrt(sum((np.square(part) for part in parts), start=variance))
    return np.asarray(np.minimum(total, LARGEST_LOG_SPREAD))


def tabulate(
    *,
    step_s: Floats,
    log_spread: Floats,
    extrapolation: Floats,
    staleness: tuple[Floats, Floats],
    parts: Mapping[str, Floats],
    utilisation: Mapping[str, Floats],
    extra: Mapping[str, Floats],
    bottleneck: Sequence[int] | Ints,
    notices: tuple[Notice, ...],
    unsaid: tuple[Unsaid, ...] = (),
) -> Columns:
    """The table of a curve, from columns whose index 0 is one worker.

    ``staleness``: mean and 95th percentile. ``log_spread`` does not include the uncertainty of ``unsaid`` yet.
    """
    log_spread = combined_spread(0.0, log_spread, *(each.deviation for each in unsaid)) if unsaid else log_spread
    basic = dict(zip(BASIC, (step_s, log_spread, extrapolation, *staleness), strict=True))

    def after_first(columns: Mapping[str, Floats]) -> dict[str, Floats]:
        return {name: np.concatenate(([0.0], column)) for name, column in columns.items()}

    return Columns.of(
        after_first(basic),
        parts=after_first(parts),
        utilisation=after_first(utilisation),
        extra=after_first(extra),
        bottleneck=np.concatenate(([0], np.asarray(bottleneck, dtype=np.int64))),
        notices=notices,
        unsaid=tuple(each.prepend_row() for each in unsaid),
    )


class Curve:
    """A table that grows by doubling. Safe to share between threads: a grown table replaces the old one whole.

    Parameters
    ----------
    build : callable
        Makes the table for 1..n workers; pure, and tables of different n agree where they overlap.
    only : int or None
        The one number of workers that the evidence answers for; None = any.
    """

    __slots__ = ("_build", "_table", "only")

    def __init__(self, build: Callable[[int], Columns], only: int | None = None) -> None:
        self._build = build
        self._table: Columns | None = None
        self.only = only

    def reaching(self, workers: int) -> Columns:
        """A table that holds at least so many workers."""
        table = self._table
        if table is None or table.population < workers:
            table = self._build(max(SMALLEST_TABLE, 1 << (workers - 1).bit_length()))
            if table.population <= KEPT_WORKERS:
                self._table = table
        return table
