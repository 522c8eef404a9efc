"""Estimators and policies for tests: one that answers, and ones that fail in every way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nodewise.plugin import (
    Allocation,
    Assessment,
    Configurations,
    EstimatorRecord,
    Grant,
    Options,
    PolicyRecord,
    Predictions,
    Profile,
    Query,
    RowStatus,
    constant_ints,
    freeze,
)


def answered(configurations: Configurations, step_s: np.ndarray[Any, Any], spread: float = 0.1) -> Predictions:
    """Every row answered with a step time and nothing else."""
    rows = len(configurations)
    return Predictions(
        status=constant_ints(rows, RowStatus.ANSWERED),
        step_s=freeze(step_s.astype(np.float64)),
        log_spread=freeze(np.full(rows, spread)),
        breakdown_s={"compute": freeze(step_s.astype(np.float64))},
        bottlenecks=("compute",),
        bottleneck_index=constant_ints(rows, 0),
        extrapolation=freeze(np.ones(rows)),
    )


class Constant:
    """Takes one second a step, whatever is asked, and does what it is told on the way."""

    def __init__(
        self,
        *,
        assess: Callable[[], Assessment] | None = None,
        fit: Callable[[], None] | None = None,
        predict: Callable[[Configurations], Any] | None = None,
    ) -> None:
        self._assess = assess
        self._fit = fit
        self._predict = predict

    def assess(self, profile: Profile, query: Query) -> Assessment:
        return self._assess() if self._assess else Assessment(evidence=("a constant",), strength=0.01)

    def fit(self, profile: Profile, context: object) -> Constant:
        if self._fit:
            self._fit()
        return self

    def predict(self, configurations: Configurations, options: Options) -> Any:
        if self._predict:
            return self._predict(configurations)
        return answered(configurations, np.ones(len(configurations)))


def record(name: str, estimator: Any) -> EstimatorRecord:
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator)


class Decides:
    """A policy that decides what it is told."""

    def __init__(self, decide: Callable[..., Any]) -> None:
        self._decide = decide

    def decide(self, state: Any, curves: Any, budget: Any) -> Any:
        return self._decide(state, curves, budget)


def policy(name: str, decide: Callable[..., Any]) -> PolicyRecord:
    return PolicyRecord(name=name, version="1.0", description="for tests", policy=Decides(decide))


def nothing(state: Any, curves: Any, budget: Any) -> Allocation:
    """Gives nothing to anyone."""
    return Allocation(grants=tuple(Grant(0) for _ in state.jobs))
