"""Rounds that wait only for the fastest: W workers of which b are backups, whose late gradients are dropped.

As soon as k = W - b gradients have been applied the round ends (J. Chen, X. Pan, R. Monga, S. Bengio and
R. Jozefowicz, "Revisiting distributed synchronous SGD", 2016, arXiv:1604.00981). Exchanges (upload and update, e
seconds each) queue in the order in which workers finish computing, and are served in it, so the k-th is done at

    T_k = max over i <= k of ( c_(i) + (k - i + 1) e ),

with c_(1) <= ... <= c_(W) the sorted compute times: the form of `barrier_queue`, cut off at the k-th finish. A
reconstruction from first principles: it lets a dropped gradient cost the server nothing, and has every worker begin the
next round at once. All W download.

`barrier_round_mixed` is the same for workers of several kinds. A persistently slow worker is no random maximum: every
round that waits for it lasts as long as it computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, SupportsIndex

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import (
    IntArray,
    broadcast,
    coefficient_of_variation,
    count,
    non_negative,
    non_negative_scalar,
)
from nodewise_laws._checks import counts as whole_numbers
from nodewise_laws._compute_sample import MOST_WORKERS, SAMPLED_WORKERS, mixed_times, relative_times, time_quantiles
from nodewise_laws.barrier_queue import QueuedRounds, barrier_round_queued, mean_ending
from nodewise_laws.kth_order_statistic import expected_order_statistic_gamma
from nodewise_laws.order_statistics import MAX_WORKERS

__all__ = ["MAX_MIXED_WORKERS", "MixedRound", "barrier_round_backup", "barrier_round_mixed"]

MAX_MIXED_WORKERS: Final = MOST_WORKERS
"""Largest number of workers that `barrier_round_mixed` accepts."""

_QUANTILE_NODES: Final = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedRound:
    """A round of workers of several kinds.

    Attributes
    ----------
    round_s : seconds from the beginning of the downloads to the end of the last update that the round waits for.
    slowest_compute_s : seconds that the slowest of the workers that the round waits for is expected to compute.
    """

    round_s: float
    slowest_compute_s: float


def barrier_round_backup(
    workers: npt.ArrayLike,
    *,
    download_s: float,
    exchange_s: float,
    compute_s: float,
    compute_cv: float,
    backup_workers: npt.ArrayLike,
) -> QueuedRounds:
    """Expected rounds that end when all but `backup_workers` of the workers have had their gradient applied.

    ::

        t = W D_d + E[ max_{i <= k} ( c_(i) + (k - i + 1) e ) ],   k = W - b

    The mean over the sample of `barrier_queue` up to 128 workers: its standard error is at most 1/32 of the standard
    deviation of a round. Beyond, every c_(i) is taken at its quantile and c_(k) at its mean, which against simulations
    of up to 1,000 workers errs by -4 to +0.5 %.

    Parameters
    ----------
    workers : (n,) numbers of workers W, backups included, whole, from 1 to `MAX_WORKERS`.
    download_s : seconds that one worker's download occupies the server's link.
    exchange_s : seconds e that one worker's upload and update occupy the server.
    compute_s : mean compute time of one worker.
    compute_cv : coefficient of variation of the gamma-distributed compute times, 0 to `MAX_COEFFICIENT_OF_VARIATION`.
    backup_workers : (n,) or scalar, how many of W the round does not wait for, whole, from 0 to W - 1.

    Returns
    -------
    QueuedRounds
        Nonincreasing in `backup_workers`; for none of them exactly what `barrier_round_queued` says. Deterministic.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the others.
    """
    number = whole_numbers("workers", workers, minimum=1, maximum=MAX_WORKERS)
    spare = whole_numbers("backup_workers", backup_workers, minimum=0)
    shape = broadcast(workers=number, backup_workers=spare)
    number, spare = np.broadcast_to(number, shape), np.broadcast_to(spare, shape)
    if np.any(spare >= number):
        message = f"backup_workers must be fewer than workers, got {backup_workers!r} of {workers!r}"
        raise ValueError(message)
    everyone = barrier_round_queued(
        number, download_s=download_s, exchange_s=exchange_s, compute_s=compute_s, compute_cv=compute_cv
    )
    round_s, slowest = everyone.round_s.copy(), everyone.slowest_compute_s.copy()
    for place in zip(*np.nonzero(spare), strict=True):
        total, awaited = int(number[place]), int(number[place] - spare[place])
        if total <= SAMPLED_WORKERS:
            times = np.sort(compute_s * relative_times(float(compute_cv))[:, :total], axis=1)
            ending, last = mean_ending(times, awaited, exchange_s)
        else:
            ending, last = _by_quantiles(total, awaited, exchange_s, compute_s, float(compute_cv))
        # With all workers awaited the round may be read between sampled ones: fewer must not come out longer.
        round_s[place] = min(round_s[place], total * download_s + ending)
        slowest[place] = min(slowest[place], last)
    return QueuedRounds(round_s=round_s, slowest_compute_s=slowest)


def barrier_round_mixed(
    counts: npt.ArrayLike,
    *,
    compute_s: npt.ArrayLike,
    compute_cv: npt.ArrayLike,
    download_s: float,
    exchange_s: float,
    backup_workers: SupportsIndex = 0,
) -> MixedRound:
    """Expected round of workers in classes that compute at different speeds, such as one persistent straggler.

    The mean over the sample of `barrier_queue`, each worker's times scaled to its class: 1,024 samples of up to 128
    workers, fewer beyond (see `_compute_sample`).

    Parameters
    ----------
    counts : (C,) number of workers of each class, whole, at least 0, in all from 1 to `MAX_MIXED_WORKERS`.
    compute_s : (C,) mean compute time of a worker of each class.
    compute_cv : (C,) or scalar, coefficient of variation of the gamma-distributed compute times, 0 to
        `MAX_COEFFICIENT_OF_VARIATION`.
    download_s : seconds that one worker's download occupies the server's link, the same for all.
    exchange_s : seconds that one worker's upload and update occupy the server, the same for all.
    backup_workers : how many of all workers the round does not wait for, from 0 to one less than all; whoever is the
        slowest in a round is dropped in it.

    Returns
    -------
    MixedRound
        Nonincreasing in `backup_workers`. With one class, or classes that are alike, exactly what
        `barrier_round_backup` says; the order of classes does not matter. Deterministic.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the others.
    """
    number = whole_numbers("counts", counts, minimum=0)
    if number.ndim != 1:
        message = f"counts must have 1 axis, a class per entry, got shape {number.shape}"
        raise ValueError(message)
    total, spare = int(number.sum()), count("backup_workers", backup_workers, minimum=0)
    if not 1 <= total <= MAX_MIXED_WORKERS:
        message = f"counts must add up to 1 to {MAX_MIXED_WORKERS} workers, got {total}"
        raise ValueError(message)
    if spare >= total:
        message = f"backup_workers must be fewer than all {total} workers, got {spare}"
        raise ValueError(message)
    mean, spread = non_negative("compute_s", compute_s, ndim=1), coefficient_of_variation("compute_cv", compute_cv)
    if mean.shape != number.shape or spread.shape not in {(), number.shape}:
        message = (
            f"compute_s and compute_cv must have an entry per class of counts, shape {number.shape}, "
            f"got {mean.shape} and {spread.shape}"
        )
        raise ValueError(message)
    download, exchange = non_negative_scalar("download_s", download_s), non_negative_scalar("exchange_s", exchange_s)

    # Classes that are alike become one, and come in one order: how workers are listed must change nothing.
    rows = np.stack((mean, np.broadcast_to(spread, mean.shape)), axis=1)[number > 0]
    kinds, kind = np.unique(rows, axis=0, return_inverse=True)
    if len(kinds) == 1:
        alike = barrier_round_backup(
            [total],
            download_s=download,
            exchange_s=exchange,
            compute_s=float(kinds[0, 0]),
            compute_cv=float(kinds[0, 1]),
            backup_workers=spare,
        )
        return MixedRound(round_s=float(alike.round_s[0]), slowest_compute_s=float(alike.slowest_compute_s[0]))
    members: IntArray = np.bincount(kind.ravel(), weights=number[number > 0]).astype(np.int64)
    times = np.sort(mixed_times(members, kinds[:, 0], kinds[:, 1]), axis=1)
    ending, last = mean_ending(times, total - spare, exchange)
    return MixedRound(round_s=total * download + ending, slowest_compute_s=last)


def _by_quantiles(
    total: int, awaited: int, exchange_s: float, compute_s: float, compute_cv: float
) -> tuple[float, float]:
    """The same for many workers: c_(i) at the quantile of (i - 1) / W, and the k-th at its mean."""
    last = float(expected_order_statistic_gamma(compute_s, compute_cv, total, awaited))
    shares = np.linspace(0.0, 1.0, _QUANTILE_NODES, endpoint=False)
    waiting = awaited - total * shares
    queued = compute_s * time_quantiles(compute_cv, shares) + waiting * exchange_s
    return max(last + exchange_s, float(queued.max(where=waiting >= 1.0, initial=-math.inf))), last
