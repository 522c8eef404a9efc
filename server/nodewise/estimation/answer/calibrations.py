"""What a store of profiles teaches: priors of the estimators that learn, and how far off all of them are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nodewise.domain.profile import Profile
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.lessons.calibration import Calibration, calibrated
from nodewise.hosting.registry import Registry
from nodewise.plugin import Catalogue, Prior
from nodewise.ports.cache import CacheSpace

__all__ = ["calibrations_of"]

KEPT_BYTES = 1 << 20
"""What is kept while estimators are tried: each is asked once."""


def calibrations_of(
    registry: Registry,
    profiles: Sequence[Profile],
    *,
    catalogue: Catalogue,
    priors: Mapping[str, Prior],
    look: Callable[[], None] = lambda: None,
) -> dict[str, Calibration]:
    """Try every estimator on every profile that allows it; those that nothing was tried on are left out.

    Before each try ``look`` is called; what it raises ends them.
    """

    def looked_at() -> Iterator[Profile]:
        for profile in profiles:
            look()
            yield profile

    answers = Answers(registry, catalogue=catalogue, priors=priors, space=CacheSpace(KEPT_BYTES))
    found = {}
    for name in registry.predicting:
        calibration = calibrated(looked_at(), answers.alone(name))
        if calibration.jobs:
            found[name] = calibration
    return found
