"""Repetitions of a simulation with seeds that count on, and figures with confidence over them."""

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

    ``keep_jobs`` False = columns of jobs are dropped once they are summed up, so that repetitions cost no memory.
    """

    jobs: Sequence[SimulatedJob]
    pools: Sequence[NodePool]
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    repetitions: int = 1
    keep_jobs: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repetition:
    """One simulation: its seed, what came of it, and the figures of its ``summary``."""

    seed: int
    result: SimulationResult
    summary: Mapping[str, float | int | None]


def simulate_repeatedly(
    question: SimulateQuestion,
    policy: LoadedPlugin[PolicyRecord],
    budget: Budget,
    progress: Callable[[int, Progress], None] | None = None,
) -> tuple[Repetition, ...]:
    """Simulate once per seed; fewer than asked for, or a last one that is not complete, where time was over.

    Parameters
    ----------
    progress : callable
        Called with the repetitions that are done and with how far the running one is.

    Raises
    ------
    NodewiseError
        As ``simulate``.
    """
    found: list[Repetition] = []
    for number in range(question.repetitions):
        if found and (budget.remaining_s() <= 0 or not found[-1].result.complete):
            break
        settings = _with_seed(question.settings, question.settings.seed + number, policy.record)

        def tell(at: Progress, done: int = number) -> None:
            if progress is not None:
                progress(done, at)

        result = simulate(question.jobs, question.pools, policy, settings, budget=budget, progress=tell)
        summary = result.summary()
        kept = result if question.keep_jobs else replace(result, per_job=_NO_JOBS)
        found.append(Repetition(seed=settings.seed, result=kept, summary=summary))
    return tuple(found)


_NONE: Final[Any] = as_floats([])
_NO_JOBS: Final = JobColumns(job_id=(), **dict.fromkeys(JOB_NUMBERS, _NONE))


def _with_seed(settings: SimulationSettings, seed: int, policy: PolicyRecord) -> SimulationSettings:
    """The settings with another seed, which is also that of a policy that draws and was given none."""
    drawn = next((each for each in policy.parameters if each.name == "seed"), None)
    if drawn is None or drawn.name in settings.parameters or not drawn.minimum <= seed <= drawn.maximum:
        return replace(settings, seed=seed)
    return replace(settings, seed=seed, parameters={**settings.parameters, drawn.name: float(seed)})


def figures_of(summaries: Sequence[Mapping[str, float | int | None]]) -> dict[str, Estimate]:
    """Means with their confidence intervals, by the names of the summaries; over the repetitions that have the figure.

    Repetitions differ by their seeds alone: an interval covers what chance does to these jobs, not what other jobs
    would do. What no repetition has is left out.
    """
    found: dict[str, Estimate] = {}
    for name in summaries[0] if summaries else ():
        values = [value for summary in summaries if (value := summary[name]) is not None]
        if values:
            found[name] = estimate_mean(values)
    return found
