"""What answers keep that outlives a generation of plugins: fitted models and trials of whatever did not change."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from nodewise.estimation.fit.fitted_model import FittedModel, ModelKey
from nodewise.estimation.lessons.trials import Trial
from nodewise.ports.cache import CacheSpace, LruCache

__all__ = ["AnswerCache"]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCache:
    """Caches that several :class:`Answers` may share, since their keys say whose code made what they hold.

    ``space`` is the room of them all, and of what each keeps for itself; ``built_on`` as in :class:`Provenance`.
    """

    space: CacheSpace
    models: LruCache[ModelKey, FittedModel]
    trials: LruCache[tuple[object, ...], tuple[Trial, ...]]
    built_on: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, space: CacheSpace) -> AnswerCache:
        """Empty caches, in a room of bytes."""
        return cls(space, LruCache(space), LruCache(space))

    def drop_others(self, origins: Set[str]) -> None:
        """Forget what other code made than that of these origins: nobody will ask for it again."""
        dropped = [origin for origin in list(self.built_on) if origin not in origins]
        for origin in dropped:
            self.built_on.pop(origin, None)
        self.models.drop(lambda key: not any(key.provenance.startswith(origin) for origin in origins))
        self.trials.drop(lambda key: not any(str(key[-1]).startswith(origin) for origin in origins))
