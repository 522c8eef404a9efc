"""The range of scales that the measured runs of a job cover. It limits recommendations and default ranges of scales."""

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
"""A default range holds every number of nodes up to this one, and powers of two beyond."""
ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Reach:
    """The largest scale on which a run of the job was measured; 0 = no run was measured, or its nodes are not known.

    ``by_phases`` states whether phases were timed: an estimator may then identify costs beyond the measured scale.
    """

    nodes: int = 0
    workers: int = 0
    by_phases: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether any run was measured."""
        return self.workers > 0

    def within(self, most: float, configurations: Configurations, extrapolation: Floats) -> NDArray[np.bool_] | None:
        """Return a mask of the rows of at most ``most`` times the measured nodes and workers; None = all rows.

        Where phases were timed, the mask includes rows that an estimator extrapolates to by at most the same factor.
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
        return near if most >= 1.0 else np.zeros_like(near)  # no row's ratio is below 1

    def ratios(self, configurations: Configurations, extrapolation: Floats) -> Floats:
        """Return each row's ratio to the measured nodes or workers, at least 1.

        Where phases were timed, the ratio is at most ``extrapolation``.
        """
        rows = np.ones(len(configurations))
        for count, column in ((self.nodes, configurations.nodes), (self.workers, configurations.workers)):
            if count:
                rows = np.maximum(rows, column / count)
        return np.minimum(rows, np.maximum(extrapolation, 1.0)) if self.by_phases else rows

    def limits(self, most: float) -> tuple[float, float]:
        """Return the most nodes and workers within ``most`` times the evidence; infinite without a limit."""
        nodes, workers = (most * (1.0 + ROUNDING) * count for count in (self.nodes, self.workers))
        return nodes or math.inf, workers or math.inf

    def counts(self, most_nodes: int, least_nodes: int = 1) -> tuple[int, ...]:
        """Return the default numbers of nodes of a question, up to the largest that may be recommended."""
        last = max(least_nodes, min(int(KNEE.most_extrapolation * self.nodes), most_nodes))
        powers: Iterable[int] = (1 << exponent for exponent in range(31))
        beyond = {count for count in powers if EVERY_COUNT < count < last and count >= least_nodes}
        return tuple(sorted({*range(least_nodes, min(EVERY_COUNT, last) + 1), *beyond, last}))


UNMEASURED: Final = Reach()
"""Reach of a job that was never measured; it limits nothing."""


def reach_of(profile: Profile) -> Reach:
    """Read the largest measured scale from the phase timings, observations and traces of a profile."""
    phases = profile.phase_timings.configurations
    runs = (phases, profile.observations.configurations)
    ranks = max((trace.world_size for trace in profile.traces), default=0)
    return Reach(
        nodes=max(largest(each.nodes) for each in runs),
        workers=max(ranks, *(largest(each.workers) for each in runs)),
        by_phases=len(phases) > 0,
    )
