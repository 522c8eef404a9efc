"""Choice among offers: time, cost and risk of each, their frontier, and the cheapest that is surely done in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats
from nodewise_transient.job import Job
from nodewise_transient.simulation import simulate

__all__ = ["Evaluated", "Offer", "cheapest", "evaluate", "frontier"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offer:
    """A cluster that can be had: device, how many, tier and region are in its name and in the job's groups."""

    name: str
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluated:
    """Offers' columns, in their order.

    Attributes
    ----------
    mean_s, mean_s_error, p50_s, p90_s, p99_s : time to finish; quantiles are infinite where so many runs fail.
    mean_dollars, p90_dollars, p99_dollars : cost of finishing.
    p_failure, p_deadline : share of runs that never finish, and that are done by the deadline (1 - p_failure without).
    losses : expected workers lost.
    efficient : whether no other offer is at least as good in mean cost, 90th percentile of time and failures, and
        better in one.
    runs : behind each row: a share p is known to sqrt(p (1 - p) / runs).
    """

    names: tuple[str, ...]
    mean_s: Floats
    mean_s_error: Floats
    p50_s: Floats
    p90_s: Floats
    p99_s: Floats
    mean_dollars: Floats
    p90_dollars: Floats
    p99_dollars: Floats
    p_failure: Floats
    p_deadline: Floats
    losses: Floats
    efficient: npt.NDArray[np.bool_]
    runs: int


def evaluate(offers: Sequence[Offer], *, deadline_s: float = math.inf, runs: int = 2000, seed: int = 0) -> Evaluated:
    """Simulate every offer at the same luck; what one offer answers does not depend on the others."""
    rows = np.empty((len(offers), 11))
    for row, offer in zip(rows, offers):
        outcome = simulate(offer.job, runs=runs, seed=seed)
        time, cost = outcome.time_s, outcome.dollars
        row[:8] = time.mean, time.standard_error, time.p50, time.p90, time.p99, cost.mean, cost.p90, cost.p99
        row[8:] = outcome.p_failure, outcome.p_deadline(deadline_s), outcome.expected_losses
    columns = [np.ascontiguousarray(column) for column in rows.T]
    return Evaluated(
        names=tuple(offer.name for offer in offers),
        mean_s=columns[0],
        mean_s_error=columns[1],
        p50_s=columns[2],
        p90_s=columns[3],
        p99_s=columns[4],
        mean_dollars=columns[5],
        p90_dollars=columns[6],
        p99_dollars=columns[7],
        p_failure=columns[8],
        p_deadline=columns[9],
        losses=columns[10],
        efficient=frontier(rows[:, [5, 3, 8]]),
        runs=runs,
    )


def frontier(costs: Floats) -> npt.NDArray[np.bool_]:
    """Rows that no other row dominates: nowhere more, somewhere less. Equal rows all stay."""
    kept = np.ones(len(costs), dtype=np.bool_)
    for at, row in enumerate(costs):
        no_more = np.all(costs <= row, axis=1)
        kept[at] = not np.any(no_more & np.any(costs < row, axis=1))
    return kept


def cheapest(evaluated: Evaluated, *, confidence: float) -> int | None:
    """The offer with the least mean cost among those done by the deadline with a confidence; absent if none is.

    The confidence holds with the runs' own uncertainty: a share has to exceed it by 1.64 standard errors, so that of
    offers just below the confidence one in twenty passes. What is in time in every run passes up to 1 - 3 / runs (the
    rule of three).
    """
    share = evaluated.p_deadline
    error = 1.64 * np.sqrt(share * (1.0 - share) / evaluated.runs)
    sure = np.where(share >= 1.0, 1.0 - 3.0 / evaluated.runs, share - error)
    passed = sure >= confidence
    if not passed.any():
        return None
    return int(np.argmin(np.where(passed, evaluated.mean_dollars, math.inf)))
