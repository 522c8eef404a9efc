"""Lessons: what was learned about estimators so far, and which questions use it."""

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
    """Priors and calibrations by estimator; empty = nothing was learned.

    Lessons are replaced as a whole, so that no answer mixes two of them.

    ``others`` are lessons learned from the same jobs together with jobs of other owners, one for each group of owners.
    They change answers within bounds (``answer.bounded_influence``). Empty = jobs of others change nothing.
    """

    priors: Mapping[str, Prior] = field(default_factory=dict)
    calibrations: Mapping[str, Calibration] = field(default_factory=dict)
    others: tuple[Lessons, ...] = ()

    def __reduce__(self) -> tuple[type[Lessons], tuple[object, ...]]:
        """Support pickling for worker processes: read-only mappings cannot be pickled directly."""
        return Lessons, (dict(self.priors), dict(self.calibrations), self.others)

    def calibration(self, estimator: str) -> Calibration:
        """Return the calibration of an estimator."""
        return self.calibrations.get(estimator, UNTRIED)

    def version(self, plugin: LoadedPlugin[EstimatorRecord]) -> tuple[str, str]:
        """Return what predictions depend on besides profile, question and calibration: the estimator and its prior."""
        prior = self.priors.get(plugin.record.name)
        return plugin.record.version, prior.prior_id if prior else ""

    def all(self) -> Iterator[Lessons]:
        """Yield these lessons, then those learned together with other owners' jobs."""
        yield self
        yield from self.others


@dataclass(frozen=True, slots=True, eq=False)
class Teachings:
    """Lessons by namespace.

    Attributes
    ----------
    common : Lessons
        For questions about profiles that are not stored, and for namespaces without lessons of their own.
    own : mapping of namespace to Lessons
        For questions about the profiles of a namespace, and for no others.
    asked : set of str
        Namespaces with questions since this object was made.
    """

    common: Lessons = field(default_factory=Lessons)
    own: Mapping[str, Lessons] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)

    def of(self, profile_id: str) -> Lessons:
        """Return the lessons for a question about a profile; ``""`` = a profile that is not stored."""
        if not self.own or not profile_id:
            return self.common
        namespace = namespace_of(profile_id)
        self.asked.add(namespace)
        return self.own.get(namespace, self.common)
