"""What answers keep that outlives a generation of plugins: fitted models and trials of whatever did not change."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from nodewise.estimation.choice.chooser import KEPT_TRIALS
from nodewise.estimation.fit.fitted import Fitted, ModelKey
from nodewise.estimation.lessons.trials import Trial
from nodewise.ports.cache import LruCache

__all__ = ["Kept"]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Caches that several :class:`Answers` may share, since their keys say whose code made what they hold.

    ``built_on`` as in :class:`Provenance`.
    """

    models: LruCache[ModelKey, Fitted]
    trials: LruCache[tuple[object, ...], tuple[Trial, ...]] = field(default_factory=lambda: LruCache(KEPT_TRIALS))
    built_on: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, capacity: int) -> Kept:
        """Empty caches, for so many models."""
        return cls(LruCache(capacity))

    def drop_others(self, origins: Set[str]) -> None:
        """Forget what other code made than that of these origins: nobody will ask for it again."""
        gone = [origin for origin in list(self.built_on) if origin not in origins]
        for origin in gone:
            self.built_on.pop(origin, None)
        self.models.drop(lambda key: not any(key.provenance.startswith(origin) for origin in origins))
        self.trials.drop(lambda key: not any(str(key[-1]).startswith(origin) for origin in origins))
