"""Repetitions of a simulation with consecutive seeds, and their means with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from nodewise.domain.columns import as_floats
from nodewise.domain.schedule import NodePool
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.simulation.core import Progress, simulate
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.repeating import Estimate, estimate_mean
from nodewise.scheduling.simulation.results import JOB_NUMBERS, JobColumns, SimulationResult
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["Repetition", "SimulateQuestion", "figures_of", "simulate_repeatedly"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulateQuestion:
    """What to simulate; ``repetitions`` have the seeds ``settings.seed``, ``settings.seed + 1`` and so on.

    ``keep_jobs`` False = columns of jobs are deleted after the summary, so that repetitions need no memory.
    """

    jobs: Sequence[SimulatedJob]
    pools: Sequence[NodePool]
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    repetitions: int = 1
    keep_jobs: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repetition:
    """One simulation: its seed, its result, and the figures of its ``summary``."""

    seed: int
    result: SimulationResult
    summary: Mapping[str, float | int | None]


def simulate_repeatedly(
    question: SimulateQuestion,
    policy: LoadedPlugin[PolicyRecord],
    budget: Budget,
    progress: Callable[[int, Progress], None] | None = None,
) -> tuple[Repetition, ...]:
    """Simulate once per seed; when the time is over, fewer times, or with a last repetition that is not complete.

    Parameters
    ----------
    progress : callable
        Called with the number of completed repetitions and the progress of the current one.

    Raises
    ------
    NodewiseError
        As ``simulate``.
    """
    repetitions: list[Repetition] = []
    for number in range(question.repetitions):
        if repetitions and (budget.remaining_s() <= 0 or not repetitions[-1].result.complete):
            break
        settings = _with_seed(question.settings, question.settings.seed + number, policy.record)

        def tell(at: Progress, count: int = number) -> None:
            if progress is not None:
                progress(count, at)

        result = simulate(question.jobs, question.pools, policy, settings, budget=budget, progress=tell)
        summary = result.summary()
        stored_result = result if question.keep_jobs else replace(result, per_job=_NO_JOBS)
        repetitions.append(Repetition(seed=settings.seed, result=stored_result, summary=summary))
    return tuple(repetitions)


_NONE: Final[Any] = as_floats([])
_NO_JOBS: Final = JobColumns(job_id=(), **dict.fromkeys(JOB_NUMBERS, _NONE))


def _with_seed(settings: SimulationSettings, seed: int, policy: PolicyRecord) -> SimulationSettings:
    """The settings with another seed, which a policy with a parameter ``seed`` gets too, unless they state one."""
    parameter = next((each for each in policy.parameters if each.name == "seed"), None)
    if parameter is None or parameter.name in settings.parameters or not parameter.minimum <= seed <= parameter.maximum:
        return replace(settings, seed=seed)
    return replace(settings, seed=seed, parameters={**settings.parameters, parameter.name: float(seed)})


def figures_of(summaries: Sequence[Mapping[str, float | int | None]]) -> dict[str, Estimate]:
    """Means with their confidence intervals, by the names of the summaries, over the repetitions that have the figure.

    Repetitions differ by their seeds alone: an interval covers the effect of chance on these jobs, not other jobs.
    Figures that no repetition has are omitted.
    """
    figures: dict[str, Estimate] = {}
    for name in summaries[0] if summaries else ():
        values = [value for summary in summaries if (value := summary[name]) is not None]
        if values:
            figures[name] = estimate_mean(values)
    return figures
