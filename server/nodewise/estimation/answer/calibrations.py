"""Calibrate estimators: measure the errors of each estimator on the profiles of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.calibration import Calibration, calibration_of
from nodewise.estimation.lessons.trials import Predict, Trial, trials_at_largest
from nodewise.estimation.weights import ENTRY_BYTES
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue, Prior
from nodewise.ports.cache import CacheSpace, LruCache
from nodewise.ports.footprint import footprint

__all__ = ["calibrations_of"]

Trials = tuple[Trial, ...]

KEPT_BYTES = 1 << 20
"""Cache size in bytes during trials. It is small because each model is used once."""


def calibrations_of(
    registry: Registry,
    profiles: Sequence[Profile],
    *,
    catalogue: Catalogue,
    priors: Mapping[str, Prior],
    look: Callable[[], None] = lambda: None,
    known: LruCache[tuple[str, str, str], Trials] | None = None,
) -> dict[str, Calibration]:
    """Try every estimator on every profile that allows it. Estimators without trials are left out.

    ``look`` is called before each trial; an exception from it ends the calibration. ``known`` caches trials for the
    next call, under origin of the code, prior and profile digest; None = trials are not cached.
    """
    answers = Answers(registry, catalogue=catalogue, priors=priors, space=CacheSpace(KEPT_BYTES))
    provenance = answers.estimators.provenance
    calibrations = {}
    for name in registry.predicting:
        predict, prior = answers.alone(name), priors.get(name)

        def try_estimator(
            profile: Profile, name: str = name, predict: Predict = predict, prior: Prior | None = prior
        ) -> Trials:
            look()
            key = (provenance.of(name), prior.prior_id if prior else "", profile.digest)
            trials = known.get(key) if known is not None and profile.digest else None
            if trials is None:
                trials = trials_at_largest(profile, predict)
                # Trials of an estimator that builds on others depend on their priors too, so they are not cached.
                if known is not None and profile.digest and provenance.of(name) in provenance.origins:
                    known.put(key, trials, ENTRY_BYTES + footprint(trials))
            return trials

        calibration = calibration_of(tuple(trial for profile in profiles for trial in try_estimator(profile)))
        if calibration.jobs:
            calibrations[name] = calibration
    return calibrations
