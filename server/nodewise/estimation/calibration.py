"""Calibration: how far off estimators were where it could be tried, and what that makes of their spreads.

A job whose runs reach several scales is predicted at its largest from the smaller ones, and its errors are counted in
the deviations that the estimator stated: scores. An interval is then as many deviations wide as nine of ten scores
are (split conformal prediction with normalised scores: V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in
a Random World", Springer 2005; J. Lei et al., J. Am. Stat. Assoc. 113(523), 2018). Jobs weigh alike. A few
pseudo-jobs whose errors are as stated stand for the jobs that nobody tried: with none tried, the estimator's own
spread holds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from nodewise.domain.columns import Floats, Ints, as_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Profile

__all__ = ["UNTRIED", "Calibration", "calibrated"]

LEVEL: Final = 0.9
"""Coverage at which spreads are calibrated."""

PSEUDO_JOBS: Final = 4.0
"""Jobs whose errors are as stated, beside those that were tried."""

LARGEST_SCORE: Final = 20.0
"""A run that is so many deviations off is not of the job that the others are of; a larger score says no more."""

SCORES_PER_JOB: Final = 32

_NOMINAL: Final = float(ndtri(0.5 + 0.5 * LEVEL))
_SMALLEST_FACTOR: Final = 0.5
_LARGEST_FACTOR: Final = 5.0
"""What was tried is fewer jobs, at smaller scales, than what is asked: it moves a spread within limits."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What an estimator's spreads are multiplied by.

    Attributes
    ----------
    calibration_id : str
        Derived from the scores; "" = nothing was tried.
    factor : float
        On the standard deviation of ln(step time).
    jobs : int
        Jobs that it was tried on.
    """

    calibration_id: str
    factor: float
    jobs: int

    def applied(self, predictions: Predictions) -> Predictions:
        """Predictions with spreads multiplied; a simulation's interval is its own."""
        if self.factor == 1.0 or predictions.simulated:
            return predictions
        return replace(predictions, log_spread=predictions.log_spread * self.factor)


UNTRIED: Final = Calibration("", 1.0, 0)

Predict = Callable[[Profile, Configurations], Predictions]
"""Predicts configurations from a profile; raises NodewiseError where it cannot."""


def calibrated(profiles: Iterable[Profile], predict: Predict) -> Calibration:
    """Try an estimator on every profile that allows it."""
    tried = [scores for profile in profiles for scores in (_scores(profile, predict),) if len(scores)]
    if not tried:
        return UNTRIED
    tried.sort(key=lambda scores: (len(scores), scores.tolist()))
    digest = hashlib.sha256(b"".join(np.round(scores, 6).tobytes() for scores in tried)).hexdigest()[:16]
    factor = _quantile(tried) / _NOMINAL
    return Calibration(digest, float(np.clip(factor, _SMALLEST_FACTOR, _LARGEST_FACTOR)), len(tried))


def _scores(profile: Profile, predict: Predict) -> Floats:
    """|ln(measured / predicted)| over the stated deviation, of the runs at a job's largest scale."""
    none = np.zeros(0)
    observations = profile.observations
    held = _largest(observations.configurations)
    if not held.any() or (held.all() and not len(profile.phase_timings)):
        return none
    seen = replace(
        profile,
        digest="",
        observations=observations.take(as_ints(np.flatnonzero(~held))),
    )
    asked = observations.take(as_ints(np.flatnonzero(held)))
    try:
        predictions = predict(seen, asked.configurations)
    except NodewiseError:
        return none
    usable = predictions.answered & (predictions.log_spread > 0.0) & (asked.steps_per_s > 0.0)
    cycles = asked.configurations.cycles_per_step()
    step_s = np.where(usable, predictions.step_s, 1.0)
    with np.errstate(divide="ignore"):
        errors = np.abs(np.log(cycles / step_s) - np.log(asked.steps_per_s))[usable]
    scores = np.sort(np.minimum(errors / predictions.log_spread[usable], LARGEST_SCORE))
    if len(scores) <= SCORES_PER_JOB:
        return scores
    return np.asarray(scores[np.linspace(0, len(scores) - 1, SCORES_PER_JOB).astype(np.int64)])


def _largest(configurations: Configurations) -> Ints:
    """Mask of the runs at the largest scale of their mode, where it has a smaller one too."""
    scale = configurations.nodes * 1_000_000 + configurations.workers
    held = np.zeros(len(configurations), dtype=bool)
    for mode in SyncMode:
        rows = configurations.sync_mode == mode
        if rows.any() and scale[rows].min() < scale[rows].max():
            held |= rows & (scale == scale[rows].max())
    return held


def _quantile(tried: Sequence[Floats]) -> float:
    """Weighted quantile of the scores and of the pseudo-jobs' at LEVEL."""
    pseudo = _half_normal()
    values = np.concatenate([*tried, pseudo])
    weights = np.concatenate(
        [
            *(np.full(len(scores), 1.0 / len(scores)) for scores in tried),
            np.full(len(pseudo), PSEUDO_JOBS / len(pseudo)),
        ]
    )
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    return float(values[order][min(int(np.searchsorted(share, LEVEL)), len(values) - 1)])


@lru_cache(maxsize=1)
def _half_normal() -> Floats:
    """Quantiles of |z| of a normal variable."""
    return np.asarray(ndtri(0.5 + 0.5 * (np.arange(200) + 0.5) / 200.0))
