"""Initial lessons of a generation: those of unchanged estimators, and those that its plugins bring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from nodewise.estimation.answer.answers import Answers
from nodewise.estimation.estimators.provenance import Provenance
from nodewise.estimation.lessons.lessons import Lessons, Teachings
from nodewise.estimation.lessons.priors import learned_from
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.plugin import EstimatorRecord, Prior
from nodewise.runtime.generations.serving_state import LoadedPlugins

__all__ = ["carry_over_lessons", "changed_estimators", "inline_lessons"]


def inline_lessons(registry: Registry) -> Teachings:
    """Return the lessons of inline estimators. A start waits for no other plugin.

    Lessons from the store are learned later, in the background.
    """
    inline = _with_estimators(registry, lambda name: registry.estimators[name].mode == "inline")
    return Teachings(Lessons(_ShippedPriors(inline)))


class _ShippedPriors(Mapping[str, Prior]):
    """Priors of the shipped estimators, each imported at its first use: most commands use one or none."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._learned: dict[str, Mapping[str, Prior]] = {}

    def __getitem__(self, name: str) -> Prior:
        if name not in self._learned:
            alone = _with_estimators(self._registry, lambda each: each == name)
            self._learned[name] = learned_from(alone, ()).priors
        return self._learned[name][name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._registry.estimators if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def carry_over_lessons(loaded_plugins: LoadedPlugins, current: Answers) -> Teachings:
    """Return the lessons of unchanged estimators, and the shipped lessons of the others."""
    changed_names = changed_estimators(loaded_plugins, current)
    fresh = inline_lessons(_with_estimators(loaded_plugins.registry, lambda name: name in changed_names)).common
    same = {name for name in loaded_plugins.registry.estimators if name not in changed_names}

    def of(lessons: Lessons) -> Lessons:
        return Lessons(
            {**{name: prior for name, prior in lessons.priors.items() if name in same}, **fresh.priors},
            {name: calibration for name, calibration in lessons.calibrations.items() if name in same},
            tuple(of(each) for each in lessons.others),
        )

    teachings = current.teachings
    return Teachings(of(teachings.common), {name: of(lessons) for name, lessons in teachings.own.items()})


def changed_estimators(loaded_plugins: LoadedPlugins, current: Answers) -> Mapping[str, LoadedPlugin[EstimatorRecord]]:
    """Return the names of estimators that differ from those of other answers."""
    registry = loaded_plugins.registry
    # Without what was seen to be built on others: an estimator's own code is asked about here.
    here, there = Provenance(registry, loaded_plugins.catalogue, {}), current.estimators
    before = Provenance(there.registry, there.catalogue, {})
    return {
        name: plugin
        for name, plugin in registry.estimators.items()
        if name not in there.registry.estimators or here.of(name) != before.of(name)
    }


def _with_estimators(registry: Registry, accept: Callable[[str], bool]) -> Registry:
    """Return a registry with only some of its estimators."""
    estimators = {name: plugin for name, plugin in registry.estimators.items() if accept(name)}
    return replace(registry, estimators=MappingProxyType(estimators))
