"""Replicas of a split model: where the split stays as it is they scale as workers do, whatever happens inside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nodewise.plugin import Configurations, Floats, Options, Predictions, Refusal, RowRefusal
from nodewise_scaling.model import SettingsModel
from nodewise_scaling.points import MEASUREMENT_LOG_SPREAD, SPLITTING, Split, splits_of

__all__ = ["ScalingModel", "not_known"]


class ScalingModel:
    """Models by how replicas are split; runs of one split say nothing of another."""

    measurement_log_spread = MEASUREMENT_LOG_SPREAD
    """Noise of one measured ln(step)."""

    def __init__(self, models: Mapping[Split, SettingsModel]) -> None:
        self._models = models

    def predict(self, configurations: Configurations, options: Options) -> Predictions:  # noqa: ARG002 - the protocol's
        """Predict every row. A row is refused if it is no all-reduce job, or if too little is known of it."""
        pieces, refusals = [], []
        for split, alike in splits_of(configurations).items():
            rows = np.flatnonzero(alike)
            if split not in self._models:
                refusals.append(RowRefusal(tuple(rows.tolist()), not_known(split, self._models)))
            elif len(rows) == len(configurations):
                return self._models[split].predict(configurations)
            else:
                pieces.append((rows, self._models[split].predict(configurations.take(rows))))
        return Predictions.joined(len(configurations), pieces, refusals=tuple(refusals))

    def log_covariance(self, configurations: Configurations, options: Options) -> Floats:  # noqa: ARG002 - the protocol's
        """(rows, rows) covariance of ln(true step) about the prediction; 0 in rows that are refused."""
        covariance = np.zeros((len(configurations), len(configurations)))
        for split, alike in splits_of(configurations).items():
            if split in self._models:
                rows = np.flatnonzero(alike)
                covariance[np.ix_(rows, rows)] = self._models[split].log_covariance(configurations.take(rows))
        return covariance


def not_known(split: Split, splits: Mapping[Split, object]) -> Refusal:
    """Refusal: no observed run splits its replicas as the row does."""
    names = "; ".join(map(_words, splits)) or "none"
    message = f"no observed run splits its replicas as the row does ({_words(split)}); observed runs have: {names}"
    return Refusal.missing(message, "observations")


def _words(split: Split) -> str:
    parts = [f"{name} {value}" for (name, plain), value in zip(SPLITTING.items(), split, strict=True) if value != plain]
    return ", ".join(parts) or "a whole model for each worker"
