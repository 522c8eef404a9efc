"""Estimators, profiles and registries by hand, for tests of the estimation room."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from nodewise.domain.columns import as_floats, constant_floats, constant_ints
from nodewise.domain.configurations import Configurations, SyncMode
from nodewise.domain.errors import Reason, Refusal
from nodewise.domain.predictions import Notice, Options, Predictions
from nodewise.domain.profile import Observations, Profile
from nodewise.estimation.question import Question, Terms
from nodewise.hosting.registry import LoadedPlugin, Registry
from nodewise.plugin import Assessment, Context, EstimatorRecord, Query


def predictions_of(step_s: Sequence[float], **changes: Any) -> Predictions:
    """Every row answered, with one part and one bottleneck."""
    steps = as_floats(step_s)
    rows = len(steps)
    values: dict[str, Any] = {
        "status": constant_ints(rows, 1),
        "step_s": steps,
        "log_spread": constant_floats(rows, 0.1),
        "breakdown_s": {"compute": steps},
        "bottlenecks": ("compute",),
        "bottleneck_index": constant_ints(rows, 0),
        "extrapolation": constant_floats(rows, 1.0),
    }
    return Predictions(**(values | changes))


def other_than_doubts(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Notices without that what ``Fake`` predicts, and ``profile_of`` holds, grows more than linearly."""
    return tuple(each for each in notices if each.reason != "MORE_THAN_LINEAR")


def profile_of(digest: str = "d1", workers: Sequence[int] = (1, 2), **stated: Any) -> Profile:
    """Observations on one worker per node, as ``Fake`` predicts them; all-reduce and 10 samples per worker."""
    values: dict[str, Any] = {"sync_mode": SyncMode.ALLREDUCE, "batch_per_worker": 10, "device": "V100"} | stated
    configurations = Configurations.of(len(workers), nodes=workers, workers=workers, **values)
    cycles = workers if values["sync_mode"] == SyncMode.ASYNC else [1] * len(workers)
    steps_per_s = as_floats([count * each for count, each in zip(workers, cycles, strict=True)])
    return Profile(digest=digest, observations=Observations.of(configurations, steps_per_s))


class Fake:
    """An estimator whose answers are given; counts how often it is asked and fitted."""

    def __init__(
        self,
        predict: Callable[[Configurations, Options], Any] | None = None,
        *,
        strength: float = 0.5,
        refusal: Refusal | None = None,
        assess: Callable[[Profile, Query], Any] | None = None,
        fit: Callable[[Profile, Context], Any] | None = None,
    ) -> None:
        self._predict = predict or (lambda configurations, _: predictions_of(1.0 / configurations.workers))
        self._strength, self._refusal = strength, refusal
        self._assess, self._fit = assess, fit
        self.assessed, self.fitted = 0, 0

    def assess(self, profile: Profile, query: Query) -> Any:
        self.assessed += 1
        if self._assess is not None:
            return self._assess(profile, query)
        return Assessment(refusal=self._refusal, evidence=("by hand",), strength=self._strength)

    def fit(self, profile: Profile, context: Context) -> Any:
        self.fitted += 1
        return self if self._fit is None else self._fit(profile, context)

    def predict(self, configurations: Configurations, options: Options) -> Any:
        return self._predict(configurations, options)


def refusing(reason: Reason = Reason.EVIDENCE_MISSING, *missing: str) -> Fake:
    return Fake(refusal=Refusal(reason, "not with this", missing))


def record_of(name: str, estimator: Any, version: str = "1.0") -> EstimatorRecord:
    return EstimatorRecord(name=name, version=version, description="by hand", estimator=estimator)


def registry_of(estimators: Mapping[str, Any], mode: str = "inline") -> Registry:
    loaded = {name: LoadedPlugin(record_of(name, fake), "tests 1.0", mode) for name, fake in estimators.items()}
    nothing: Mapping[str, Any] = MappingProxyType({})
    return Registry(estimators=MappingProxyType(loaded), policies=nothing, trace_readers=nothing, diagnosers=nothing)


def question_of(profile: Profile, configurations: Configurations, **more: Any) -> Question:
    """A question with an objective or none, and the terms that are named."""
    objective = more.pop("objective", None)
    return Question(profile=profile, configurations=configurations, objective=objective, terms=Terms(**more))


def asked(*workers: int, **stated: Any) -> Configurations:
    """Configurations on one worker per node, the rest as in the evidence."""
    return Configurations.of(len(workers), nodes=np.array(workers), workers=np.array(workers), **stated)
