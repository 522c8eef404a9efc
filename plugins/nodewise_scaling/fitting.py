"""Fit of the form and its residual to one job's points: maximum a posteriori, robust to single outliers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy

from nodewise.plugin import Floats
from nodewise_scaling.form import Parts, Places, log_steps, parts_of, slopes_of
from nodewise_scaling.parameters import COUNT, LEAST, MOST, NAMES
from nodewise_scaling.points import Points
from nodewise_scaling.residual import RESIDUAL_SD, centres_of, coordinates, covariance

__all__ = ["Bounds", "JobFit", "fit_job", "inverse_of", "student_log_density", "whitened_by"]

Bounds = tuple[Floats, Floats]
"""Least and most of every parameter."""

TAIL_DEGREES: Final = 4.0
"""Degrees of freedom of the prior of each parameter (Student): a job that is unlike the others may say so."""

NOISE_DEGREES: Final = 4.0
"""The same of a measurement's noise: a point that the others contradict counts less."""

ROUNDS: Final = 3
"""Fits, each with the outliers of the one before counted for less."""

STARTS: Final = (0.0, 1.0)
SHOWN: Final = np.array([1.5 if name in ("intra", "inter") else 0.0 for name in NAMES])
"""Where the first fit starts, the prior's mean and away from it: exchange that compute hides has no slope to climb."""

PSEUDO_ROWS: Final = 20.0
"""Rows of expected noise that keep the estimate of a job's own noise near it."""

LARGEST_CENTRES: Final = 32
"""Points that the residual is predicted from: a prediction's cost grows with them."""

_ITERATIONS: Final = 40
_LARGEST_STEP: Final = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class JobFit:
    """A fitted job.

    Attributes
    ----------
    points : Points
    theta, theta_covariance : (parameters,) and (parameters, parameters)
    prior_precision : (parameters,) float
        What the prior weighs in it, for learning.
    centres, weights, precision : arrays
        The residual: its centres, what it adds to ln T and to the derivatives, and by how much it lessens the variance.
    log_evidence : float
        Ln of the density of the points' ln T over the unit, by Laplace's approximation.
    """

    points: Points
    theta: Floats
    theta_covariance: Floats
    prior_precision: Floats
    centres: Floats
    weights: Floats
    precision: Floats
    log_evidence: float = 0.0

    def predict(self, at: Places) -> tuple[Floats, Floats, Floats, Parts]:
        """Logarithm of the step over the job's unit, and what predictions are unsure by.

        Returns
        -------
        (rows,) float
            Expected ln T.
        (parameters, rows) float
            Deviations by each direction of the parameters, scaled to standard deviations.
        (rows,) float
            Variance that the residual leaves.
        Parts
            The form without the residual.
        """
        form, slopes = slopes_of(self.theta, at)
        kernel = covariance(coordinates(at), self.centres)
        near = kernel @ self.weights
        root = np.linalg.cholesky(self.theta_covariance)
        left = RESIDUAL_SD**2 - np.einsum("ij,ij->i", kernel @ self.precision, kernel)
        return form.log_step + near[:, 0], root.T @ (slopes - near[:, 1:].T), np.maximum(left, 0.0), form

    def residual_covariance(self, at: Places) -> Floats:
        """(rows, rows) what the residual leaves unsure."""
        places = coordinates(at)
        kernel = covariance(places, self.centres)
        return np.asarray(covariance(places, places) - kernel @ self.precision @ kernel.T)


def fit_job(all_points: Points, mean: Floats, sd: Floats, *, bounds: Bounds = (LEAST, MOST)) -> JobFit:
    """Fit a job under a prior of independent parameters, within physical bounds.

    A caller that learns a prior from fits passes none: cutting fits off at a bound would shift the prior's mean.
    """
    points = all_points.thin()
    at = points.places(points.keys)
    measured = np.log(points.step_s / points.unit_s)
    places = coordinates(at)
    kernel = covariance(places, places)
    noise = points.noise_variance
    theta = mean.copy()
    lower: Floats = np.eye(len(points))
    for round_ in range(ROUNDS):
        lower = np.asarray(np.linalg.cholesky(kernel + np.diag(noise)), dtype=np.float64)
        starts = [theta] if round_ else [mean + SHOWN * shown for shown in STARTS]
        climbed = [_climb(start, (mean, sd, bounds), at, measured, lower) for start in starts]
        theta = min(climbed, key=lambda each: each[1])[0]
        if round_ + 1 == ROUNDS:
            break
        widened = points.noise_variance * _outlying(measured - log_steps(theta, at), lower)
        if np.allclose(widened, noise, rtol=0.05):
            break
        noise = widened
    form, slopes = slopes_of(theta, at)
    errors = measured - form.log_step
    whitened = whitened_by(lower, np.column_stack([slopes.T, errors]))
    misfit = float(whitened[:, -1] @ whitened[:, -1])
    scale = max((PSEUDO_ROWS + misfit) / (PSEUDO_ROWS + len(points)), 0.5)
    pull = _pull(theta, mean, sd)
    information = whitened[:, :-1].T @ whitened[:, :-1] / scale + np.diag(pull)
    centres, weights, precision = _residual(kernel, noise, places, np.column_stack([errors, slopes.T]))
    tangent = whitened[:, :-1].T @ whitened[:, :-1] + np.diag(pull)
    evidence = (
        student_log_density((theta - mean) / sd, TAIL_DEGREES).sum()
        - np.log(sd).sum()
        - 0.5 * (misfit + np.linalg.slogdet(tangent)[1] + (len(points) - COUNT) * np.log(2.0 * np.pi))
        - np.log(np.diag(lower)).sum()
    )
    return JobFit(points, theta, inverse_of(information), pull, centres, weights, precision, float(evidence))


