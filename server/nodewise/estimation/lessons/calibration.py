"""Calibration: scale an estimator's spreads by its errors in trials.

The runs at a job's largest scale are predicted from those at its smaller scales. Each error is divided by the standard
deviation that the estimator stated; the result is a score. An interval is then as many deviations wide as nine of ten
scores are (split conformal prediction with normalised scores: V. Vovk, A. Gammerman and G. Shafer, "Algorithmic
Learning in a Random World", Springer 2005; J. Lei et al., J. Am. Stat. Assoc. 113(523), 2018). All jobs have the same
weight. A few pseudo-jobs, whose errors agree with the stated spreads, stand for jobs without a trial: without any
trial, the estimator's own spread stays.

An estimator that states no spread gets one in proportion to the row's distance from the evidence, in logarithms. The
proportion follows from scores in the same way; without any trial there is no spread.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

import numpy as np
import scipy

from nodewise.domain.columns import Floats, freeze
from nodewise.domain.predictions import Predictions
from nodewise.estimation.lessons.trials import Trial, distance_of

__all__ = ["UNTRIED", "Calibration", "calibration_of"]

LEVEL: Final = 0.9
"""Coverage at which spreads are calibrated."""

PSEUDO_JOBS: Final = 4.0
"""Number of pseudo-jobs, which are added to the jobs with trials."""

LARGEST_SCORE: Final = 20.0
"""Largest score. A run that is so many deviations off is not of the same job as the others; more says nothing new."""

SCORES_PER_JOB: Final = 32

_SMALLEST_FACTOR: Final = 0.5
_LARGEST_FACTOR: Final = 5.0
"""Largest change of a spread. The limit is needed because trials cover fewer jobs, at smaller scales, than
questions."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Factors for an estimator's spreads.

    Attributes
    ----------
    calibration_id : str
        Derived from the scores; "" = there were no trials.
    factor : float
        Factor for the standard deviation of ln(step time).
    jobs : int
        Number of jobs with trials.
    distance_factor : float
        Standard deviation of ln(step time) per unit of distance, where the estimator states none; 0 = not known.
    trials : tuple of Trial
        The trials.
    """

    calibration_id: str
    factor: float
    jobs: int
    distance_factor: float = 0.0
    trials: tuple[Trial, ...] = field(default=(), compare=False, repr=False)

    def apply(self, predictions: Predictions) -> Predictions:
        """Return the predictions with their spreads multiplied; intervals of simulations are not changed."""
        if predictions.simulated:
            return predictions
        spread = predictions.log_spread
        if self.distance_factor > 0.0:
            unstated = predictions.answered & (spread == 0.0)
            if unstated.any():
                own = self.distance_factor * distance_of(predictions)
                return replace(predictions, log_spread=freeze(np.where(unstated, own, spread * self.factor)))
        if self.factor == 1.0:
            return predictions
        return replace(predictions, log_spread=spread * self.factor)


UNTRIED: Final = Calibration("", 1.0, 0)


def calibration_of(trials: tuple[Trial, ...]) -> Calibration:
    """Derive the factors for an estimator's spreads from its trials."""
    if not trials:
        return UNTRIED
    scores_of_stated = _scores((trial, trial.log_spreads) for trial in trials)
    scores_of_unstated = _scores((trial, np.where(trial.log_spreads > 0.0, 0.0, trial.distances)) for trial in trials)
    digest = hashlib.sha256(
        b"".join(np.round(scores, 6).tobytes() for scores in (*scores_of_stated, *scores_of_unstated))
    )
    factor, distance_factor = 1.0, 0.0
    if scores_of_stated:
        pseudo = (_half_normal(), PSEUDO_JOBS)
        factor = float(np.clip(_quantile(scores_of_stated, pseudo) / _nominal(), _SMALLEST_FACTOR, _LARGEST_FACTOR))
    if scores_of_unstated:
        distance_factor = _quantile(scores_of_unstated) / _nominal()
    return Calibration(digest.hexdigest()[:16], factor, len(trials), distance_factor, trials)


def _scores(trials: Iterable[tuple[Trial, Floats]]) -> list[Floats]:
    """Return each trial's errors over their normalisers, sorted and thinned, without those with a normaliser of 0."""
    quantiles = []
    for trial, normaliser in trials:
        usable = normaliser > 0.0
        if not usable.any():
            continue
        scores = np.sort(np.minimum(np.abs(trial.log_errors[usable]) / normaliser[usable], LARGEST_SCORE))
        if len(scores) > SCORES_PER_JOB:
            scores = scores[np.linspace(0, len(scores) - 1, SCORES_PER_JOB).astype(np.int64)]
        quantiles.append(scores)
    quantiles.sort(key=lambda scores: (len(scores), scores.tolist()))
    return quantiles


def _quantile(scores: Sequence[Floats], pseudo: tuple[Floats, float] | None = None) -> float:
    """Return the weighted quantile of the scores at LEVEL, with equal weight per job.

    ``pseudo`` holds the scores of the pseudo-jobs and their number.
    """
    several = [(scores, 1.0) for scores in scores]
    # Without pseudo-jobs, one more job is added with the worst score: the finite-sample correction.
    several.append(pseudo or (np.array([max(float(scores[-1]) for scores in scores)]), 1.0))
    values = np.concatenate([scores for scores, _ in several])
    weights = np.concatenate([np.full(len(scores), weight / len(scores)) for scores, weight in several])
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(share, LEVEL)), len(values) - 1)])


@lru_cache(maxsize=1)
def _half_normal() -> Floats:
    """Return quantiles of |z| of a standard normal variable."""
    return np.asarray(scipy.special.ndtri(0.5 + 0.5 * (np.arange(200) + 0.5) / 200.0))


def _nominal() -> float:
    """Return half the width, in standard deviations, of a normal variable's central interval that covers LEVEL."""
    return float(scipy.special.ndtri(0.5 + 0.5 * LEVEL))
