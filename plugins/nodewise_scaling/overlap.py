"""The other hypothesis of a step: exchange hides behind compute, and what is left are fixed seconds and samples.

::

    ln T(m, W) = ln T_L + ln(f + (1 - f) m / m_L) + h ln(W / W_L) + residual

m samples of one worker in a step, over all micro-steps and in fractions; W workers; m_L and W_L the most of each that
was measured, T_L the step there. f is the share of fixed seconds, c = f T_L: launches, updates, the exchange that is
never hidden. They follow the arithmetic of the step, which is its seconds times the device's peak::

    ln c = alpha + beta ln(T_L P / P_A100) + deviation x t(4)

A model of more arithmetic has more layers to launch and more gradients to exchange, but a faster device does neither
sooner: so the exponent of the peak is that of the seconds. Fitted apart they agree (research/overlapped_law.md).
h is what steps grow with workers where nothing else changes. The residual is near in error where configurations are
near, as the form's is.

f is summed over a grid, everything else in closed form: linear and Gaussian given f (C. E. Rasmussen and C. K. I.
Williams, "Gaussian Processes for Machine Learning", MIT Press 2006, section 2.7).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import Floats
from nodewise_scaling.fitting import LARGEST_CENTRES, student_log_density, whitened_by
from nodewise_scaling.points import REPEATS, Points
from nodewise_scaling.residual import RESIDUAL_SD, centres_of

__all__ = ["LAW", "NOISE_SD", "REFERENCE_PEAK_FLOPS_PER_S", "Law", "OverlapFit", "fit_overlap"]

REFERENCE_PEAK_FLOPS_PER_S: Final = 312e12
"""16-bit peak of an A100, at which the law is stated."""

UNKNOWN_PEAK_LOG_SD: Final = 1.0
"""Standard deviation of ln of the peak of a device that the catalogue does not know: A30 to GB300 spread as far."""

DEGREES: Final = 4.0
"""Degrees of freedom of the law's tails: a kind of model that is unlike the others may say so."""

GROWTH: Final = 0.02
GROWTH_SD: Final = 0.06
"""Mean and standard deviation of h: 64 times the workers take 9 % longer, or none to half as much again."""

NOISE_SD: Final = 0.03
"""Standard deviation of one measured ln T, by hand: published steps are means of whole runs."""

LENGTH: Final = 2.0
"""In ln of samples and of workers: a factor of e^2 in either apart, errors are related by 1 / e. By hand."""

KEPT_SHARES: Final = 8
"""Number of values of f by which predictions represent its posterior."""

LOG_SHARES: Final = np.linspace(np.log(1e-4), np.log(0.99), 80)
LOG_RESTS: Final = np.log1p(-np.exp(LOG_SHARES))
"""Grid of ln f, and ln(1 - f)."""


@dataclass(frozen=True, slots=True)
class Law:
    """The expected ln of the fixed seconds, ``alpha + beta ln(T_L P / P_A100)``, and its deviation."""

    alpha: float
    beta: float
    deviation: float

    def log_density(self, log_fixed_s: Floats, log_largest_s: Floats, log_peak: float | None) -> Floats:
        """Ln of the density of ln c, by ln T_L and ln of the device's peak over that of an A100 (None = not known)."""
        expected = self.alpha + self.beta * (log_largest_s + (log_peak or 0.0))
        deviation = (
            self.deviation if log_peak is not None else np.hypot(self.deviation, self.beta * UNKNOWN_PEAK_LOG_SD)
        )
        return np.asarray(student_log_density((log_fixed_s - expected) / deviation, DEGREES) - np.log(deviation))


LAW: Final = Law(alpha=-3.55, beta=0.61, deviation=0.22)
"""Learned from 45 published families of training runs, kinds of models weighing alike (research/overlapped_law.md)."""


