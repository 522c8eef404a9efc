"""Lessons: what was learned of estimators so far, and by whom it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from nodewise.domain.namespaces import namespace_of
from nodewise.estimation.lessons.calibration import UNTRIED, Calibration
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import EstimatorRecord, Prior

__all__ = ["Lessons", "Teachings"]


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Priors and calibrations by estimator; empty = nothing. Replaced as a whole, so that no answer mixes two.

    ``others`` are the same lessons learned together with jobs of other owners, one for each group of them: they move
    answers within bounds (``answer.bounded_influence``). Empty = others move nothing.
    """

    priors: Mapping[str, Prior] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    others: tuple[Lessons, ...] = ()

    def __reduce__(self) -> tuple[type[Lessons], tuple[object, ...]]:
        """For processes that compute: mappings that nobody may change cannot be sent as they are."""
        return Lessons, (dict(self.priors), dict(self.calibrations), self.others)

    def calibration(self, estimator: str) -> Calibration:
        """How far off an estimator was where it was tried."""
        return self.calibrations.get(estimator, UNTRIED)

    def version(self, plugin: LoadedPlugin[EstimatorRecord]) -> tuple[str, str]:
        """What an estimator's predictions depend on besides profile, question and calibration: itself and its prior."""
        prior = self.priors.get(plugin.record.name)
        return plugin.record.version, prior.prior_id if prior else ""

    def all(self) -> Iterator[Lessons]:
        """These, and those together with other owners' jobs."""
        yield self
        yield from self.others


@dataclass(frozen=True, slots=True, eq=False)
class Teachings:
    """Lessons by who uses them.

    Attributes
    ----------
    common : Lessons
        Of questions about profiles that are not stored, and of namespaces without lessons of their own.
    own : mapping of namespace to Lessons
        Of the profiles of a namespace, which nobody else uses.
    asked : set of str
        Namespaces that were asked about since this was made.
    """

    common: Lessons = field(default_factory=Lessons)
    own: Mapping[str, Lessons] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def of(self, profile_id: str) -> Lessons:
        """What a question about a profile is answered with; ``""`` = one that is not stored."""
        if not self.own or not profile_id:
            return self.common
        namespace = namespace_of(profile_id)
        self.asked.add(namespace)
        return self.own.get(namespace, self.common)
