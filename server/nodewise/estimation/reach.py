"""How far the measured runs of a job reach: what may be recommended by them, and which counts are asked about."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, largest
from nodewise.domain.configurations import Configurations
from nodewise.domain.objective import KNEE
from nodewise.domain.profile import Profile

__all__ = ["UNMEASURED", "Reach", "reach_of"]

EVERY_COUNT: Final = 16
"""Numbers of nodes up to which a default range holds each; beyond, powers of two."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest scale that a run of the job was measured on; 0 = no run was measured, or its nodes are not known.

    ``by_phases``: phases were timed, by which an estimator may identify more than their own scale.
    """

    nodes: int = 0
    workers: int = 0
    by_phases: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether there is a run at all."""
        return self.workers > 0

    def within(self, most: float, configurations: Configurations, extrapolation: Floats) -> NDArray[np.bool_] | None:
        """Rows of at most so many times the measured nodes and workers; None = all of them.

        Where phases were timed, rows also count that an estimator extrapolates to no further than that.
        """
        if not most or not self.is_measured:
            return None
        most_nodes, most_workers = self.limits(most)
        near: NDArray[np.bool_] = (configurations.nodes <= most_nodes) & (configurations.workers <= most_workers)
        most *= 1.0 + ROUNDING
        if self.by_phases and most >= 1.0:
            near |= extrapolation <= most
        if np.logical_and.reduce(near):
            return None
        return near if most >= 1.0 else np.zeros_like(near)  # no row counts as less than the evidence

    def ratios(self, configurations: Configurations, extrapolation: Floats) -> Floats:
        """How many times the measured nodes or workers rows have, at least 1; by phases at most ``extrapolation``."""
        rows = np.ones(len(configurations))
        for count, column in ((self.nodes, configurations.nodes), (self.workers, configurations.workers)):
            if count:
                rows = np.maximum(rows, column / count)
        return np.minimum(rows, np.maximum(extrapolation, 1.0)) if self.by_phases else rows

    def limits(self, most: float) -> tuple[float, float]:
        """Most nodes and workers within so many times the evidence; infinite where nothing limits them."""
        nodes, workers = (most * (1.0 + ROUNDING) * count for count in (self.nodes, self.workers))
        return nodes or math.inf, workers or math.inf

    def counts(self, most_nodes: int, least_nodes: int = 1) -> tuple[int, ...]:
        """Numbers of nodes to ask about where nothing is said: up to as many times the evidence as are recommended."""
        last = max(least_nodes, min(int(KNEE.most_extrapolation * self.nodes), most_nodes))
        powers: Iterable[int] = (1 << exponent for exponent in range(31))
        beyond = {count for count in powers if EVERY_COUNT < count < last and count >= least_nodes}
        return tuple(sorted({*range(least_nodes, min(EVERY_COUNT, last) + 1), *beyond, last}))


UNMEASURED: Final = Reach()
"""Of a job that never ran: it limits nothing."""


def reach_of(profile: Profile) -> Reach:
    """Read the largest measured scale off a profile's phase timings, observations and traces."""
    phases = profile.phase_timings.configurations
    runs = (phases, profile.observations.configurations)
    ranks = max((trace.world_size for trace in profile.traces), default=0)
    return Reach(
        nodes=max(largest(each.nodes) for each in runs),
        workers=max(ranks, *(largest(each.workers) for each in runs)),
        by_phases=len(phases) > 0,
    )
