"""Repetitions of a simulation with seeds that count on, and figures with confidence over them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from scipy import special

from nodewise.domain.schedule import NodePool
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.simulation.core import Progress, simulated
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["CONFIDENCE", "Figure", "SimulateQuestion", "figure_of", "figures_of", "repeated"]

CONFIDENCE: Final = 0.95
"""Coverage of the intervals of figures."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulateQuestion:
    """What to simulate; ``repetitions`` have the seeds ``settings.seed``, ``settings.seed + 1`` and so on."""

    jobs: Sequence[SimulatedJob]
    pools: Sequence[NodePool]
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    repetitions: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Mean over the repetitions that have the figure, and its confidence interval (None = fewer than two have it)."""

    mean: float
    lower: float | None
    upper: float | None


def repeated(
    question: SimulateQuestion,
    policy: PolicyRecord,
    budget: Budget,
    progress: Callable[[int, Progress], None] | None = None,
) -> tuple[SimulationResult, ...]:
    """Simulate once per seed; fewer results than repetitions, or a last one that is not complete, where time was over.

    Parameters
    ----------
    progress : callable
        Called with the repetitions that are done and with how far the running one is.

    Raises
    ------
    NodewiseError
        As ``simulated``.
    """
    results: list[SimulationResult] = []
    for number in range(question.repetitions):
        if results and (budget.remaining_s() <= 0 or not results[-1].complete):
            break
        settings = replace(question.settings, seed=question.settings.seed + number)

        def tell(found: Progress, done: int = number) -> None:
            if progress is not None:
                progress(done, found)

        results.append(simulated(question.jobs, question.pools, policy, settings, budget=budget, progress=tell))
    return tuple(results)


def figure_of(values: Sequence[float]) -> Figure | None:
    """Mean and interval by Student's t; None without values.

    The interval is that of a mean of independent normal values. Repetitions differ by their seeds alone, so that it
    covers what chance does to these jobs, not what other jobs would do.
    """
    count = len(values)
    if not count:
        return None
    mean = math.fsum(values) / count
    if count == 1:
        return Figure(mean=mean, lower=None, upper=None)
    half = float(special.stdtrit(count - 1, (1 + CONFIDENCE) / 2)) * float(np.std(values, ddof=1)) / math.sqrt(count)
    return Figure(mean=mean, lower=mean - half, upper=mean + half)


def figures_of(summaries: Sequence[Mapping[str, float | int | None]]) -> dict[str, Figure]:
    """Figures over repetitions, by the names of their summaries; what no repetition has is left out."""
    found: dict[str, Figure] = {}
    for name in summaries[0] if summaries else ():
        figure = figure_of([value for summary in summaries if (value := summary[name]) is not None])
        if figure is not None:
            found[name] = figure
    return found