@dataclass(frozen=True, slots=True, eq=False)
class OverlapFit:
    """A job's runs under the hypothesis.

    Attributes
    ----------
    places : (points, 2) float
        ln of samples and of workers of the runs that predictions rest on.
    largest : (2,) float
        ln of m_L and W_L.
    shares, weights : (values,) float
        Values of f that represent its posterior, and their weights.
    levels : (values,) float
        ln T_L by f.
    pulls : (points, values) float
        What the residual adds by f, per unit of its covariance.
    inverse : (points, points) float
        Of the residual's and the noise's covariance.
    log_evidence : float
        Ln of the density of all runs' ln T, T_L of whatever size.
    """

    places: Floats
    largest: Floats
    shares: Floats
    weights: Floats
    levels: Floats
    pulls: Floats
    inverse: Floats
    log_evidence: float

    def predict(self, keys: Floats) -> tuple[Floats, Floats]:
        """(rows,) expected ln T in seconds, and (rows,) variance of the true ln T about it."""
        places = _places(keys)
        across = _covariance(self.places, places, self.largest)
        expected, apart, gain, level = self._expect(places, across)
        left = RESIDUAL_SD**2 + (GROWTH_SD * (places[:, 1] - self.largest[1])) ** 2
        left -= np.einsum("ij,ij->j", gain, across)
        left += level**2
        return expected, np.einsum("ij,ij->j", apart, apart) + np.maximum(left, 0.0)

    def covariance(self, keys: Floats) -> Floats:
        """(rows, rows) covariance of the true ln T about what is expected."""
        places = _places(keys)
        across = _covariance(self.places, places, self.largest)
        _, apart, gain, level = self._expect(places, across)
        left = _covariance(places, places, self.largest) - gain.T @ across + np.outer(level, level)
        return np.asarray(apart.T @ apart + left)

    def _expect(self, places: Floats, across: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """By ``across``, (points, rows): expected ln T, and what it is unsure by.

        Returns
        -------
        (rows,) float
            Expected ln T.
        (values, rows) float
            Deviations by f.
        (points, rows) float
            What the runs weigh by the residual.
        (rows,) float
            What T_L leaves unsure.
        """
        # Rows come last: NumPy's loops are over the last axis, and neither runs nor values of f are many.
        shares = self.shares[:, np.newaxis]
        logs = (1.0 - shares) * np.exp(places[:, 0] - self.largest[0])
        logs += shares
        np.log(logs, out=logs)
        logs += self.pulls.T @ across
        logs += self.levels[:, np.newaxis]
        expected = self.weights @ logs
        gain = self.inverse @ across
        level = (1.0 - gain.sum(axis=0)) / np.sqrt(self.inverse.sum())
        logs -= expected
        logs *= np.sqrt(self.weights)[:, np.newaxis]
        return expected + GROWTH * (places[:, 1] - self.largest[1]), logs, gain, level


def fit_overlap(points: Points, log_peak: float | None, law: Law = LAW) -> OverlapFit:
    """A job's runs under the hypothesis; ``log_peak`` of the device over an A100's, None where it is not known."""
    thinned_points = points.thin()
    places = _places(thinned_points.keys)
    residual = _covariance(places, places, places.max(axis=0))
    posterior = _Posterior.of(thinned_points, places, residual, log_peak, law)
    if len(thinned_points) <= LARGEST_CENTRES:
        return posterior.summed_up(posterior.log_evidence)
    rows = centres_of(residual, LARGEST_CENTRES)
    few = replace(
        thinned_points,
        keys=thinned_points.keys[rows],
        step_s=thinned_points.step_s[rows],
        runs=thinned_points.runs[rows],
    )
    near = _Posterior.of(few, places[rows], residual[np.ix_(rows, rows)], log_peak, law)
    return near.summed_up(posterior.log_evidence)


@dataclass(frozen=True, slots=True, eq=False)
class _Posterior:
    """What some runs say of f: its probabilities, ln T_L for each, and errors whitened by the covariance's factor."""

    places: Floats
    probabilities: Floats
    levels: Floats
    errors: Floats
    lower: Floats
    log_evidence: float

    @staticmethod
    def of(points: Points, places: Floats, residual: Floats, log_peak: float | None, law: Law) -> _Posterior:
        """By the residual's covariance of the runs."""
        largest = places.max(axis=0)
        covariance = residual + np.diag(NOISE_SD**2 / np.minimum(points.runs, REPEATS))
        lower = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        shapes = np.logaddexp(LOG_SHARES, LOG_RESTS + (places[:, :1] - largest[0]))
        apart = (np.log(points.step_s) - GROWTH * (places[:, 1] - largest[1]))[:, np.newaxis] - shapes
        whitened = whitened_by(lower, np.column_stack([apart, np.ones(len(points))]))
        precision = whitened[:, -1] @ whitened[:, -1]
        levels = whitened[:, -1] @ whitened[:, :-1] / precision
        errors = whitened[:, :-1] - np.outer(whitened[:, -1], levels)
        logs = law.log_density(LOG_SHARES + levels, levels, log_peak) - 0.5 * (errors**2).sum(axis=0)
        evidence = scipy.special.logsumexp(logs)
        constant = np.log(LOG_SHARES[1] - LOG_SHARES[0]) - np.log(np.diag(lower)).sum()
        constant -= 0.5 * (np.log(precision) + (len(points) - 1) * np.log(2.0 * np.pi))
        return _Posterior(places, np.exp(logs - evidence), levels, errors, lower, float(evidence + constant))

    def summed_up(self, log_evidence: float) -> OverlapFit:
        """For predictions, which cost as much as there are values of f: an eighth of its probability by its mean."""
        part = (KEPT_SHARES * (np.cumsum(self.probabilities) - 0.5 * self.probabilities)).astype(np.int64)
        kinds = np.unique(part)
        weights = np.where(part == kinds[:, np.newaxis], self.probabilities, 0.0)
        sums = weights.sum(axis=1)
        weights /= sums[:, np.newaxis]
        upper = whitened_by(self.lower, np.eye(len(self.lower)))
        return OverlapFit(
            places=self.places,
            largest=self.places.max(axis=0),
            shares=np.exp(weights @ LOG_SHARES),
            weights=sums,
            levels=weights @ self.levels,
            pulls=upper.T @ (self.errors @ weights.T),
            inverse=upper.T @ upper,
            log_evidence=log_evidence,
        )


def _places(keys: Floats) -> Floats:
    """(rows, 2) ln of samples of a worker in a step, and of workers."""
    _, workers, _, batch, accumulation = keys.T
    return np.asarray(np.log(np.stack([batch * accumulation, workers], axis=1)))


def _covariance(first: Floats, second: Floats, largest: Floats) -> Floats:
    """(rows of first, rows of second): the residual's, and that of h."""
    distance = np.abs(first[:, :1] - second[:, 0])
    distance += np.abs(first[:, 1:] - second[:, 1])
    distance *= -1.0 / LENGTH
    np.exp(distance, out=distance)
    distance *= RESIDUAL_SD**2
    distance += np.outer(GROWTH_SD * (first[:, 1] - largest[1]), GROWTH_SD * (second[:, 1] - largest[1]))
    return np.asarray(distance)
