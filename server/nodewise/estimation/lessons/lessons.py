"""Lessons: what was learned of estimators so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise.estimation.lessons.calibration import UNTRIED, Calibration
from nodewise.hosting.registry import Loaded
from nodewise.plugin import EstimatorRecord, Prior

__all__ = ["Lessons"]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Priors and calibrations by estimator; empty = nothing. Replaced as a whole, so that no answer mixes two."""

    priors: Mapping[str, Prior] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)

    def calibration(self, estimator: str) -> Calibration:
        """How far off an estimator was where it was tried."""
        return self.calibrations.get(estimator, UNTRIED)

    def version(self, loaded: Loaded[EstimatorRecord]) -> tuple[str, str]:
        """What an estimator's predictions depend on besides profile, question and calibration: itself and its prior."""
        prior = self.priors.get(loaded.record.name)
        return loaded.record.version, prior.prior_id if prior else ""
