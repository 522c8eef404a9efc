"""A linear model with random effects, fitted by expectation-maximisation.

Laird and Ware, "Random-effects models for longitudinal data", Biometrics 38 (1982): y = X w + sum_k Z_k b_k + e, where
the effects b_k of one kind share a variance. What a kind never saw is predicted with that variance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import scipy

__all__ = ["RandomEffects", "fit_random_effects"]

FloatArray = npt.NDArray[np.float64]
ITERATIONS: Final = 200
CLOSE: Final = 1e-3
EXPECTED_WEIGHT: Final = 2.0
"""Effects' worth of weight that an expected standard deviation has beside those that were seen."""


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """Mean and covariance of all weights, the variance of each kind of effect, and that of the rest."""

    mean: FloatArray
    covariance: FloatArray
    variances: FloatArray
    members: npt.NDArray[np.int64]
    """Effects of each kind that were seen."""
    rest: float
    rows: int

    def predict(self, x: FloatArray, unseen: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, variance without the rest, and degrees of freedom of variance and rest, for each row.

        `unseen` (rows x kinds) holds the squared column of an effect that was never seen, else 0. The degrees of
        freedom are those of Satterthwaite, "An approximate distribution of estimates of variance components",
        Biometrics Bulletin 2 (1946).
        """
        coefficient_variance = np.einsum("ij,jk,ik->i", x, self.covariance, x)
        parts = np.column_stack([unseen * self.variances, coefficient_variance + self.rest])
        freedom = np.append(np.maximum(self.members - 1 + EXPECTED_WEIGHT, 1.0), max(self.rows - 1, EXPECTED_WEIGHT))
        variance = parts.sum(axis=1)
        return x @ self.mean, variance - self.rest, variance**2 / (parts**2 / freedom).sum(axis=1)


def fit_random_effects(
    x: FloatArray,
    y: FloatArray,
    kinds: npt.NDArray[np.int64],
    weights: FloatArray,
    weight_sds: FloatArray,
    expected_sds: FloatArray,
    expected_rest: float,
    looked: Callable[[], None] | None = None,
) -> RandomEffects:
    """Weights of the columns `x` that explain `y`.

    Parameters
    ----------
    x : (N, P) columns: first those with a prior mean and spread (`weights`, `weight_sds`), then those of effects.
    y : (N,) what is explained.
    kinds : (P,) kind of effect of each column, -1 for the first ones.
    expected_sds, expected_rest : standard deviations that effects of each kind, and what is left, are expected to have;
        they count as much as two effects of the kind.
    looked : called before every iteration; what it raises ends the fit.
    """
    fixed = weights.size
    centre = np.concatenate([weights, np.zeros(x.shape[1] - fixed)])
    left = y - x @ centre
    gram, moment, square = x.T @ x, x.T @ left, float(left @ left)
    variances: FloatArray = expected_sds**2
    rest = expected_rest**2
    mean: FloatArray = np.zeros(x.shape[1])
    covariance: FloatArray = np.diag(np.append(weight_sds**2, variances[kinds[fixed:]]))
    members = np.bincount(kinds[fixed:], minlength=variances.size)
    if not y.size:
        return RandomEffects(centre, covariance, variances, members, rest, 0)
    for _ in range(ITERATIONS):
        if looked is not None:
            looked()
        prior = np.append(weight_sds**2, variances[kinds[fixed:]])
        covariance = _inverse(gram / rest + np.diag(1.0 / prior))
        mean = covariance @ moment / rest
        squares = (mean**2 + np.diag(covariance))[fixed:]
        second = np.bincount(kinds[fixed:], squares, minlength=variances.size).astype(np.float64)
        updated = (second + EXPECTED_WEIGHT * expected_sds**2) / (members + EXPECTED_WEIGHT)
        misfit = square - 2.0 * mean @ moment + mean @ gram @ mean + float(np.sum(gram * covariance))
        rest = (misfit + EXPECTED_WEIGHT * expected_rest**2) / (y.size + EXPECTED_WEIGHT)
        moved = float(np.abs(np.log(updated / variances)).max(initial=0.0))
        variances = updated
        if moved < CLOSE:
            break
    return RandomEffects(centre + mean, covariance, variances, members, float(rest), int(y.size))


def _inverse(matrix: FloatArray) -> FloatArray:
    """Of a positive definite matrix, by its Cholesky factor: half the work of a general one."""
    factor, failed = scipy.linalg.lapack.dpotrf(matrix, lower=1)
    half, failed_too = scipy.linalg.lapack.dpotri(factor, lower=1)
    if failed or failed_too:
        return np.asarray(np.linalg.inv(matrix), dtype=np.float64)
    lower = np.tril(half)
    return np.asarray(lower + np.tril(lower, -1).T, dtype=np.float64)
