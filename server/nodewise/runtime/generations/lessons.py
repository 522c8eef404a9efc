"""What a generation knows of its estimators when it begins: what holds from before, and what its plugins bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType

from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.provenance import Provenance
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.lessons.priors import learned_from
from nodewise.hosting.registry import Loaded, Registry
from nodewise.plugin import EstimatorRecord, Prior
from nodewise.runtime.generations.serving_state import LoadedPlugins

__all__ = ["begun_with", "carried_over", "changed_estimators"]


def begun_with(registry: Registry) -> Teachings:
    """What estimators bring with them that run in the caller's thread: nobody else is waited for at a start.

    What the store teaches is learned later, beside the way of requests.
    """
    inline = _of(registry, lambda name: registry.estimators[name].mode == "inline")
    return Teachings(Lessons(_ShippedPriors(inline)))


class _ShippedPriors(Mapping[str, Prior]):
    """What estimators learn from no profile at all, once somebody asks: a diagnosis does not, and imports none."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    @cached_property
    def _learned(self) -> Mapping[str, Prior]:
        return learned_from(self._registry, ()).priors

    def __getitem__(self, name: str) -> Prior:
        return self._learned[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._learned)

    def __len__(self) -> int:
        return len(self._learned)


def carried_over(plugged: LoadedPlugins, known: Answers) -> Teachings:
    """What was learned of estimators that did not change, and what the others bring with them."""
    changed = changed_estimators(plugged, known)
    fresh = begun_with(_of(plugged.registry, lambda name: name in changed)).common
    kept = {name for name in plugged.registry.estimators if name not in changed}

    def of(lessons: Lessons) -> Lessons:
        return Lessons(
            {**{name: prior for name, prior in lessons.priors.items() if name in kept}, **fresh.priors},
            {name: calibration for name, calibration in lessons.calibrations.items() if name in kept},
            tuple(of(each) for each in lessons.others),
        )

    teachings = known.teachings
    return Teachings(of(teachings.common), {name: of(lessons) for name, lessons in teachings.own.items()})


def changed_estimators(plugged: LoadedPlugins, known: Answers) -> Mapping[str, Loaded[EstimatorRecord]]:
    """The estimators that are not those of other answers, by name."""
    registry = plugged.registry
    # Without what was seen to be built on others: an estimator's own code is asked about here.
    here, there = Provenance(registry, plugged.catalogue, {}), known.estimators
    before = Provenance(there.registry, there.catalogue, {})
    return {
        name: loaded
        for name, loaded in registry.estimators.items()
        if name not in there.registry.estimators or here.of(name) != before.of(name)
    }


def _of(registry: Registry, wanted: Callable[[str], bool]) -> Registry:
    """A registry with some of its estimators alone."""
    kept = {name: loaded for name, loaded in registry.estimators.items() if wanted(name)}
    return replace(registry, estimators=MappingProxyType(kept))
