"""Repetitions of a simulation with seeds that count on, and figures with confidence over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from nodewise.domain.schedule import NodePool
from nodewise.plugin import Budget, PolicyRecord
from nodewise.scheduling.simulation.core import Progress, simulated
from nodewise.scheduling.simulation.jobs import SimulatedJob
from nodewise.scheduling.simulation.repeating import Estimate, estimated
from nodewise.scheduling.simulation.results import SimulationResult
from nodewise.scheduling.simulation.settings import SimulationSettings

__all__ = ["SimulateQuestion", "figures_of", "simulated_repeatedly"]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SimulateQuestion:
    """What to simulate; ``repetitions`` have the seeds ``settings.seed``, ``settings.seed + 1`` and so on."""

    jobs: Sequence[SimulatedJob]
    pools: Sequence[NodePool]
    settings: SimulationSettings = field(default_factory=SimulationSettings)
    repetitions: int = 1


def simulated_repeatedly(
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
        settings = _seeded(question.settings, question.settings.seed + number, policy)

        def tell(found: Progress, done: int = number) -> None:
            if progress is not None:
                progress(done, found)

        results.append(simulated(question.jobs, question.pools, policy, settings, budget=budget, progress=tell))
    return tuple(results)


def _seeded(settings: SimulationSettings, seed: int, policy: PolicyRecord) -> SimulationSettings:
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
            found[name] = estimated(values)
    return found
