"""Recorded fleets: nodes that came and went, and how many could be had. Two kinds of record that must not be mixed up.

A fleet's record says what happened to nodes that ran (lifetimes, with those alive at the end censored, and how many
there were). A record of availability says whether a node could be had; it holds no lifetimes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats, Ints
from nodewise_transient.fitting import LifetimeSample, single
from nodewise_transient.provenance import Provenance

__all__ = ["Availability", "Fleet", "fleet_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """A recorded fleet: nodes alive from each change on, and every node's life.

    Attributes
    ----------
    changes_s, nodes : from when on there were so many.
    lives_s, ended : seconds that each node was there, and whether it was taken rather than still there at the end.
    """

    changes_s: Floats
    nodes: Ints
    lives_s: Floats
    ended: npt.NDArray[np.bool_]

    def lifetimes(self, provenance: Provenance) -> LifetimeSample:
        """Its lifetimes, for `fitting`."""
        return single(self.lives_s, self.ended, provenance=provenance)


def fleet_of(times_s: npt.ArrayLike, added: npt.ArrayLike, nodes: list[str]) -> Fleet:
    """A fleet from its events in order of time: a node was added, or removed."""
    times, adds = np.asarray(times_s, dtype=np.float64), np.asarray(added, dtype=np.bool_)
    since: dict[str, float] = {}
    lives: list[tuple[float, bool]] = []
    for time_s, is_add, node in zip(times.tolist(), adds.tolist(), nodes):
        if is_add:
            since[node] = time_s
        elif node in since:
            lives.append((time_s - since.pop(node), True))
    lives += [(float(times[-1]) - start, False) for start in since.values()]
    changes, last = np.unique(times[::-1], return_index=True)
    running = np.cumsum(np.where(adds, 1, -1))
    return Fleet(
        changes_s=changes,
        nodes=running[len(times) - 1 - last],
        lives_s=np.array([life for life, _ in lives]),
        ended=np.array([ended for _, ended in lives], dtype=np.bool_),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Availability:
    """How many nodes could be had (or kept) in a place, from each change on, up to the end of the record."""

    since_s: Floats
    instances: Ints
    length_s: float

    def ticks(self, tick_s: float, *, needed: int = 1) -> Floats:
        """Whether so many could be had at the start of each tick: 1 or 0."""
        starts = np.arange(0.0, self.length_s, tick_s)
        return (self.instances[np.searchsorted(self.since_s, starts, side="right") - 1] >= needed).astype(np.float64)

    def speeds(self, table: npt.ArrayLike, *, on_demand: int = 0) -> tuple[Floats, Floats]:
        """Changes and speeds of an elastic job that takes what there is beside some nodes on demand.

        ``table`` has the speeds of 0, 1, ... nodes; more than it knows are not taken.
        """
        speeds = np.asarray(table, dtype=np.float64)
        return self.since_s, speeds[np.minimum(self.instances + on_demand, len(speeds) - 1)]
