"""Cache of fitted models and trials that outlives a generation of plugins, for the code that did not change."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from nodewise.estimation.fit.fitted_model import FittedModel, ModelKey
from nodewise.estimation.lessons.trials import Trial
from nodewise.ports.cache import CacheSpace, LruCache

__all__ = ["AnswerCache"]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCache:
    """Caches that several :class:`Answers` may share: each key names the origin of the code that made the entry.

    ``space`` limits the memory of these caches and of the caches of each ``Answers``. ``built_on``: see
    :class:`Provenance`.
    """

    space: CacheSpace
    models: LruCache[ModelKey, FittedModel]
    trials: LruCache[tuple[object, ...], tuple[Trial, ...]]
    built_on: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, space: CacheSpace) -> AnswerCache:
        """Return empty caches that share the memory limit ``space``."""
        return cls(space, LruCache(space), LruCache(space))

    def drop_others(self, origins: Set[str]) -> None:
        """Drop the entries that were made by code of any other origin: no query will need them again."""
        dropped = [origin for origin in list(self.built_on) if origin not in origins]
        for origin in dropped:
            self.built_on.pop(origin, None)
        self.models.drop(lambda key: not any(key.provenance.startswith(origin) for origin in origins))
        self.trials.drop(lambda key: not any(str(key[-1]).startswith(origin) for origin in origins))
