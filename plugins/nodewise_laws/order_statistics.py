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

from typing import Final

import numpy as np
import numpy.typing as npt

from nodewise_laws._checks import (
    MAX_COEFFICIENT_OF_VARIATION,
    FloatArray,
    IntArray,
    broadcast,
    coefficient_of_variation,
    counts,
    non_negative,
)
from nodewise_laws._quadrature import gamma_quantiles, grid, log_weights

__all__ = ["MAX_COEFFICIENT_OF_VARIATION", "MAX_WORKERS", "expected_maximum_gamma", "maximum_cv_gamma"]

MAX_WORKERS: Final = 1_000_000
"""Largest number of workers for which the fixed grid is known to hold its accuracy."""


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
    mean, spread = non_negative("mean_s", mean_s), coefficient_of_variation("cv", cv)
    number = counts("workers", workers, minimum=1, maximum=MAX_WORKERS)
    broadcast(mean_s=mean, cv=spread, workers=number)
    spreads, spread_index = np.unique(spread, return_inverse=True)
    numbers, number_index = np.unique(number, return_inverse=True)
    quantiles = np.stack([gamma_quantiles(value) for value in spreads.tolist()] or [grid()])
    table = quantiles @ _maximum_weights(numbers).T
    # The table holds each distinct pair once; constant times must come out exactly constant.
    table[: spreads.size][spreads == 0.0] = 1.0
    relative = table[spread_index.reshape(np.shape(spread)), number_index.reshape(np.shape(number))]
    return np.asarray(mean * relative)


def maximum_cv_gamma(cv: float, workers: int) -> float:
    """Coefficient of variation of the maximum of `workers` gamma-distributed times.

    Parameters
    ----------
    cv : coefficient of variation of one time, 0 to `MAX_COEFFICIENT_OF_VARIATION`.
    workers : whole, from 1 to `MAX_WORKERS`.

    Raises
    ------
    ValueError
        An argument is out of its range or not finite.
    """
    spread = float(coefficient_of_variation("cv", cv))
    number = counts("workers", [workers], minimum=1, maximum=MAX_WORKERS)
    if spread == 0.0 or number[0] == 1:
        return spread
    quantiles, weights = gamma_quantiles(spread), _maximum_weights(number)[0]
    mean = float(weights @ quantiles)
    return float(np.sqrt(weights @ np.square(quantiles - mean))) / mean


def _maximum_weights(numbers: IntArray) -> FloatArray:
    """(W, z) weights of the maximum of each number of workers: step W phi(z) Phi(z)^(W-1)."""
    log_density, log_below = log_weights()
    exponent = (numbers - 1.0)[:, np.newaxis] * log_below
    exponent += log_density
    exponent += np.log(numbers)[:, np.newaxis]
    return np.asarray(np.exp(exponent, out=exponent))
