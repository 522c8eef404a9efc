"""Hours of the day in which a job is slow on several days."""

from __future__ import annotations

from typing import Final

import numpy as np

from nodewise.plugin import Floats, SlowHour, StepTimes

__all__ = ["find_slow_hours"]

HOUR_S: Final = 3600.0
DAY_S: Final = 24 * HOUR_S
SLOW: Final = 1.05
"""A step over that of the other hours of its day from which on an hour is slow: as small as a slowdown that counts."""
_LEAST_DAYS: Final = 3
"""Fewer days are no rule."""
_LEAST_HOURS: Final = 4
"""Hours of a day, without which nothing is usual in it."""
_CHANCE: Final = 0.01
"""Of an hour that is no slower than others to be taken for one, among all 24."""


def find_slow_hours(hours: StepTimes) -> tuple[SlowHour, ...]:
    """Hours of the day (UTC) whose step is longer than that of the other hours of the same day, on enough days.

    A day is compared with itself, as jobs change from day to day. By chance an hour is above the day's median every
    second day; the sign test's chance of so many slow days, for 24 hours together, is at most 1 %. So it takes 12 slow
    days of 12, or, as slow means 5 % above and most hours are not, as few as three where other hours are seldom slow.
    """
    if not len(hours):
        return ()
    hour, place = np.unique((hours.begin_s // HOUR_S).astype(np.int64), return_inverse=True)
    step_s = np.array([np.median(hours.step_s[place == each]) for each in range(len(hour))])
    day, of_day = hour // 24, hour % 24
    ratio = np.full(len(hour), np.nan)
    for each in np.unique(day):
        mine = np.flatnonzero(day == each)
        if len(mine) >= _LEAST_HOURS:
            ratio[mine] = [step_s[one] / np.median(np.delete(step_s[mine], at)) for at, one in enumerate(mine)]
    is_known = np.isfinite(ratio)
    slow_hours = []
    for each in np.unique(of_day[is_known]):
        mine = is_known & (of_day == each)
        days, slow = int(mine.sum()), int((ratio[mine] >= SLOW).sum())
        others = is_known & ~mine
        if days < _LEAST_DAYS or slow < _LEAST_DAYS or not others.any():
            continue
        usual = (float((ratio[others] >= SLOW).sum()) + 1.0) / (float(others.sum()) + 2.0)
        if 24 * _at_least(slow, days, usual) <= _CHANCE and float(np.median(ratio[mine])) >= SLOW:
            ratios: Floats = ratio[mine]
            slow_hours.append(SlowHour(hour=int(each), slowdown=float(np.median(ratios)), slow_days=slow, days=days))
    return tuple(slow_hours)


def _at_least(successes: int, trials: int, chance: float) -> float:
    """Probability of so many successes or more (binomial)."""
    from scipy.stats import binom  # noqa: PLC0415 - takes a while to import, and is seldom needed

    return float(binom.sf(successes - 1, trials, chance))
