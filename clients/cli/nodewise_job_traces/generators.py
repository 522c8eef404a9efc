"""Jobs made up: when they arrive and how large they are, by laws and a seed.

Arrivals and sizes are streams without end, drawn as they are needed; ``generated`` cuts them off.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice

import numpy as np

from nodewise_job_traces.faults import JobsFileError
from nodewise_job_traces.jobs import Curve, Job

__all__ = [
    "Draw",
    "bursty",
    "constant",
    "diurnal",
    "exponential",
    "generate_jobs",
    "log_normal",
    "pareto",
    "poisson",
]

Draw = Callable[[np.random.Generator], Iterator[float]]
"""A law: from a random generator to numbers without end."""


def _require(**numbers: float) -> None:
    for name, value in numbers.items():
        if not 0 < value < math.inf:
            raise JobsFileError(name, f"must be finite and above 0, found {value:g}")


def _each(one: Callable[[np.random.Generator], float]) -> Draw:
    """Numbers that do not depend on each other."""

    def draw(random: np.random.Generator) -> Iterator[float]:
        while True:
            yield one(random)

    return draw


def poisson(mean_gap_s: float) -> Draw:
    """Arrival times (s) with independent, exponential gaps."""
    _require(mean_gap_s=mean_gap_s)
    return lambda random: accumulate(exponential(mean_gap_s)(random))


def diurnal(mean_gap_s: float, swing: float = 0.8, period_s: float = 86_400.0) -> Draw:
    """Poisson arrivals whose rate swings as 1 + swing sin(2 pi t / period) around its mean (thinning)."""
    _require(mean_gap_s=mean_gap_s, period_s=period_s)
    if not 0 <= swing <= 1:
        raise JobsFileError("swing", f"must be 0 to 1, found {swing:g}")

    def draw(random: np.random.Generator) -> Iterator[float]:
        now_s = 0.0
        while True:
            now_s += random.exponential(mean_gap_s / (1 + swing))
            if random.random() * (1 + swing) < 1 + swing * math.sin(2 * math.pi * now_s / period_s):
                yield now_s

    return draw


def bursty(mean_gap_s: float, mean_burst: float = 10.0, gap_within_s: float = 1.0) -> Draw:
    """Bursts: Poisson starts, a geometric number of jobs with the given mean, exponential gaps within a burst.

    ``mean_gap_s`` is the mean over all jobs. Bursts do not overlap: the next start is counted from the end of one.
    """
    _require(mean_gap_s=mean_gap_s, mean_burst=mean_burst, gap_within_s=gap_within_s)
    between_s = mean_gap_s * mean_burst - gap_within_s * (mean_burst - 1)
    if mean_burst < 1 or between_s <= 0:
        raise JobsFileError(
            "mean_burst", f"must be 1 or more, with gap_within_s below mean_gap_s; found {mean_burst:g}"
        )

    def draw(random: np.random.Generator) -> Iterator[float]:
        now_s = 0.0
        while True:
            now_s += random.exponential(between_s)
            yield now_s
            for _ in range(int(random.geometric(1.0 / mean_burst)) - 1):
                now_s += random.exponential(gap_within_s)
                yield now_s

    return draw


def constant(value: float) -> Draw:
    """The same number each time."""
    _require(value=value)
    return _each(lambda _: value)


def exponential(mean: float) -> Draw:
    """Exponential numbers."""
    _require(mean=mean)
    return _each(lambda random: random.exponential(mean))


def log_normal(mean: float, sigma: float) -> Draw:
    """Log-normal numbers of that mean; ``sigma`` is the standard deviation of the logarithm (2 = heavy)."""
    _require(mean=mean, sigma=sigma)
    return _each(lambda random: random.lognormal(math.log(mean) - sigma * sigma / 2, sigma))


def pareto(least: float, shape: float, most: float = math.inf) -> Draw:
    """Pareto numbers from ``least``, P(> x) = (least / x)^shape, conditional on being at most ``most``."""
    _require(least=least, shape=shape)
    if not most > least:
        raise JobsFileError("most", f"must be above least, {least:g}; found {most:g}")
    cut = 1.0 - (least / most) ** shape
    return _each(lambda random: float(least / (1.0 - random.random() * cut) ** (1.0 / shape)))


def generate_jobs(
    arrivals: Draw,
    sizes_s: Draw,
    curves: Sequence[Curve],
    *,
    jobs: int,
    requested: Sequence[int] = (1,),
    rigid: bool = False,
    seed: int = 0,
) -> Iterator[Job]:
    """Generate jobs: each gets a curve, a request that the curve supports, and the work of its size.

    Parameters
    ----------
    sizes_s : Draw
        Seconds that a job takes on its requested devices (in the first pool of its curve that has the count).
    requested : sequence of int
        Counts to draw from, with equal probability.

    Raises
    ------
    JobsFileError
        When a curve has none of the requested counts.
    """
    choices = []
    for index, curve in enumerate(curves):
        rates = [(count, curve.rate_on(count)) for count in requested]
        having = [(count, rate) for count, rate in rates if rate is not None]
        if not having:
            raise JobsFileError(f"curves[{index}]", f"must allow one of the requested counts, {list(requested)}")
        choices.append((curve, having))
    if not choices:
        raise JobsFileError("curves", "must contain a curve")
    # Streams of their own: another law of sizes leaves the arrivals where they are.
    times, sizes, deal = (np.random.default_rng((seed, stream)) for stream in range(3))
    draws = islice(zip(arrivals(times), sizes_s(sizes)), jobs)
    return (_deal_job(number, *one, choices, deal, rigid=rigid) for number, one in enumerate(draws))


def _deal_job(
    number: int,
    arrival_s: float,
    size_s: float,
    choices: Sequence[tuple[Curve, Sequence[tuple[int, float]]]],
    deal: np.random.Generator,
    *,
    rigid: bool,
) -> Job:
    curve, having = choices[int(deal.integers(len(choices)))]
    count, rate = having[int(deal.integers(len(having)))]
    return Job(
        job_id=f"{number:08d}",
        arrival_s=arrival_s,
        samples=size_s * rate,
        curve=curve,
        requested_devices=count,
        rigid=rigid,
    )
