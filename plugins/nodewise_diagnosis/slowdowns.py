"""Slowdowns in series of logarithms of times: a robust cumulative sum with a threshold from its false-alarm rate.

Page's cumulative sum (Biometrika 1954) of the deviation from a reference, which is the median of earlier windows and
their median absolute deviation; increments are clipped (Huber), so that a few windows cannot raise an alarm alone. The
threshold follows from the wanted mean time between false alarms by Siegmund's approximation (Sequential Analysis,
1985), with the variance of a mean of dependent values in place of that of independent ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats

__all__ = ["SLOWDOWN", "Slowdown", "find_slowdowns"]

SLOWDOWN: Final = math.log(1.10)
"""The slowdown that is to be found soon. The cumulative sum's allowance is half of it, Page's optimum, so that
slowdowns of less than 5 % raise no alarm."""
LEARNED: Final = 20
"""Windows before the first decision: fewer tell little of how much a series varies."""
REMEMBERED: Final = 200
"""Windows of the reference."""
LAG: Final = 10
"""Newest windows that the reference leaves out, so that a slowdown does not become its own reference."""
LEAST_WINDOWS: Final = 3
"""Slow windows of a slowdown at least: one may be a checkpoint, two its edges."""
_SIGMA: Final = 1.4826
"""Of normal values, the standard deviation over the median absolute deviation."""
_MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
"""Of normal values, the standard error of the median over that of the mean."""
_LAGS: Final = 5
"""Lags of the autocorrelation that count."""
_NORMAL_95: Final = 1.645
_LONGEST_WAIT: Final = 1e12
"""Most windows between alarms: a longer request counts as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slowdown:
    """A slowdown of one series.

    Attributes
    ----------
    series : int
        Which column.
    begin, alarm : int
        The window in which it began, by the cumulative sum, and the one after which it was known.
    end : int
        The first window without it; -1 = it lasts.
    size, error : float
        ln of the time over its reference, and half the width of its 90 % interval.
    """

    series: int
    begin: int
    alarm: int
    end: int
    size: float
    error: float


def find_slowdowns(series: Floats, windows_between_alarms: float, *, alike: bool = True) -> list[Slowdown]:
    """Slowdowns of each series.

    Parameters
    ----------
    series : (windows, n) float
        ln of times; NaN = not known.
    windows_between_alarms : float
        Mean number of windows of one series between false alarms.
    alike : bool
        Whether the series vary alike, so that each varies at least as much as their median does.
    """
    windows, count = series.shape
    sums = np.zeros(count)
    begin = np.zeros(count, dtype=np.int64)
    raising = np.zeros(count, dtype=np.int64)
    slow: dict[int, Slowdown] = {}
    busy = np.zeros(count, dtype=np.bool_)
    calm = np.isfinite(series)
    slowdowns: list[Slowdown] = []
    centre = sigma = threshold = most = np.full(count, np.nan)
    for window in range(LEARNED, windows):
        if (window - LEARNED) % LAG == 0:
            until = max(window - LAG, LEARNED)
            held = slice(max(0, until - REMEMBERED), until)
            past = np.where(calm[held], series[held], np.nan)
            centre, sigma = _reference(past, centre, sigma, alike=alike)
            threshold = _thresholds(sigma, windows_between_alarms)
            most = np.maximum(2 * SLOWDOWN, 3 * sigma)
        for place, one in list(slow.items()):
            calm[window, place] = False
            recent = series[window - LEAST_WINDOWS + 1 : window + 1, place]
            if (recent < centre[place] + one.size / 2).all():
                first_calm = window - LEAST_WINDOWS + 1
                slowdowns.append(_measure(series, one, centre, sigma, first_calm))
                del slow[place]
                busy[place], sums[place] = False, 0.0
                calm[first_calm : window + 1, place] = True
        increment = np.minimum(series[window] - centre, most) - SLOWDOWN / 2
        raised = np.where(busy | ~np.isfinite(increment), sums, np.maximum(sums + increment, 0.0))
        begin = np.where((sums == 0.0) & (raised > 0.0), window, begin)
        raising = np.where(raised > 0.0, raising + (raised > sums), 0)
        sums = raised
        over = ~busy & (sums > threshold) & (raising >= LEAST_WINDOWS)
        for place in np.flatnonzero(over).tolist() if over.any() else ():
            first = int(begin[place])
            run = series[first : window + 1, place]
            size = float(np.nanmedian(run) - centre[place])
            if size > SLOWDOWN / 2:
                slow[place] = Slowdown(series=place, begin=first, alarm=window, end=-1, size=size, error=0.0)
                busy[place] = True
                calm[first : window + 1, place] = False
    slowdowns += [_measure(series, one, centre, sigma, -1) for one in slow.values()]
    return sorted(slowdowns, key=lambda one: (one.alarm, one.series))


