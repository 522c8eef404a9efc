"""How stale a gradient is in asynchronous training: others' updates between a worker's pull and its push.

If the next pull follows a push at once, W workers that are alike see W - 1 on average, exactly: between two pushes of
one worker every other one pushes once on average. How much it varies depends on what the cycles of two workers do not
share. A queue that all customers wait in, first come first served or sharing its rate among equal transfers, keeps its
customers in order, so it lengthens all cycles and lets none overtake: only compute, and transfers of unequal size,
count.

Approximation (a reconstruction, checked by simulation): cycles T of mean m are independent and gamma-distributed with
coefficient of variation c, and the other workers' phases are uniform. Given the cycle of the worker in question, each
other one's number of pushes in it has mean T / m, so

    Var N = (W-1)^2 c^2 + (W-1) v(c).

v(c), the variance beside that, is 2 c / sqrt(pi) - c^2 for small c: then N differs from 1 by one at most, with
probability E|T - T'| / m of two cycles. It is 1 for exponential cycles, c = 1, whose pushes are a Poisson process; the
term in c^4 joins the two, and beyond it is taken as c^2. The percentile is that of a gamma-like law of skewness 2 c
(E. A. Cornish and R. A. Fisher, Revue de l'Institut international de statistique 5(4), 1938, to second order).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import FloatArray, broadcast, counts, non_negative

__all__ = ["private_cycle_cv", "staleness_deviation", "staleness_p95"]

_NORMAL_P95: Final = 1.6448536269514722
"""95th percentile z of the standard normal law."""

_SKEWNESS_TERM: Final = (_NORMAL_P95**2 - 1.0) / 6.0 * 2.0
"""Cornish and Fisher's first term, (z^2 - 1) / 6 times the skewness, per c: a gamma law's skewness is 2 c."""

_SECOND_TERM: Final = (_NORMAL_P95**3 - 3.0 * _NORMAL_P95) / 24.0 * 6.0 - (
    2.0 * _NORMAL_P95**3 - 5.0 * _NORMAL_P95
) / 36.0 * 4.0
"""Their second, (z^3 - 3 z) / 24 times the excess kurtosis, 6 c^2 for a gamma law, less (2 z^3 - 5 z) / 36 times the
skewness squared, per c^2."""

_DIFFERENCE: Final = 2.0 / math.sqrt(math.pi)
"""E|T - T'| of two independent normal times of deviation 1."""


def private_cycle_cv(
    cycle_s: npt.ArrayLike,
    compute_s: npt.ArrayLike,
    compute_cv: npt.ArrayLike,
    *,
    residence_s: npt.ArrayLike = 0.0,
    service_cv: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Coefficient of variation of the part of a cycle that a worker does not share with those it queues with.

    ::

        c = sqrt( (cv C)^2 + sum_k (cv_k R_k)^2 ) / cycle

    Under processor sharing a residence is about proportional to the customer's own service, so its own variation is
    that of the service, times the mean residence.

    Parameters
    ----------
    cycle_s : (...) mean seconds of a cycle at the population in question, W / X(W), more than 0.
    compute_s : (...) mean seconds of it spent computing.
    compute_cv : (...) coefficient of variation of the compute times.
    residence_s : (..., K) mean seconds of it spent at each queueing station.
    service_cv : (..., K) coefficient of variation of the service asked there, 0 where transfers are of equal size.

    Returns
    -------
    (...) array
        Dimensionless, in the common shape.

    Raises
    ------
    ValueError
        An argument is negative, not finite or does not fit the others, or a cycle has no length.
    """
    cycle, compute = non_negative("cycle_s", cycle_s), non_negative("compute_s", compute_s)
    spread = non_negative("compute_cv", compute_cv)
    residence, service = non_negative("residence_s", residence_s), non_negative("service_cv", service_cv)
    if not np.all(cycle > 1e-300):
        message = f"cycle_s must be more than 0, got {cycle_s!r}"
        raise ValueError(message)
    broadcast(residence_s=residence, service_cv=service)
    queued = np.atleast_1d(residence * service)
    waited = np.sqrt(np.square(queued).sum(axis=-1))
    broadcast(cycle_s=cycle, compute_s=compute, compute_cv=spread, stations=waited)
    return np.asarray(np.hypot(spread * compute, waited) / cycle)


def staleness_deviation(workers: npt.ArrayLike, cycle_cv: npt.ArrayLike) -> FloatArray:
    """Standard deviation of the staleness of W workers that are alike: sqrt((W-1)^2 c^2 + (W-1) v(c)).

    Parameters
    ----------
    workers : (...) whole numbers W of at least 1.
    cycle_cv : (...) coefficient of variation c of what the workers' cycles do not share (see `private_cycle_cv`).

    Returns
    -------
    (...) array
        Updates; 0 for one worker. Nondecreasing in both arguments.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the other.
    """
    number, spread = counts("workers", workers, minimum=1), non_negative("cycle_cv", cycle_cv)
    broadcast(workers=number, cycle_cv=spread)
    below = np.minimum(spread, 1.0)
    own = _DIFFERENCE * below - below**2 + (2.0 - _DIFFERENCE) * below**4
    own = np.where(spread > 1.0, spread**2, own)
    others = number - 1.0
    return np.asarray(np.sqrt(others**2 * spread**2 + others * own))


def staleness_p95(workers: npt.ArrayLike, cycle_cv: npt.ArrayLike) -> FloatArray:
    """95th percentile of the staleness of W workers that are alike; its mean is W - 1.

    Staleness is a whole number; this is not rounded, and the nearest whole number is the estimate of its percentile.
    Simulated (gamma compute times of cv 0.3, processor-sharing stations of constant demands, 40,000 updates) and
    estimated, with c from `private_cycle_cv` and exact mean value analysis:

    ================================  =========  =========  ==========  ==========
    compute; demands (s)              W = 2      W = 4      W = 8       W = 16
    ================================  =========  =========  ==========  ==========
    1; 0.01, 0.01, 0.005              2 / 2.04   5 / 5.21   11 / 11.37  24 / 23.58
    1; 0.1, 0.1, 0.02                 2 / 1.93   5 / 4.88   10 / 10.36  20 / 19.95
    0.3; 0.2, 0.2, 0.05               2 / 1.59   4 / 3.93   8 / 8.16    16 / 16.27
    1; the second, exponential        2 / 2.00   5 / 5.11   11 / 11.30  26 / 25.49
    0.3; the third, exponential       2 / 2.34   6 / 6.41   16 / 15.29  36 / 33.95
    ================================  =========  =========  ==========  ==========

    Without contention it is within 1 % up to 64 workers and c = 1.

    Parameters
    ----------
    workers : (...) whole numbers W of at least 1.
    cycle_cv : (...) coefficient of variation c of what the workers' cycles do not share (see `private_cycle_cv`).

    Returns
    -------
    (...) array
        Updates, at least W - 1; 0 for one worker. Nondecreasing in both arguments.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the other.
    """
    deviation = staleness_deviation(workers, cycle_cv)
    skewed = np.minimum(non_negative("cycle_cv", cycle_cv), 1.0)
    score = _NORMAL_P95 + _SKEWNESS_TERM * skewed + _SECOND_TERM * skewed**2
    return np.asarray(counts("workers", workers, minimum=1) - 1.0 + score * deviation)
