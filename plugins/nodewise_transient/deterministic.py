"""Expected completion without simulation: quick, a mean only, with warnings where it is unreliable.

Nothing replaced (mean field): work goes on at the mean speed of the workers left, and is done when the integral of
it reaches the work. Everything replaced (fixed point), m the renewal function of `renewal`::

    T = N / S + saves + sum over workers m(T) (D delta + stalls) + chief's losses (half an interval + set-up)

with D the mean delay and delta the share of the full speed that a worker is missed for. Jobs that wait for all workers
take Daly's closed form at the mean rate of losses sum m(T) / T.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, expected_run_s
from nodewise_transient.job import Group, Job
from nodewise_transient.renewal import expected_losses

__all__ = ["Expectation", "expect", "mean_field_s"]

_GRID: Final = 2000
_ROUNDS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """Expected time, cost and losses, and what makes them doubtful."""

    time_s: float
    dollars: float
    losses: float
    warnings: tuple[str, ...] = ()


def expect(job: Job) -> Expectation:
    """Mean completion of a job: the fixed point if all that can be lost is replaced, else the mean field."""
    fragile = [group for group in job.groups if group.lifetime.revoked[-1] > 0.0 or math.isfinite(group.lifetime.cap_s)]
    if all(group.replacement_s for group in fragile):
        return _fixed_point(job)
    time_s = mean_field_s(job)
    gone = _gone_share(job, time_s)
    warnings: tuple[str, ...] = ()
    if gone > 0.5:
        warnings = (
            (
                f"{gone:.1f} nodes are expected to be lost without replacement, for which the mean-field "
                "approximation is inaccurate: use method MONTE_CARLO"
            ),
        )
    if job.reaction.rolls_back or job.chief.policy != "none":
        warnings = (
            *warnings,
            ("without replacement, the mean leaves out rollbacks and the loss of the chief: use method MONTE_CARLO"),
        )
    return Expectation(time_s=time_s, dollars=_dollars(job, time_s, replaced=False), losses=gone, warnings=warnings)


def mean_field_s(job: Job) -> float:
    """Seconds to do the work at the mean speed of the surviving workers; infinite if never. No worker is replaced.

    The mean is exact at each moment (workers are lost independently); the time it takes is biased low, as few survivors
    late cost more than many save.
    """
    whole = job.steps + job.checkpoints.count(job.steps) * job.checkpoints.stall_s * job.full_speed
    span = 2.0 * whole / job.full_speed
    while True:
        times = np.linspace(0.0, span, _GRID)
        speed = _mean_speed(job, times)
        done = np.concatenate(([0.0], np.cumsum(0.5 * (speed[1:] + speed[:-1]) * np.diff(times))))
        if done[-1] >= whole:
            return float(np.interp(whole, done, times))
        if speed[-1] <= 1e-9 * job.full_speed or span > min(job.horizon_s, 1e3 * whole / job.full_speed):
            return math.inf
        span *= 2.0


def _mean_speed(job: Job, times: Floats) -> Floats:
    """Mean speed at each time: the table weighted with the chances of so many of each group alive."""
    mean = np.broadcast_to(job.speeds, (len(times), *job.speeds.shape))
    for group in reversed(job.groups):
        alive = np.zeros((len(times), group.count + 1))
        alive[:, 0] = 1.0
        for worker in range(group.count):
            lives = 1.0 - group.lifetime.revoked_within(times, age_s=group.age_s(worker))[:, np.newaxis]
            alive[:, 1:] = alive[:, 1:] * (1.0 - lives) + alive[:, :-1] * lives
            alive[:, :1] *= 1.0 - lives
        mean = np.einsum("t...k,tk->t...", mean, alive)
    return np.asarray(mean)


def _gone_share(job: Job, time_s: float) -> float:
    return float(
        sum(
            group.lifetime.revoked_within(min(time_s, 1e12), age_s=group.age_s(worker))
            for group in job.groups
            for worker in range(group.count)
        )
    )


def _fixed_point(job: Job) -> Expectation:
    saves = job.checkpoints.count(job.steps) * job.checkpoints.stall_s
    base = job.ideal_s + saves
    half_interval_s = 0.5 * min(job.checkpoints.interval_steps, job.steps) / job.full_speed
    reaction, chief = job.reaction, job.chief
    time_s, losses = base, [0.0] * len(job.groups)
    for _ in range(_ROUNDS):
        losses = [_losses(group, time_s) for group in job.groups]
        stalls = reaction.stall_on_loss_s + reaction.stall_on_join_s
        if reaction.waits_for_all:
            delay_s = sum(m * _mean_delay_s(group) for m, group in zip(losses, job.groups)) / max(sum(losses), 1e-300)
            later = _daly(job, sum(losses) / time_s, delay_s, stalls)
        else:
            missed = (
                m * _mean_delay_s(group) * _missed_share(job, at)
                for at, (m, group) in enumerate(zip(losses, job.groups))
            )
            again = half_interval_s if reaction.rolls_back else 0.0
            later = base + sum(missed) + sum(losses) * (stalls + again)
        if chief.policy in {"rollback", "re-elect"}:
            of_chief = losses[0] / max(job.groups[0].count, 1)
            again = half_interval_s if chief.policy == "rollback" and not reaction.rolls_back else 0.0
            later += of_chief * (again + chief.setup_s)
        if not math.isfinite(later) or later > 1e4 * base:
            note = "nodes are lost faster than work is saved: the mean is not finite"
            return Expectation(time_s=math.inf, dollars=math.inf, losses=math.inf, warnings=(note,))
        converged = abs(later - time_s) < 1e-6 * time_s
        time_s = later
        if converged:
            break
    warnings: tuple[str, ...] = ()
    if job.chief.policy == "fail":
        share = float(job.groups[0].lifetime.revoked_within(time_s, age_s=job.groups[0].age_s(0)))
        warnings = (
            (f"the mean is of runs whose chief survives; the chief is lost, and the run fails, in about {share:.0%}"),
        )
    if reaction.waits_for_all and any(
        group.lifetime.provenance.law not in {"exponential", "stated"} for group in job.groups
    ):
        warnings = (*warnings, "the closed form assumes a constant rate of losses, which these lifetimes do not have")
    return Expectation(
        time_s=time_s, dollars=_dollars(job, time_s, replaced=True), losses=float(sum(losses)), warnings=warnings
    )


def _daly(job: Job, rate: float, delay_s: float, restart_s: float) -> float:
    """Daly's expected time where every loss also waits for a delay in which nothing can be lost."""
    interval_s = min(job.checkpoints.interval_steps, job.steps) / job.full_speed
    save_s = job.checkpoints.stall_s if math.isfinite(job.checkpoints.interval_steps) else 0.0
    if rate <= 1e-300:
        return job.ideal_s + job.checkpoints.count(job.steps) * job.checkpoints.stall_s
    running = float(expected_run_s(job.ideal_s, interval_s, save_s, restart_s, 1.0 / rate))
    # Losses while running, each of which waits; running / mean life of them.
    return running * (1.0 + rate * delay_s)


