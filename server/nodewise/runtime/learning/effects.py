"""Effects of lessons: scores of estimators with and without them, on later observations."""

from __future__ import annotations

from typing import Final

from nodewise.domain.namespaces import namespace_of
from nodewise.domain.scores import ScoreSums
from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.question import AUTO
from nodewise.ports.cache import LruCache

__all__ = ["Effects"]

KEPT: Final = 10_000
"""Most pairs of a namespace and an estimator; those scored or read least recently are dropped first."""


class Effects:
    """Sums of scores with and without a namespace's lessons, since the process began. One thread adds, many read."""

    def __init__(self) -> None:
        self._sums: LruCache[tuple[str, str], tuple[ScoreSums, ScoreSums]] = LruCache(KEPT)

    def add(self, profile_id: str, estimator: str, with_lessons: ScoreSums, without: ScoreSums) -> None:
        """Add the scores of a commit, if both cover the same observations."""
        if with_lessons.observations != without.observations or not without.observations:
            return
        key = (namespace_of(profile_id), estimator)
        before = self._sums.get(key) or (ScoreSums(), ScoreSums())
        self._sums.put(key, (before[0] + with_lessons, before[1] + without))

    def of(self, namespace: str, estimator: str) -> tuple[ScoreSums, ScoreSums] | None:
        """Return the sums with lessons and without; None = nothing was scored."""
        return self._sums.get((namespace, estimator))

    @staticmethod
    def differ(answers: Answers, profile_id: str, estimator: str) -> bool:
        """Whether an estimator's answers about the profile may differ from those about an unstored one."""
        common, own = answers.teachings.common, answers.teachings.of(profile_id)
        if own is common:
            return False
        if estimator == AUTO or own.others:
            return True
        plugin = answers.registry.estimators[estimator]
        calibrations = {each.calibration(estimator).calibration_id for each in (own, common)}
        return own.version(plugin) != common.version(plugin) or len(calibrations) > 1