def _outlying(errors: Floats, lower: Floats) -> Floats:
    """Factor on each point's noise variance by its leave-one-out residual (weights of Student's t)."""
    inverse = scipy.linalg.cho_solve((lower, True), np.eye(len(errors)), check_finite=False)
    squared = (inverse @ errors) ** 2 / np.diag(inverse)
    return np.asarray(np.maximum((NOISE_DEGREES + squared) / (NOISE_DEGREES + 1.0), 1.0) ** 2)


def _pull(theta: Floats, mean: Floats, sd: Floats) -> Floats:
    """Precision of the prior at a place: less in its tails."""
    return np.asarray((TAIL_DEGREES + 1.0) / (TAIL_DEGREES + ((theta - mean) / sd) ** 2) / sd**2)


def whitened_by(lower: Floats, columns: Floats) -> Floats:
    """Columns over the factor of a covariance: of as many independent normal variables."""
    # LAPACK itself: around systems of a few points, of which a fit solves dozens, SciPy's checks are most of the time.
    whitened, singular = scipy.linalg.lapack.dtrtrs(lower.T, columns, lower=0, trans=1)
    if singular:
        raise np.linalg.LinAlgError("the covariance is singular")
    return np.asarray(whitened)


def _climb(
    theta: Floats, limits: tuple[Floats, Floats, Bounds], at: Places, measured: Floats, lower: Floats
) -> tuple[Floats, float]:
    """Levenberg's and Marquardt's steps from `theta`, under a prior's mean and deviation, and within bounds.

    Where they end, and the cost there.
    """
    mean, sd, (least, most) = limits

    def cost(candidate: Floats) -> tuple[float, Parts]:
        form = parts_of(candidate, at)
        errors = whitened_by(lower, measured - form.log_step)
        penalty = (TAIL_DEGREES + 1.0) * np.log1p(((candidate - mean) / sd) ** 2 / TAIL_DEGREES)
        return float(errors @ errors + penalty.sum()), form

    (best, form), damping = cost(theta), 1e-3
    for _ in range(_ITERATIONS):
        _, slopes = slopes_of(theta, at, form)
        whitened = whitened_by(lower, np.column_stack([slopes.T, measured - form.log_step]))
        pull = _pull(theta, mean, sd)
        curvature = whitened[:, :-1].T @ whitened[:, :-1] + np.diag(pull)
        ascent = whitened[:, :-1].T @ whitened[:, -1] + (mean - theta) * pull
        scales = np.diag(curvature)
        stuck = ((theta <= least + 1e-9) & (ascent < 0.0)) | ((theta >= most - 1e-9) & (ascent > 0.0))
        free = ~stuck
        for _ in range(8):
            step, damped = np.zeros(COUNT), curvature.copy()
            np.fill_diagonal(damped, scales + damping * scales)
            step[free] = np.linalg.solve(damped if free.all() else damped[np.ix_(free, free)], ascent[free])
            step = np.minimum(np.maximum(step, -_LARGEST_STEP), _LARGEST_STEP)
            candidate = np.minimum(np.maximum(theta + step, least), most)
            reached, form = cost(candidate)
            if reached <= best:
                break
            damping *= 8.0
        else:
            return theta, best
        theta, damping = candidate, max(damping / 6.0, 1e-6)
        if best - reached < 1e-5 * (1.0 + best):
            return theta, reached
        best = reached
    return theta, best


def _residual(kernel: Floats, noise: Floats, places: Floats, targets: Floats) -> tuple[Floats, Floats, Floats]:
    """Centres, weights of the targets, and precision: all points, or for many a subset of regressors."""
    count = len(noise)
    if count <= LARGEST_CENTRES:
        inverse = inverse_of(kernel + np.diag(noise))
        return places, inverse @ targets, inverse
    rows = centres_of(kernel, LARGEST_CENTRES)
    across, among = kernel[rows], kernel[np.ix_(rows, rows)]
    ridge = np.eye(LARGEST_CENTRES)
    information = across / noise @ across.T + among + 1e-10 * ridge
    weights = np.asarray(np.linalg.solve(information, (across / noise) @ targets), dtype=np.float64)
    precision = inverse_of(among + 1e-8 * ridge) - inverse_of(information)
    return places[rows], weights, precision


def student_log_density(deviations: Floats, degrees: float) -> Floats:
    """Ln of the density of Student's distribution."""
    constant = (
        scipy.special.gammaln(0.5 * (degrees + 1.0))
        - scipy.special.gammaln(0.5 * degrees)
        - 0.5 * np.log(degrees * np.pi)
    )
    return np.asarray(constant - 0.5 * (degrees + 1.0) * np.log1p(deviations**2 / degrees))


def inverse_of(matrix: Floats) -> Floats:
    """Of a square matrix."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
