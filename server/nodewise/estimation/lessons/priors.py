"""Priors of a backtest: estimators learn from the permitted rows of all jobs together."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from nodewise.domain.errors import NodewiseError
from nodewise.domain.profile import Profile
from nodewise.hosting.calls import ImpossibleAnswerError, PluginError, call, has
from nodewise.hosting.registry import Registry
from nodewise.plugin import LearningEstimator, Prior

__all__ = ["LearningResult", "learned_from"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningResult:
    """The result of learning.

    Attributes
    ----------
    registry : Registry
        The estimators that can be used: those that failed to learn are left out.
    priors : mapping of estimator to Prior
        Estimators without a prior answer from each job's own evidence.
    seconds : mapping of estimator to float
        Time that each estimator took, in seconds.
    failures : mapping of estimator to NodewiseError
        Why estimators were left out.
    """

    registry: Registry
    priors: Mapping[str, Prior]
    seconds: Mapping[str, float]
    failures: Mapping[str, NodewiseError]


def learned_from(
    registry: Registry, corpus: Sequence[Profile], look: Callable[[], None] = lambda: None
) -> LearningResult:
    """Let every estimator learn that supports it. Estimators for which the corpus does not suffice get no prior.

    ``look`` is called before each estimator; an error that it raises ends learning.
    """
    priors: dict[str, Prior] = {}
    seconds: dict[str, float] = {}
    failures: dict[str, NodewiseError] = {}
    for name, plugin in registry.estimators.items():
        look()
        estimator = plugin.record.estimator
        start_s = time.perf_counter()
        try:
            if not has(plugin, estimator, LearningEstimator, "learn"):
                continue
            priors[name] = call(plugin, estimator, "learn", corpus, check=_prior)
        except PluginError as error:
            failures[name] = error
        except NodewiseError:
            pass  # the estimator refuses: the corpus does not suffice
        seconds[name] = time.perf_counter() - start_s
    able = {name: plugin for name, plugin in registry.estimators.items() if name not in failures}
    return LearningResult(
        registry=replace(registry, estimators=MappingProxyType(able)),
        priors=MappingProxyType(priors),
        seconds=MappingProxyType(seconds),
        failures=MappingProxyType(failures),
    )


def _prior(answer: Any) -> Prior:
    if not isinstance(answer, Prior):
        raise ImpossibleAnswerError(f"it learned a {type(answer).__name__} instead of a Prior")
    return answer