def _losses(group: Group, time_s: float) -> float:
    """Expected losses of a group, its places being independent; the same age is computed once."""
    ages = [group.age_s(worker) for worker in range(group.count)]
    delay_s = _mean_delay_s(group)
    return sum(
        ages.count(age) * expected_losses(group.lifetime, time_s, age_s=age, delay_s=delay_s)
        for age in dict.fromkeys(ages)
    )


def _mean_delay_s(group: Group) -> float:
    return sum(group.replacement_s) / len(group.replacement_s) if group.replacement_s else 0.0


def _missed_share(job: Job, group: int) -> float:
    """Share of the full speed that one worker of a group is missed for."""
    if not job.groups[group].count:
        return 0.0
    without = tuple(each.count - (at == group) for at, each in enumerate(job.groups))
    return 1.0 - float(job.speeds[without]) / job.full_speed


def _dollars(job: Job, time_s: float, *, replaced: bool) -> float:
    """Workers while they live, servers to the end."""
    if not math.isfinite(time_s):
        return math.inf
    total = job.servers_per_h * time_s
    for group in job.groups:
        if replaced:
            idle = 0.0 if group.bills_startup else _losses(group, time_s) * _mean_delay_s(group)
            total += group.price_per_h * max(group.count * time_s - idle, 0.0)
        else:
            times = np.linspace(0.0, time_s, _GRID)
            for worker in range(group.count):
                lives = 1.0 - group.lifetime.revoked_within(times, age_s=group.age_s(worker))
                total += group.price_per_h * float(np.trapezoid(lives, times))
    return total / 3600.0