def _reference(past: Floats, centre: Floats, sigma: Floats, *, alike: bool) -> tuple[Floats, Floats]:
    """Median and long-run standard deviation of each series, both on the side of fewer alarms.

    A series without enough calm windows keeps what it has.
    """
    known_count = np.isfinite(past).sum(axis=0)
    enough = known_count >= LEARNED // 2
    safe = np.where(enough, past, 0.0)
    median = np.nanmedian(safe, axis=0)
    deviation = safe - median
    spread = _SIGMA * np.nanmedian(np.abs(deviation), axis=0)
    dependence = _long_run_ratio(deviation, spread)
    if alike and enough.any():
        spread = np.maximum(spread, np.median(spread[enough]))
        dependence = np.maximum(dependence, np.median(dependence[enough]))
    root = np.sqrt(np.maximum(known_count, 1))
    # The error of a standard deviation from n values is sigma / sqrt(2 n); that of the median is known from above.
    spread = spread * np.sqrt(dependence) * (1.0 + _MEDIAN_ERROR / (math.sqrt(2.0) * root))
    median = median + _MEDIAN_ERROR * spread / root
    return np.where(enough, median, centre), np.where(enough, spread, sigma)


def _long_run_ratio(deviation: Floats, spread: Floats) -> Floats:
    """Variance of a mean of dependent values over that of independent ones, by series, at least 1 (Bartlett)."""
    clipped = np.nan_to_num(np.clip(deviation, -3 * spread, 3 * spread))
    variance = np.maximum((clipped**2).mean(axis=0), 1e-30)
    ratio = np.ones(deviation.shape[1])
    for lag in range(1, min(_LAGS, len(clipped) - 1) + 1):
        ratio += 2 * (1 - lag / (_LAGS + 1)) * (clipped[lag:] * clipped[:-lag]).mean(axis=0) / variance
    return np.maximum(ratio, 1.0)


def _thresholds(sigma: Floats, windows_between_alarms: float) -> Floats:
    """The cumulative sum that is passed by chance once in so many windows, by Siegmund's approximation.

    With drift -k and standard deviation s: (exp(2 k b) - 1 - 2 k b) / (2 k^2), k in units of s, b = h / s + 1.166.
    """
    windows = min(windows_between_alarms, _LONGEST_WAIT)
    drift = SLOWDOWN / 2 / np.maximum(sigma, 1e-9)
    # exp(x) - 1 - x = y, by Newton's method from ln(1 + y) + 1, where it converges from above
    right = 2 * drift**2 * windows
    x = np.log1p(right) + 1.0
    for _ in range(8):
        x -= (np.expm1(x) - x - right) / np.expm1(x)
    return np.maximum(x / (2 * drift) - 1.166, 0.0) * sigma


def _measure(series: Floats, one: Slowdown, centre: Floats, sigma: Floats, end: int) -> Slowdown:
    """A slowdown with its size over all its windows."""
    run = series[one.begin : end if end >= 0 else None, one.series]
    run = run[np.isfinite(run)]
    size = float(np.median(run) - centre[one.series])
    error = _NORMAL_95 * _MEDIAN_ERROR * float(sigma[one.series]) / math.sqrt(len(run))
    return Slowdown(series=one.series, begin=one.begin, alarm=one.alarm, end=end, size=size, error=error)
