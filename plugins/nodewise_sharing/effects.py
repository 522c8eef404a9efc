"""A linear model with random effects of victims and aggressors, fitted by expectation-maximisation.

Laird and Ware, "Random-effects models for longitudinal data", Biometrics 38 (1982): y = X w + sum_k Z_k b_k + e, where
the effects b_k of one kind share a variance. What a kind never saw is predicted with that variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from nodewise.plugin import Floats, Ints

__all__ = ["Effects", "fit_effects"]

ITERATIONS: Final = 200
CLOSE: Final = 1e-3
EXPECTED_SD: Final = 0.05
"""What a standard deviation is expected to be before data, points of share: the spread between repeated runs and
between models of one kind is of some points. It weighs as much as `EXPECTED_WEIGHT` effects."""
EXPECTED_WEIGHT: Final = 2.0


@dataclass(frozen=True, slots=True)
class Effects:
    """What was fitted: means and covariance of the weights, and the variance of each kind of effect and of the rest."""

    mean: Floats
    covariance: Floats
    variances: Floats
    members: Ints
    """Effects of each kind that were seen."""
    rest: float
    rows: int

    def predict(self, x: Floats, unseen: Floats) -> tuple[Floats, Floats, Floats]:
        """Mean, variance and degrees of freedom of the variance, for each row.

        `unseen` (rows x kinds) is 1 where the effect of the row was never seen. The degrees of freedom are those of
        Satterthwaite, "An approximate distribution of estimates of variance components", Biometrics Bulletin 2 (1946).
        """
        known = np.einsum("ij,jk,ik->i", x, self.covariance, x)
        parts = np.column_stack([unseen * self.variances, known + self.rest])
        freedom = np.append(np.maximum(self.members - 1 + EXPECTED_WEIGHT, 1.0), max(self.rows - 1, EXPECTED_WEIGHT))
        variance = parts.sum(axis=1)
        return x @ self.mean, variance, variance**2 / (parts**2 / freedom).sum(axis=1)


def fit_effects(x: Floats, y: Floats, kinds: Ints, weights: Floats, weight_sds: Floats, kinds_count: int) -> Effects:
    """Weights of the columns `x` that explain `y`.

    Parameters
    ----------
    x : (N, P) columns: first those with a prior mean and spread (`weights`, `weight_sds`), then indicators of effects.
    y : (N,) what is explained.
    kinds : (P,) kind of effect of each column, -1 for the first ones.
    kinds_count : number of kinds, those without a column included.
    """
    fixed = weights.size
    centre = np.concatenate([weights, np.zeros(x.shape[1] - fixed)])
    left = y - x @ centre
    gram, moment, square = x.T @ x, x.T @ left, float(left @ left)
    variances, rest = np.full(kinds_count, EXPECTED_SD**2), EXPECTED_SD**2
    prior_square = EXPECTED_WEIGHT * EXPECTED_SD**2
    mean, covariance = np.zeros(x.shape[1]), np.diag(np.append(weight_sds**2, variances[kinds[fixed:]]))
    members = np.bincount(kinds[fixed:], minlength=kinds_count)
    if not y.size:
        return Effects(centre, covariance, variances, members, rest, 0)
    for _ in range(ITERATIONS):
        prior = np.append(weight_sds**2, variances[kinds[fixed:]])
        covariance = np.linalg.inv(gram / rest + np.diag(1.0 / prior))
        mean = covariance @ moment / rest
        second = np.bincount(kinds[fixed:], (mean**2 + np.diag(covariance))[fixed:], minlength=kinds_count)
        updated = (second + prior_square) / (members + EXPECTED_WEIGHT)
        misfit = square - 2.0 * mean @ moment + mean @ gram @ mean + float(np.sum(gram * covariance))
        rest = (misfit + prior_square) / (y.size + EXPECTED_WEIGHT)
        moved = float(np.abs(np.log(updated / variances)).max())
        variances = updated
        if moved < CLOSE:
            break
    return Effects(centre + mean, covariance, variances, members, float(rest), int(y.size))
