"""The Pareto frontier of time, devices and memory, kept while rows arrive.

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
    """Least time within so much memory: ``time[i]`` from ``memory[i]`` on."""

    memory: Floats
    time: Floats

    @staticmethod
    def of(memory: Floats, time: Floats) -> _Staircase:
        """The steps of some rows: those before which nothing needs as little time within their memory."""
        order = np.lexsort((time, memory))
        least = np.minimum.accumulate(time[order])
        steps = np.concatenate(([True], np.diff(least) < 0.0))[: len(order)]
        return _Staircase(memory[order][steps], least[steps])

    def least(self, memory: Floats, *, below: bool = False) -> Floats:
        """Least time of what needs at most so much memory, or less than it; infinite where nothing does."""
        place = np.searchsorted(self.memory, memory, side="left" if below else "right") - 1
        return np.where(place >= 0, self.time[place], np.inf) if len(self.memory) else np.full(len(memory), np.inf)


class _Staircases:
    """What dominates by the points of a set: staircases of those on each number of devices, and on as many or fewer."""

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
        """Points than which one of the set is better; a point of the set is not better than itself."""
        found = np.zeros(len(points.time), dtype=bool)
        if not len(self._counts):
            return found
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
            found[rows] = worse
        return found


class Frontier:
    """The rows that no other dominates, so far."""

    def __init__(self) -> None:
        self.rows = Configurations.of(0)
        self.points = Points(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0))
        self._staircases = _Staircases(self.points)

    def __len__(self) -> int:
        return len(self.rows)

    def dominates(self, points: Points) -> NDArray[np.bool_]:
        """Points than which a row of the frontier is better; of a lower bound: so is it than all that is above it."""
        return self._staircases.dominates(points)

    def offer(self, rows: Configurations, points: Points, allowed: NDArray[np.bool_]) -> None:
        """Take what no row dominates, of the rows that are allowed."""
        kept = np.flatnonzero(allowed)
        kept = kept[~self.dominates(points.take(kept))]
        if not len(kept):
            return
        kept = kept[_undominated_rows(points.take(kept))]
        joined = Configurations.concatenated([self.rows, rows.take(kept)]) if len(self) else rows.take(kept)
        new = points.take(kept)
        old = self.points
        together = Points(
            np.concatenate((old.time, new.time)),
            np.concatenate((old.devices, new.devices)),
            np.concatenate((old.memory, new.memory)),
        )
        left = _undominated_rows(together)
        joined, together = joined.take(left), together.take(left)
        order = np.lexsort((*reversed(canonical(joined)), together.memory, together.time, together.devices))
        together = together.take(order)
        same = (np.diff(together.time) == 0.0) & (np.diff(together.devices) == 0) & (np.diff(together.memory) == 0.0)
        first = np.concatenate(([True], ~same))
        self.rows, self.points = joined.take(order[first]), together.take(np.flatnonzero(first))
        self._staircases = _Staircases(self.points)


def _undominated_rows(points: Points) -> Ints:
    """Rows that no other of the same set dominates; all of those that are equal."""
    return np.flatnonzero(~_Staircases(points).dominates(points))
