"""Expected maximum of independent, identically distributed times: how long a barrier waits.

For W workers of distribution function F, E_W = integral from 0 to infinity of 1 - F(t)^W dt. With
t = Q(Phi(z)), where Q is the quantile function and Phi the standard normal distribution, this is

    E_W = integral over z of Q(Phi(z)) W phi(z) Phi(z)^(W-1) dz,

whose integrand is smooth and falls off like a normal density at both ends. There the trapezoidal rule
converges exponentially, so one fixed grid of z serves every law, every spread and every W (see
`_quadrature`). The identity: H. A. David and H. N. Nagaraja, "Order
Statistics", 3rd ed., Wiley 2003, chapter 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special

from nodewise_laws._checks import FloatArray, IntArray, broadcast, counts, non_negative
from nodewise_laws._quadrature import gamma_quantiles, grid, log_weights

__all__ = [
    "MAX_COEFFICIENT_OF_VARIATION",
    "MAX_WORKERS",
    "expected_maximum",
    "expected_maximum_exponential",
    "expected_maximum_gamma",
    "expected_maximum_normal",
]

MAX_WORKERS: Final = 1_000_000
"""Largest number of workers for which the fixed grid is known to hold its accuracy."""
MAX_COEFFICIENT_OF_VARIATION: Final = 10.0
"""Largest spread for which the fixed grid is known to hold its accuracy."""

_PANELS_TO_MEDIAN: Final = 200
_PANELS_BEYOND_MEDIAN: Final = 40


def expected_maximum_gamma(mean_s: npt.ArrayLike, cv: npt.ArrayLike, workers: npt.ArrayLike) -> FloatArray:
    """Expected maximum of `workers` gamma-distributed times.

    Parameters
    ----------
    mean_s : (...) mean of one time in seconds, at least 0.
    cv : (...) coefficient of variation, standard deviation over mean, from 0 to
        `MAX_COEFFICIENT_OF_VARIATION`; 0 means constant times, 1 is the exponential law.
    workers : (...) whole numbers from 1 to `MAX_WORKERS`.

    Returns
    -------
    (...) array
        Seconds, in the common shape of the arguments; relative error below 1e-8.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the others.
    """
    mean, spread, number = _sample(mean_s, cv, workers)
    spreads, spread_index = np.unique(spread, return_inverse=True)
    numbers, number_index = np.unique(number, return_inverse=True)
    quantiles = np.stack([gamma_quantiles(value) for value in spreads.tolist()] or [grid()])
    table = quantiles @ _maximum_weights(numbers).T
    # The table holds each distinct pair once; constant times must come out exactly constant.
    table[: spreads.size][spreads == 0.0] = 1.0
    relative = table[spread_index.reshape(np.shape(spread)), number_index.reshape(np.shape(number))]
    return np.asarray(mean * relative)


def expected_maximum_normal(mean_s: npt.ArrayLike, cv: npt.ArrayLike, workers: npt.ArrayLike) -> FloatArray:
    """Expected maximum of `workers` normally distributed times: mean (1 + cv e_W).

    e_W is the expected maximum of W standard normal variables. A normal time may be negative, so this
    is an approximation for small `cv`; the gamma law is not.

    Parameters
    ----------
    mean_s : (...) mean of one time in seconds, at least 0.
    cv : (...) coefficient of variation, from 0 to `MAX_COEFFICIENT_OF_VARIATION`.
    workers : (...) whole numbers from 1 to `MAX_WORKERS`.

    Returns
    -------
    (...) array
        Seconds, in the common shape of the arguments; relative error below 1e-8.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the others.
    """
    mean, spread, number = _sample(mean_s, cv, workers)
    numbers, index = np.unique(number, return_inverse=True)
    deviations = _maximum_weights(numbers) @ grid()
    deviations[numbers == 1] = 0.0
    return np.asarray(mean * (1.0 + spread * deviations[index.reshape(np.shape(number))]))


def expected_maximum_exponential(mean_s: npt.ArrayLike, workers: npt.ArrayLike) -> FloatArray:
    """Expected maximum of `workers` exponential times: mean times the harmonic number H_W.

    Parameters
    ----------
    mean_s : (...) mean of one time in seconds, at least 0.
    workers : (...) whole numbers from 1 to `MAX_WORKERS`.

    Returns
    -------
    (...) array
        Seconds, in the common shape of the arguments.

    Raises
    ------
    ValueError
        An argument is out of its range, not finite, or does not fit the other.
    """
    mean, _, number = _sample(mean_s, 1.0, workers)
    harmonic = special.digamma(number + 1.0) + np.euler_gamma
    return np.asarray(mean * np.where(number == 1, 1.0, harmonic))


def expected_maximum(cdf: Callable[[float], float], workers: npt.ArrayLike, *, scale_s: float) -> FloatArray:
    """Expected maximum of `workers` non-negative times of any continuous law with a finite mean.

    Adaptive quadrature of 1 - F(t)^W over t from 0 to infinity: a millisecond or more, against
    microseconds for the laws above.

    Parameters
    ----------
    cdf : distribution function F(t) of one time, t in seconds; 0 for negative t.
    workers : (...) whole numbers from 1 to `MAX_WORKERS`.
    scale_s : a time of the order of the mean in seconds, more than 0; where the search begins.

    Returns
    -------
    (...) array
        Seconds, in the shape of `workers`; relative error below 1e-6 for a smooth law.

    Raises
    ------
    ValueError
        An argument is out of its range, or the integral does not settle (no finite mean, or `cdf` is
        not a distribution function).
    """
    # Importing it costs every process a tenth of a second, and only this function needs it.
    from scipy import integrate  # noqa: PLC0415  # only arbitrary laws need it, and it is slow to import

    number = counts("workers", workers, minimum=1, maximum=MAX_WORKERS)
    if not (math.isfinite(scale_s) and scale_s > 0.0):
        message = f"scale_s must be finite and more than 0, got {scale_s!r}"
        raise ValueError(message)
    numbers, index = np.unique(number, return_inverse=True)
    if not numbers.size:
        return np.empty(number.shape)

    def exceeds(time_s: float) -> FloatArray:
        below = float(cdf(time_s))
        if not 0.0 <= below <= 1.0:
            message = f"cdf must return a probability, got {below!r} at {time_s!r} s"
            raise ValueError(message)
        return np.asarray(1.0 - below**numbers)

    # Panels that double in length reach any scale and keep each integrand gentle. Beyond the median the
    # parts must soon come to nothing: a tail too heavy for that has no mean that doubles could resolve.
    total = np.zeros(numbers.shape)
    start, end = 0.0, scale_s
    rising, tail = _PANELS_TO_MEDIAN, _PANELS_BEYOND_MEDIAN
    while rising and tail:
        tolerance_s = 1e-9 * (float(total.min()) or scale_s)
        part, _error = integrate.quad_vec(exceeds, start, end, epsabs=tolerance_s, epsrel=1e-9, norm="max", limit=200)
        total = total + part
        if np.all(exceeds(end) < 0.5):
            tail -= 1
            if np.all(part <= 1e-8 * total):
                return np.asarray(total[index.reshape(number.shape)])
        else:
            rising -= 1
        start, end = end, 2.0 * end
    message = "cdf must have a finite mean: the integral of its upper tail does not settle"
    raise ValueError(message)


def _sample(
    mean_s: npt.ArrayLike, cv: npt.ArrayLike, workers: npt.ArrayLike
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Validate mean, spread and size of a sample."""
    mean, spread = non_negative("mean_s", mean_s), non_negative("cv", cv)
    if np.any(spread > MAX_COEFFICIENT_OF_VARIATION):
        message = f"cv must be at most {MAX_COEFFICIENT_OF_VARIATION}, got {cv!r}"
        raise ValueError(message)
    number = counts("workers", workers, minimum=1, maximum=MAX_WORKERS)
    broadcast(mean_s=mean, cv=spread, workers=number)
    return mean, spread, number


def _maximum_weights(numbers: IntArray) -> FloatArray:
    """(W, z) weights of the maximum of each number of workers: step W phi(z) Phi(z)^(W-1)."""
    log_density, log_below = log_weights()
    exponent = (numbers - 1.0)[:, np.newaxis] * log_below
    exponent += log_density
    exponent += np.log(numbers)[:, np.newaxis]
    return np.asarray(np.exp(exponent, out=exponent))
