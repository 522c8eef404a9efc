"""One fixed grid on which expectations of sample statistics are integrated, in normal scores.

A time of quantile function Q is Q(Phi(z)) at the normal score z, Phi being the standard normal distribution. Densities
of extremes are smooth in z and fall off like a normal density at both ends. There the trapezoidal rule converges
exponentially (L. N. Trefethen and J. A. C. Weideman, SIAM Review 56(3), 2014), so one grid serves every law and every
spread; only the quantiles of the gamma law are dear, and they are remembered per coefficient of variation.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import scipy

from nodewise_laws._checks import FloatArray, freeze

STEP: Final = 0.1
_LOWEST_Z: Final = -8.5
_HIGHEST_Z: Final = 12.5
# Below this spread the gamma law differs from the normal one by less than 1e-9 of the mean.
_NEARLY_CONSTANT_CV: Final = 1e-5


@lru_cache(maxsize=1)
def grid() -> FloatArray:
    """Return the fixed nodes z."""
    steps = round((_HIGHEST_Z - _LOWEST_Z) / STEP)
    return freeze(np.asarray(_LOWEST_Z + STEP * np.arange(steps + 1), dtype=np.float64))


@lru_cache(maxsize=1)
def log_weights() -> tuple[FloatArray, FloatArray]:
    """Return log(step phi(z)) and log Phi(z) at the nodes."""
    nodes = grid()
    log_density = math.log(STEP) - 0.5 * math.log(2.0 * math.pi) - 0.5 * nodes**2
    return freeze(log_density), freeze(np.asarray(scipy.special.log_ndtr(nodes)))


@lru_cache(maxsize=1024)
def gamma_quantiles(cv: float) -> FloatArray:
    """(z,) quantiles Q(Phi(z)) of the gamma law of mean 1 and the given spread."""
    return freeze(gamma_quantiles_at(cv, grid()))


def gamma_quantiles_at(cv: float, nodes: FloatArray) -> FloatArray:
    """(z,) the same at any normal scores."""
    if cv < _NEARLY_CONSTANT_CV:
        return 1.0 + cv * nodes
    shape = 1.0 / cv**2
    # Each half takes the tail probability that is small there, which keeps all its digits.
    lower = scipy.special.gammaincinv(shape, scipy.special.ndtr(np.minimum(nodes, 0.0)))
    upper = scipy.special.gammainccinv(shape, scipy.special.ndtr(-np.maximum(nodes, 0.0)))
    return np.asarray(np.where(nodes < 0.0, lower, upper) / shape)
