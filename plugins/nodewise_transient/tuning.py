"""The best interval between saves for any job, by simulating it at the same luck with every interval."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

import scipy

from nodewise_transient.job import Job
from nodewise_transient.simulation import simulate

__all__ = ["best_interval_steps"]

SHORTEST: Final = 1e-6
"""Of the work: segments are no shorter, also where saves cost nothing."""


def best_interval_steps(
    job: Job,
    *,
    objective: Literal["time", "cost"],
    runs: int = 2000,
    seed: int = 0,
    look: Callable[[], None] | None = None,
) -> tuple[float, float]:
    """Steps between saves that minimise the mean time or cost, and that mean.

    Runs that fail count as never done. Intervals that part the work into whole numbers of equal segments are compared,
    from one segment to saves that take half of the time, at most one a step. Losses at a constant rate have a closed
    form (`best_interval_s`), attempts on new machines an exact one (`intervals.best_segments`). ``look`` is called now
    and then; what it raises ends the search.
    """
    most = max(1.0, min(job.steps, job.ideal_s / max(job.checkpoints.stall_s, SHORTEST * job.ideal_s)))

    def mean(segments: int) -> float:
        saves = replace(job.checkpoints, interval_steps=job.steps / segments)
        outcome = simulate(replace(job, checkpoints=saves), runs=runs, seed=seed, look=look)
        found = outcome.time_s if objective == "time" else outcome.dollars
        done = 1.0 - outcome.p_failure
        return found.mean / done if done > 0.0 else math.inf

    mean_by_interval: dict[int, float] = {}

    def of_log(log_segments: float) -> float:
        segments = max(1, round(math.exp(log_segments)))
        if segments not in mean_by_interval:
            mean_by_interval[segments] = mean(segments)
        return mean_by_interval[segments]

    of_log(0.0)
    scipy.optimize.minimize_scalar(of_log, bounds=(0.0, math.log(most)), method="bounded", options={"xatol": 0.02})
    best = min(mean_by_interval, key=lambda segments: mean_by_interval[segments])
    return job.steps / best, mean_by_interval[best]
