"""How often to save: Young's and Daly's intervals, and the best one for any law of lifetimes.

A job of N seconds saves C seconds after every W of work; it is lost at rate 1 / M, restarts in R, and what was not
saved is done again. Young: J. W. Young, Commun. ACM 17(9), 1974. Daly: J. T. Daly, Future Generation Computer Systems
22, 2006; his expected time and its exact optimum are ``nodewise.plugin``'s. Other laws, where each attempt starts with
new machines, are solved exactly too: with k segments of W + C left at the start of an attempt,

    V(k) = integral_0^(R + k (W + C)) S + sum_j P(lost after j saved segments) V(k - j)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from nodewise.plugin import Floats
from nodewise_transient.lifetimes import Lifetime

__all__ = [
    "Restarts",
    "best_segments",
    "daly_s",
    "first_of",
    "restarting",
    "young_s",
]


def young_s(save_s: npt.ArrayLike, between_losses_s: npt.ArrayLike) -> Floats:
    """Young's interval, sqrt(2 C M)."""
    return np.sqrt(2.0 * np.asarray(save_s, dtype=np.float64) * np.asarray(between_losses_s, dtype=np.float64))


def daly_s(save_s: npt.ArrayLike, between_losses_s: npt.ArrayLike, *, order: int = 3) -> Floats:
    """Daly's interval: sqrt(2 C M) - C of the first order, or with two further terms of the series."""
    save, mean = np.asarray(save_s, dtype=np.float64), np.asarray(between_losses_s, dtype=np.float64)
    series = 1.0 if order == 1 else 1.0 + np.sqrt(save / (2.0 * mean)) / 3.0 + save / (2.0 * mean) / 9.0
    # Where a save takes longer than two mean lives, no interval is short enough: Daly takes M.
    return np.where(save < 2.0 * mean, young_s(save, mean) * series - save, mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """A job that starts again on new machines whenever it is lost.

    Attributes
    ----------
    running_s : expected seconds of attempts, restarts among them; infinite if no attempt can save anything.
    losses : expected number of losses.
    """

    running_s: float
    losses: float

    def total_s(self, delay_s: float) -> float:
        """Expected time where machines take a delay to come, in which nothing runs."""
        return self.running_s + self.losses * delay_s if self.losses else self.running_s

    def cost(self, delay_s: float, *, workers_per_h: float, servers_per_h: float) -> float:
        """Expected dollars where workers are billed while they run, servers all the time."""
        return (self.running_s * workers_per_h + self.total_s(delay_s) * servers_per_h) / 3600.0


def restarting(
    law: Lifetime, *, work_s: float, segments: int, save_s: float, restart_s: float, age_s: float = 0.0
) -> Restarts:
    """Solve V for equal segments, exactly for the law; the first attempt is ``age_s`` old and needs no restart."""
    step = work_s / segments + save_s
    ends = restart_s + step * np.arange(segments + 1, dtype=np.float64)
    gone = law.revoked_by(ends)
    lived = _lived_s(law, ends)
    again = float(gone[1])
    if again >= 1.0:
        return Restarts(running_s=math.inf, losses=math.inf)
    lost = np.diff(gone)
    running, losses = np.zeros(segments + 1), np.zeros(segments + 1)
    for left in range(1, segments + 1):
        earlier = slice(left - 1, 0, -1)
        running[left] = (lived[left] + lost[1:left] @ running[earlier]) / (1.0 - again)
        losses[left] = (gone[left] + lost[1:left] @ losses[earlier]) / (1.0 - again)
    first = age_s + step * np.arange(segments + 1, dtype=np.float64)
    survived = 1.0 - float(law.revoked_by(age_s))
    gone_first = law.revoked_within(first - age_s, age_s=age_s)
    lost_first = np.diff(gone_first)
    span = (_lived_s(law, first[-1:]) - _lived_s(law, first[:1]))[0] / survived
    return Restarts(
        running_s=float(span + lost_first @ running[:0:-1]),
        losses=float(gone_first[-1] + lost_first @ losses[:0:-1]),
    )


def best_segments(
    law: Lifetime,
    *,
    work_s: float,
    save_s: float,
    restart_s: float,
    delay_s: float = 0.0,
    age_s: float = 0.0,
    workers_per_h: float | None = None,
    servers_per_h: float = 0.0,
) -> tuple[int, float]:
    """The number of equal segments that minimises expected time, or cost where prices are given; and its objective."""

    @cache
    def objective(segments: int) -> float:
        expectation = restarting(law, work_s=work_s, segments=segments, save_s=save_s, restart_s=restart_s, age_s=age_s)
        if workers_per_h is None:
            return expectation.total_s(delay_s)
        return expectation.cost(delay_s, workers_per_h=workers_per_h, servers_per_h=servers_per_h)

    # No interval below a tenth of a save pays: by then saves take ten times what they protect.
    most = max(1, min(2000, math.ceil(10.0 * work_s / max(save_s, work_s / 200.0))))
    grid = np.unique(np.geomspace(1.0, most, 24).round().astype(np.int64)).tolist()
    at = min(range(len(grid)), key=lambda each: objective(grid[each]))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    while high - low > 2:
        third = max((high - low) // 3, 1)
        if objective(low + third) <= objective(high - third):
            high -= third
        else:
            low += third
    best = min(range(low, high + 1), key=objective)
    return best, objective(best)


def first_of(law: Lifetime, workers: int) -> Lifetime:
    """When the first of so many new machines goes: S^n, on knots as dense as it bends between those of S."""
    parts = 16 if workers > 1 else 1
    index = np.arange((len(law.knots_s) - 1) * parts + 1) / parts
    knots = np.unique(np.interp(index, np.arange(len(law.knots_s)), law.knots_s))
    left = 1.0 - np.interp(knots, law.knots_s, law.revoked)
    return replace(law, knots_s=knots, revoked=1.0 - left**workers)


def _lived_s(law: Lifetime, until_s: Floats) -> Floats:
    """Integral of the share that lives, from 0 to each age: exact, as it is linear between knots."""
    left = 1.0 - law.revoked
    before = np.concatenate(([0.0], np.cumsum(0.5 * (left[1:] + left[:-1]) * np.diff(law.knots_s))))
    ages = np.minimum(until_s, law.cap_s)
    at = np.searchsorted(law.knots_s, ages, side="right") - 1
    then = 1.0 - np.interp(ages, law.knots_s, law.revoked)
    return before[at] + 0.5 * (left[at] + then) * (ages - law.knots_s[at])
