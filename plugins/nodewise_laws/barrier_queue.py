"""Round time of synchronous training when uploads queue at the server in the order in which workers finish.

The server's exchange with one worker (upload and update) takes e seconds, and it is never idle while a gradient
waits. Then the last of W is done at

    T = max over i of ( c_(i) + (W - i + 1) e ),

where c_(1) <= ... <= c_(W) are the sorted compute times: after the i-th finish at least W - i + 1 exchanges are
still to come, and the last idle period of the server ends at one of the finishes. The discipline does not matter:
any server that is busy whenever there is work ends at the same time. (Reich's formula for the work in a queue;
L. Kleinrock, "Queueing Systems" vol. 1, Wiley 1975, section 8.2.) The expectation of T has no closed form. It lies
above the order-statistic form max_i(E[c_(i)] + (W - i + 1) e), by Jensen's inequality, which errs by -8 to +0.8 %.

Here it is the mean over a fixed Latin hypercube sample (see `_compute_sample`), in which one worker's mean is exact
and, sample by sample, adding a worker never shortens a round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, IntArray, coefficient_of_variation, counts, freeze, non_negative_scalar
from nodewise_laws._compute_sample import relative_times, time_quantiles
from nodewise_laws.order_statistics import MAX_WORKERS, expected_maximum_gamma

__all__ = ["QueuedRounds", "barrier_round_queued", "mean_ending"]

SAMPLED_EACH: Final = 32
"""Number of workers up to which every one is sampled. Beyond, order statistics hardly vary: c_(i) is taken at its
quantile, and what that misses is sampled at eight numbers of workers per doubling."""

_QUANTILE_NODES: Final = 512
_NODES_PER_DOUBLING: Final = 8
_NODES: Final = np.array(sorted({round(SAMPLED_EACH * 2.0 ** (row / _NODES_PER_DOUBLING)) for row in range(17)}))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class QueuedRounds:
    """Rounds with a barrier, element by element of the workers asked for.

    Attributes
    ----------
    round_s : seconds from the beginning of the downloads to the end of the last update.
    slowest_compute_s : seconds that the slowest of the workers that the round waits for is expected to compute.
    """

    round_s: FloatArray
    slowest_compute_s: FloatArray


def barrier_round_queued(
    workers: npt.ArrayLike, *, download_s: float, exchange_s: float, compute_s: float, compute_cv: float
) -> QueuedRounds:
    """Expected rounds: W downloads share the link, workers compute, exchanges queue as workers finish.

    ::

        t = W D_d + E[ max_i ( c_(i) + (W - i + 1) e ) ]

    Parameters
    ----------
    workers : (n,) numbers of workers W, whole, from 1 to `MAX_WORKERS`.
    download_s : seconds that one worker's download occupies the server's link.
    exchange_s : seconds e that one worker's upload and update occupy the server.
    compute_s : mean compute time of one worker.
    compute_cv : coefficient of variation of the gamma-distributed compute times, 0 to `MAX_COEFFICIENT_OF_VARIATION`.

    Returns
    -------
    QueuedRounds
        Nondecreasing in W; exact for one worker. Deterministic.

    Raises
    ------
    ValueError
        An argument is out of its range or not finite.
    """
    number = counts("workers", workers, minimum=1, maximum=MAX_WORKERS)
    download, exchange = non_negative_scalar("download_s", download_s), non_negative_scalar("exchange_s", exchange_s)
    compute = non_negative_scalar("compute_s", compute_s)
    cv = float(coefficient_of_variation("compute_cv", non_negative_scalar("compute_cv", compute_cv)))
    finish, slowest = np.empty(number.shape), np.empty(number.shape)
    few = number <= SAMPLED_EACH
    for count in np.unique(number[few]).tolist():
        here = number == count
        finish[here], slowest[here] = _sample_ends(count, exchange, compute, cv)
    if not few.all():
        finish[~few], slowest[~few] = _by_quantiles(number[~few], exchange, compute, cv)
    return QueuedRounds(round_s=number * download + finish, slowest_compute_s=slowest)


def _sample_ends(count: int, exchange_s: float, compute_s: float, cv: float) -> tuple[float, float]:
    """Mean end of the last exchange, and of the last compute, over the sample."""
    if count == 1:
        return compute_s + exchange_s, compute_s
    if count > SAMPLED_EACH:
        return mean_ending(np.sort(compute_s * relative_times(cv)[:, :count], axis=1), count, exchange_s)
    return mean_ending(compute_s * _ordered_times(cv, count), count, exchange_s)


@lru_cache(maxsize=96)
def _ordered_times(cv: float, count: int) -> FloatArray:
    """(samples, W) ascending compute times of mean 1; 24 MiB at most. The same rounds are needed at many loads."""
    return freeze(np.sort(relative_times(cv)[:, :count], axis=1))


def mean_ending(times_s: FloatArray, awaited: int, exchange_s: float) -> tuple[float, float]:
    """Mean end of the exchange, and of the computing, of the k-th to finish, over (samples, W) ascending times."""
    finishing = times_s[:, :awaited]
    last = float(finishing[:, -1].mean())
    if exchange_s == 0.0:
        return last, last
    left = exchange_s * np.arange(awaited, 0, -1)
    return float((finishing + left).max(axis=1).mean()), last


def _by_quantiles(number: IntArray, exchange_s: float, compute_s: float, cv: float) -> tuple[FloatArray, FloatArray]:
    """The same for many workers: c_(i) at its quantile, and what the sample adds to that, read between nodes."""
    nodes = _NODES[: int(np.searchsorted(_NODES, number.max())) + 1]
    sampled = np.array([_sample_ends(count, exchange_s, compute_s, cv) for count in nodes.tolist()])
    coarse = np.stack(_at_quantiles(np.concatenate((nodes, number)), exchange_s, compute_s, cv))
    missing = sampled.T - coarse[:, : len(nodes)]
    place, log_nodes = np.log(number), np.log(nodes)
    finish, slowest = (
        line[len(nodes) :] + np.interp(place, log_nodes, np.maximum(gap, 0.0))
        for line, gap in zip(coarse, missing, strict=True)
    )
    return finish, slowest


def _at_quantiles(number: IntArray, exchange_s: float, compute_s: float, cv: float) -> tuple[FloatArray, FloatArray]:
    """Order-statistic form with c_(i) at the quantile of (i - 1) / W, and the last at its mean."""
    nodes, maxima = _relative_maxima(cv)
    slowest = np.interp(np.log(number), np.log(nodes), compute_s * maxima)
    finish = slowest + exchange_s
    shares = np.linspace(0.0, 1.0, _QUANTILE_NODES, endpoint=False)
    quantiles = compute_s * time_quantiles(cv, shares)
    for share, quantile in zip(shares.tolist(), quantiles.tolist(), strict=True):
        waiting = number * (1.0 - share)
        np.maximum(finish, quantile + waiting * exchange_s, out=finish, where=waiting >= 1.0)
    return finish, slowest


@lru_cache(maxsize=256)
def _relative_maxima(cv: float) -> tuple[IntArray, FloatArray]:
    """Numbers of workers, and the expected maximum of so many times of mean 1.

    The maximum of W is a smooth function of ln W, which a few nodes carry. They are the same for every question: what
    is asked beside a number of workers must not change its answer, not even by rounding.
    """
    doublings = math.ceil(math.log2(MAX_WORKERS / SAMPLED_EACH))
    steps = np.arange(doublings * _NODES_PER_DOUBLING + 1) / _NODES_PER_DOUBLING
    nodes = np.unique(np.minimum((SAMPLED_EACH * 2.0**steps).round(), MAX_WORKERS).astype(np.int64))
    return nodes, freeze(expected_maximum_gamma(1.0, cv, nodes))
