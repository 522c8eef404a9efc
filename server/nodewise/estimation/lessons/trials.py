"""Trials: an estimator predicts runs that it is not shown, and its errors are recorded.

There are two kinds of trials. One predicts a job's largest scale from its smaller ones, once per job: questions need
the same extrapolation. The other leaves out each scale in turn (leave-one-configuration-out, M. Stone, J. Royal Stat.
Soc. B 36(2), 1974), and gives more trials of one job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, Ints, as_ints, freeze
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import NodewiseError
from nodewise.domain.predictions import Predictions
from nodewise.domain.profile import Observations, Profile

__all__ = ["HeldBack", "Predict", "Trial", "distance_of", "left_out", "trials_at_largest", "trials_left_out"]

Predict = Callable[[Profile, Configurations], Predictions]
"""Predicts configurations from a profile; raises NodewiseError where the estimator refuses."""

Mask = NDArray[np.bool_]

LEAST_DISTANCE: Final = float(np.log(1.25))
"""Least distance, that of measured rows and of rows within a factor of 1.25 of them: spreads are not smaller there."""

LARGEST_LOG_ERROR: Final = 3.0
"""Largest error: a factor of 20. Errors beyond it carry no more information."""

MOST_LEFT_OUT: Final = 2
"""Scales of one job that are left out in turn, the smallest and the largest. Each costs a fit, and with three or six
`auto` answers no table better (docs/accuracy.md)."""

MOST_RUNS: Final = 64
"""Most runs that a trial shows, and predicts. Fits of more take many times as long and rank estimators no better."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Trial:
    """An estimator's errors on runs that were held back together.

    Attributes
    ----------
    sync_mode : SyncMode
        Sync mode of the runs.
    device : str
        Device of most of the runs.
    log_errors : (runs,) float
        ln(predicted / measured) of steps/s, at most LARGEST_LOG_ERROR either way.
    log_spreads : (runs,) float
        Standard deviation of ln(step time) that the estimator stated; 0 = none stated.
    distances : (runs,) float
        Distance from the runs that the estimator was shown, as ``distance_of``.
    """

    sync_mode: SyncMode
    device: str
    log_errors: Floats
    log_spreads: Floats
    distances: Floats

    @property
    def mean_absolute_log_error(self) -> float:
        """Mean of |ln(predicted / measured)|."""
        return float(np.abs(self.log_errors).mean())

    @property
    def stated_log_error(self) -> float:
        """Mean of |ln(predicted / measured)| that the stated deviations imply; 0 = none stated."""
        return float(self.log_spreads.mean() * np.sqrt(2.0 / np.pi)) if self.log_spreads.all() else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class HeldBack:
    """Runs of one sync mode that are held back together, and the job without them.

    All estimators are shown the same objects, so that results derived from them can be cached.
    """

    sync_mode: SyncMode
    shown: Profile
    runs: Observations

    def predict_with(self, predict: Predict) -> Trial | None:
        """Return the errors on the runs held back; None if no runs remain to show, or no row is answered."""
        if not len(self.shown.observations) and not len(self.shown.phase_timings):
            return None
        configurations = self.runs.configurations
        try:
            predictions = predict(self.shown, configurations)
        except NodewiseError:
            return None
        usable = predictions.answered & (self.runs.steps_per_s > 0.0)
        if not usable.any():
            return None
        rate = configurations.cycles_per_step()[usable] / predictions.step_s[usable]
        log_errors = np.log(rate) - np.log(self.runs.steps_per_s[usable])
        devices, counts = np.unique(np.array(configurations.device_names())[usable], return_counts=True)
        return Trial(
            sync_mode=self.sync_mode,
            device=str(devices[counts.argmax()]),
            log_errors=freeze(np.clip(log_errors, -LARGEST_LOG_ERROR, LARGEST_LOG_ERROR)),
            log_spreads=freeze(predictions.log_spread[usable]),
            distances=freeze(distance_of(predictions)[usable]),
        )


def distance_of(predictions: Predictions) -> Floats:
    """Return ln of the factor by which each row lies beyond the evidence, at least LEAST_DISTANCE."""
    return np.asarray(np.log(np.maximum(predictions.extrapolation, np.exp(LEAST_DISTANCE))))


def trials_at_largest(profile: Profile, predict: Predict) -> tuple[Trial, ...]:
    """Predict each sync mode's largest scale from all smaller ones."""
    trials = []
    for mode in SyncMode:
        scales = _scales(profile.observations.configurations, mode)
        if len(scales) > 1:
            trials.append(_held_back(profile, scales[-1], mode).predict_with(predict))
    return tuple(trial for trial in trials if trial is not None)


def trials_left_out(profile: Profile, mode: SyncMode, predict: Predict) -> tuple[Trial | None, ...]:
    """Leave out scales of a sync mode in turn, smallest first; None = a refusal. Empty if there is only one scale."""
    return tuple(runs.predict_with(predict) for runs in left_out(profile, mode))


def left_out(profile: Profile, mode: SyncMode) -> tuple[HeldBack, ...]:
    """Return the scales of a sync mode to hold back in turn, smallest first. Empty if there is only one scale."""
    scales = _scales(profile.observations.configurations, mode)
    if len(scales) < 2:
        return ()
    places = np.unique(np.linspace(0, len(scales) - 1, min(MOST_LEFT_OUT, len(scales))).round().astype(np.int64))
    return tuple(_held_back(profile, scales[index], mode) for index in places)


def _scales(configurations: Configurations, mode: SyncMode) -> list[Mask]:
    """Return masks of one mode's observations by scale: nodes, then workers, servers and device."""
    of_mode = configurations.sync_mode == mode
    if not of_mode.any():
        return []
    scale = ("nodes", "workers", "parameter_servers", "device_index")
    keys = np.stack([getattr(configurations, name) for name in scale], axis=1)
    distinct = np.unique(keys[of_mode], axis=0)
    return [of_mode & np.all(keys == key, axis=1) for key in distinct]


def _held_back(profile: Profile, run_mask: Mask, mode: SyncMode) -> HeldBack:
    observations = profile.observations
    shown, runs = (observations.take(_thin(observations, mask)) for mask in (~run_mask, run_mask))
    return HeldBack(mode, replace(profile, digest="", observations=shown), runs)


def _thin(observations: Observations, mask: Mask) -> Ints:
    """Return at most MOST_RUNS rows of a mask, spread evenly over configurations, whatever their order."""
    rows = np.flatnonzero(mask)
    if len(rows) > MOST_RUNS:
        configurations = observations.configurations
        columns = (
            configurations.batch_per_worker,
            configurations.global_batch,
            configurations.workers,
            configurations.nodes,
        )
        order = np.lexsort((observations.steps_per_s[rows], *(column[rows] for column in columns)))
        places = np.unique(np.linspace(0, len(rows) - 1, MOST_RUNS).round().astype(np.int64))
        rows = np.sort(rows[order[places]])
    return as_ints(rows)
