"""Monte Carlo simulation of revocations: time and cost of a job, as distributions.

Every run draws lifetimes from the groups' laws and steps from loss to loss; between them work goes on at the speed of
the workers left. The same job, runs and seed give the same bytes. The first random numbers of every worker are drawn
ahead, run by run: variants of a job that are compared at one seed see the same numbers, so their difference is known
far better than either.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import Floats
from nodewise_transient._events import COLUMNS, LIVES, simulate_runs
from nodewise_transient._state import Cluster, Rules, Run
from nodewise_transient.job import Job
from nodewise_transient.prices import PriceSeries

__all__ = ["Breakdown", "Outcome", "Spread", "simulate"]

_FIRST_CHUNK: Final = 64
_CHUNK: Final = 4096
_MOST_CHANCES: Final = 1 << 22
"""Random numbers drawn at once: 32 MiB."""
_LOOK_EVERY_S: Final = 0.05
"""Runs between two looks at the clock: more while they take less than this, fewer where they take long."""
_ROUNDING: Final = 1e-9
_CHIEF: Final = {"none": 0, "fail": 1, "rollback": 2, "re-elect": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A distribution over runs.

    Attributes
    ----------
    mean, standard_error : over the runs that finished; infinite where none did.
    p50, p90, p99 : over all runs, where those that did not finish count as infinite.
    """

    mean: float
    standard_error: float
    p50: float
    p90: float
    p99: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Mean seconds of the runs that finished; they add up to the mean time.

    Less than 0 are degraded where those that replace the lost are faster.
    """

    compute_s: float
    degraded_s: float
    checkpoint_s: float
    lost_work_s: float
    restart_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """Outcomes of some runs of a job.

    Attributes
    ----------
    end_s : (runs,) when each finished, or ended otherwise.
    finished : (runs,) whether it did the work.
    cost : (runs,) dollars, of failed runs what they cost until then.
    losses : (runs,) workers lost, at the provider's cap too.
    parts_s : (runs, 4) running and saving that was kept, work lost, time stalled.
    ideal_s : (runs,) the job without losses and saves, at the run's pace.
    """

    end_s: Floats
    finished: Floats
    cost: Floats
    losses: Floats
    parts_s: Floats
    ideal_s: Floats

    @property
    def p_failure(self) -> float:
        """Share of runs that never finished."""
        return 1.0 - float(self.finished.mean())

    @property
    def time_s(self) -> Spread:
        """Time to finish."""
        return _spread_of(self.end_s, self.finished > 0.0)

    @property
    def dollars(self) -> Spread:
        """Cost of finishing."""
        return _spread_of(self.cost, self.finished > 0.0)

    @property
    def expected_losses(self) -> float:
        """Mean losses per run, finished or not."""
        return float(self.losses.mean())

    def p_deadline(self, deadline_s: float) -> float:
        """Share of runs that finish by a deadline."""
        return float(np.mean((self.finished > 0.0) & (self.end_s <= deadline_s)))

    @property
    def breakdown(self) -> Breakdown | None:
        """Mean seconds by activity; absent if no run finished."""
        done = self.finished > 0.0
        if not done.any():
            return None
        running, saving, lost, stalled = self.parts_s[done].mean(axis=0).tolist()
        ideal_s = float(self.ideal_s[done].mean())
        degraded_s = running - ideal_s
        if abs(degraded_s) < _ROUNDING * ideal_s:
            degraded_s = 0.0
        return Breakdown(
            compute_s=ideal_s,
            degraded_s=degraded_s,
            checkpoint_s=saving,
            lost_work_s=lost,
            restart_s=stalled,
        )


def simulate(
    job: Job,
    *,
    runs: int = 10_000,
    seed: int = 0,
    log_spread: float = 0.0,
    look: Callable[[], None] | None = None,
) -> Outcome:
    """Simulate some runs of a job.

    Parameters
    ----------
    log_spread : standard deviation of ln(speed), where speeds are known no better: every run has a pace of its own, one
        of as many evenly spaced quantiles of a log-normal law as there are runs.
    look : called now and then; what it raises ends the simulation.
    """
    if runs < 1:
        raise ValueError(f"runs must be at least 1, got {runs}")
    cluster, rules = _cluster(job), _rules(job)
    workers = len(cluster.group)
    scratch = Run(
        alive=np.empty(workers, dtype=np.int64),
        lives_drawn=np.empty(workers, dtype=np.int64),
        group=np.empty(workers, dtype=np.int64),
        taken=np.empty(workers, dtype=np.int64),
        next_s=np.empty(workers),
        since_s=np.empty(workers),
        work=np.empty(7),
        clock=np.empty(5),
        counts=np.empty(4, dtype=np.int64),
    )
    ahead, later, order = (np.random.Generator(np.random.PCG64(each)) for each in np.random.SeedSequence(seed).spawn(3))
    rows = np.empty((runs, len(COLUMNS)))
    paces = np.ones(runs)
    if log_spread > 0.0:
        paces = np.exp(log_spread * scipy.special.ndtri((order.permutation(runs) + 0.5) / runs))
    most = max(min(_CHUNK, _MOST_CHANCES // max(workers * LIVES, 1)), 1)
    start, size = 0, min(_FIRST_CHUNK, most)
    while start < runs:
        if look is not None:
            look()
        began_s = time.perf_counter()
        chunk = rows[start : start + size]
        # Random numbers come row by row: how many runs are made at once changes none of them.
        chances = ahead.random((len(chunk), workers * LIVES))
        simulate_runs(cluster, rules, scratch, chances, paces[start : start + size], later, chunk)
        start += size
        size = min(2 * size, most) if time.perf_counter() - began_s < _LOOK_EVERY_S else max(size // 4, 1)
    return Outcome(
        end_s=rows[:, 0],
        finished=rows[:, 1],
        cost=rows[:, 2],
        losses=rows[:, 3],
        parts_s=rows[:, 4:],
        ideal_s=job.ideal_s / paces,
    )


def _spread_of(values: Floats, done: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Spread:
    if not done.any():
        return Spread(mean=math.inf, standard_error=math.inf, p50=math.inf, p90=math.inf, p99=math.inf)
    # Sorting once; an infinite neighbour makes an interpolated quantile infinite, without 0 x inf.
    ranked = np.sort(np.where(done, values, math.inf))
    p50, p90, p99 = (float(ranked[math.ceil(share * len(ranked)) - 1]) for share in (0.5, 0.9, 0.99))
    finished_values = values[done]
    error = (
        float(finished_values.std(ddof=1)) / math.sqrt(len(finished_values)) if len(finished_values) > 1 else math.inf
    )
    return Spread(mean=float(finished_values.mean()), standard_error=error, p50=p50, p90=p90, p99=p99)


def _cluster(job: Job) -> Cluster:
    counts = [group.count for group in job.groups]
    laws = [group.lifetime for group in job.groups]
    ages = [group.age_s(worker) for group in job.groups for worker in range(group.count)]
    of_worker = np.repeat(np.arange(len(counts)), counts)
    series = [
        group.prices or PriceSeries(since_s=np.zeros(1), per_h=np.array([group.price_per_h])) for group in job.groups
    ]
    changes = [
        group.changes_s[worker] if group.changes_s else () for group in job.groups for worker in range(group.count)
    ]
    return Cluster(
        group=of_worker,
        joins=np.array([at if group.joins is None else group.joins for at, group in enumerate(job.groups)]),
        stride=np.array([stride // job.speeds.itemsize for stride in np.ascontiguousarray(job.speeds).strides]),
        gone_before=np.array([float(laws[group].revoked_by(age)) for group, age in zip(of_worker.tolist(), ages)]),
        age_s=np.array(ages, dtype=np.float64),
        knots_s=np.concatenate([law.knots_s for law in laws]),
        shares=np.concatenate([law.revoked for law in laws]),
        first_knot=np.cumsum([0, *(len(law.knots_s) for law in laws)]),
        cap_s=np.array([law.cap_s for law in laws], dtype=np.float64),
        delays_s=np.array([delay for group in job.groups for delay in group.replacement_s], dtype=np.float64),
        first_delay=np.cumsum([0, *(len(group.replacement_s) for group in job.groups)]),
        bills_startup=np.array([int(group.bills_startup) for group in job.groups]),
        price_per_s=np.concatenate([each.per_h for each in series]) / 3600.0,
        price_since_s=np.concatenate([each.since_s for each in series]),
        paid_before=np.concatenate([each.integral(0.0, each.since_s) for each in series]),
        first_price=np.cumsum([0, *(len(each.per_h) for each in series)]),
        changes_s=np.array([time for each in changes for time in each], dtype=np.float64),
        first_change=np.cumsum([0, *map(len, changes)]),
        # A copy: kernels are compiled for arrays that may be written to.
        speeds=np.array(job.speeds, dtype=np.float64).ravel(),
    )


def _rules(job: Job) -> Rules:
    saves = job.checkpoints
    return Rules(
        steps=float(job.steps),
        interval=float(saves.interval_steps),
        save_s=float(saves.stall_s),
        rolls_back=job.reaction.rolls_back,
        waits_for_all=job.reaction.waits_for_all,
        stall_on_loss_s=float(job.reaction.stall_on_loss_s),
        stall_on_join_s=float(job.reaction.stall_on_join_s),
        chief=_CHIEF[job.chief.policy],
        chief_setup_s=float(job.chief.setup_s),
        burst_chance=float(job.burst.chance),
        burst_others=int(job.burst.others),
        servers_per_s=job.servers_per_h / 3600.0,
        horizon_s=float(job.horizon_s),
    )
