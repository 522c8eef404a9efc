"""The Pareto frontier of time, devices and memory, updated as rows arrive.

A row is dominated where another needs no more of all three and less of one. Rows that need the same are one point; the
canonical order of configurations decides which of them stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints
from nodewise.domain.configurations import Configurations
from nodewise.planning.order import canonical

__all__ = ["Frontier", "Points"]


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Time (anything that grows with it), devices and memory of some rows."""

    time: Floats
    devices: Ints
    memory: Floats

    def take(self, rows: Ints) -> Points:
        """Some rows."""
        return Points(self.time[rows], self.devices[rows], self.memory[rows])


@dataclass(frozen=True, slots=True, eq=False)
class _Staircase:
    """The least time as a function of the memory allowed: ``time[i]`` from ``memory[i]`` on."""

    memory: Floats
    time: Floats

    @staticmethod
    def of(memory: Floats, time: Floats) -> _Staircase:
        """The staircase of some rows; a row is a step if it is faster than every row that needs no more memory."""
        order = np.lexsort((time, memory))
        least = np.minimum.accumulate(time[order])
        steps = np.concatenate(([True], np.diff(least) < 0.0))[: len(order)]
        return _Staircase(memory[order][steps], least[steps])

    def least(self, memory: Floats, *, below: bool = False) -> Floats:
        """Least time within so much memory (``below``: within less); infinite where no row needs so little."""
        place = np.searchsorted(self.memory, memory, side="left" if below else "right") - 1
        return np.where(place >= 0, self.time[place], np.inf) if len(self.memory) else np.full(len(memory), np.inf)


class _Staircases:
    """Tests of dominance by a set of points: staircases of each number of devices, and of as many or fewer."""

    def __init__(self, points: Points) -> None:
        self._counts = np.unique(points.devices)
        self._own: dict[int, _Staircase] = {}
        self._up_to: dict[int, _Staircase] = {}
        fewer = _Staircase.of(np.zeros(0), np.zeros(0))
        for count in self._counts.tolist():
            alike = points.devices == count
            own = _Staircase.of(points.memory[alike], points.time[alike])
            fewer = _Staircase.of(np.append(fewer.memory, own.memory), np.append(fewer.time, own.time))
            self._own[count], self._up_to[count] = own, fewer

    def dominates(self, points: Points) -> NDArray[np.bool_]:
        """Mask of the points that a point of the set dominates; no point dominates itself."""
        mask = np.zeros(len(points.time), dtype=bool)
        if not len(self._counts):
            return mask
        for count in np.unique(points.devices).tolist():
            rows = np.flatnonzero(points.devices == count)
            time, memory = points.time[rows], points.memory[rows]
            worse = np.zeros(len(rows), dtype=bool)
            place = int(np.searchsorted(self._counts, count))
            if place:
                worse |= self._up_to[int(self._counts[place - 1])].least(memory) <= time
            own = self._own.get(count)
            if own is not None:
                worse |= (own.least(memory, below=True) <= time) | (own.least(memory) < time)
            mask[rows] = worse
        return mask


class Frontier:
    """The rows that no other row dominates so far."""

    def __init__(self) -> None:
        self.rows = Configurations.of(0)
        self.points = Points(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))
        self._staircases = _Staircases(self.points)

    def __len__(self) -> int:
        return len(self.rows)

    def dominates(self, points: Points) -> NDArray[np.bool_]:
        """Mask of the points that a row of the frontier dominates.

        If it dominates a lower bound, it dominates every row above the bound.
        """
        return self._staircases.dominates(points)

    def offer(self, rows: Configurations, points: Points, permitted: NDArray[np.bool_]) -> None:
        """Add the permitted rows that no other row dominates."""
        best = np.flatnonzero(permitted)
        best = best[~self.dominates(points.take(best))]
        if not len(best):
            return
        best = best[_undominated_rows(points.take(best))]
        union = Configurations.concatenated([self.rows, rows.take(best)]) if len(self) else rows.take(best)
        new = points.take(best)
        old = self.points
        both = Points(
            np.concatenate((old.time, new.time)),
            np.concatenate((old.devices, new.devices)),
            np.concatenate((old.memory, new.memory)),
        )
        left = _undominated_rows(both)
        union, both = union.take(left), both.take(left)
        order = np.lexsort((*reversed(canonical(union)), both.memory, both.time, both.devices))
        both = both.take(order)
        same = (np.diff(both.time) == 0.0) & (np.diff(both.devices) == 0) & (np.diff(both.memory) == 0.0)
        first = np.concatenate(([True], ~same))
        self.rows, self.points = union.take(order[first]), both.take(np.flatnonzero(first))
        self._staircases = _Staircases(self.points)


def _undominated_rows(points: Points) -> Ints:
    """Rows that no other row of the set dominates; equal rows are all included."""
    return np.flatnonzero(~_Staircases(points).dominates(points))
