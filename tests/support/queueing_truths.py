"""Closed forms and quadratures that laws and simulations are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy import integrate, special, stats

from nodewise.plugin import Floats
from nodewise_queueing.simulator import SimulationResult


def erlang_finite_source(demand_s: float, think_s: float, population: int) -> Floats:
    """Throughput of one queueing station with finitely many sources, for populations 1..n.

    ::

        X(W) = (1 - p0) / D,   1 / p0 = sum over k = 0..W of W! / (W-k)! (D/Z)^k

    p0 is Erlang's loss formula B(W, Z/D); its recursion B(W) = a B(W-1) / (W + a B(W-1)), a = Z/D, gives
    X(W) = W / (W D + Z B(W-1)), which overflows nowhere and subtracts nothing.
    """
    throughput = np.empty(population)
    idle = 1.0
    for number in range(1, population + 1):
        throughput[number - 1] = number / (number * demand_s + think_s * idle)
        idle = think_s * idle / (number * demand_s + think_s * idle)
    return throughput


def expected_maximum(cdf: Callable[[float], float], workers: int, *, scale_s: float = 1.0) -> float:
    """Expected maximum of so many times of any law: adaptive quadrature of 1 - F(t)^W over t from 0 to infinity."""
    total, start, end = 0.0, 0.0, scale_s
    # Panels that double in length reach any scale and keep each integrand gentle.
    for _ in range(60):
        part, _error = integrate.quad(lambda time_s: 1.0 - cdf(time_s) ** workers, start, end, epsrel=1e-10, limit=200)
        total += part
        if cdf(end) > 0.5 and part <= 1e-9 * total:
            break
        start, end = end, 2.0 * end
    return total


def expected_maximum_exponential(workers: object) -> Floats:
    """Expected maximum of exponential times of mean 1: the harmonic number."""
    number = np.asarray(workers)
    return np.asarray(np.where(number == 1, 1.0, special.digamma(number + 1.0) + np.euler_gamma))


def expected_maximum_normal(workers: int) -> float:
    """Expected maximum of so many standard normal variables, by adaptive quadrature."""
    found, _error = integrate.quad(
        lambda z: z * workers * stats.norm.pdf(z) * np.exp((workers - 1) * special.log_ndtr(z)), -12.0, 12.0, limit=200
    )
    return float(found)


def throughput_interval_per_s(result: SimulationResult, confidence: float) -> tuple[float, float]:
    """Confidence interval of a simulated throughput: symmetric for its logarithm, Student's t over the batches."""
    quantile = float(special.stdtrit(result.batches - 1, 0.5 + 0.5 * confidence))
    factor = math.exp(quantile * result.ln_throughput_error)
    return result.throughput_per_s / factor, result.throughput_per_s * factor
