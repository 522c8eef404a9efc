"""What a store of profiles teaches: priors of the estimators that learn, and how far off all of them are."""

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
"""What is kept while estimators are tried: each is asked once."""


def calibrations_of(
    registry: Registry,
    profiles: Sequence[Profile],
    *,
    catalogue: Catalogue,
    priors: Mapping[str, Prior],
    look: Callable[[], None] = lambda: None,
    known: LruCache[tuple[str, str, str], Trials] | None = None,
) -> dict[str, Calibration]:
    """Try every estimator on every profile that allows it; those that nothing was tried on are left out.

    Before each try ``look`` is called; what it raises ends them. ``known`` keeps trials for the next time that the same
    estimator, with the same prior, is tried on the same profile; None = there is no next time.
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
                # What builds on others depends on their priors too.
                if known is not None and profile.digest and provenance.of(name) in provenance.origins:
                    known.put(key, trials, ENTRY_BYTES + footprint(trials))
            return trials

        calibration = calibration_of(tuple(trial for profile in profiles for trial in try_estimator(profile)))
        if calibration.jobs:
            calibrations[name] = calibration
    return calibrations
