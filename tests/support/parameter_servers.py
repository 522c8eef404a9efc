"""An estimator for tests that takes every column into account, says what it was asked, and has a simulation."""

from __future__ import annotations

import threading
import time
from dataclasses import fields, replace
from typing import Any, Final

import numpy as np

from nodewise.plugin import (
    Assessment,
    Configurations,
    EstimatorRecord,
    Fidelity,
    NodewiseError,
    Options,
    Predictions,
    Profile,
    Query,
    Reason,
    freeze,
)

EVERYTHING: Final = frozenset(field.name for field in fields(Configurations)) | {"groups", "precision"}
SLOW_STEPS: Final = 7_000_000
"""Simulations of so many steps take as long as they may."""


class Telling:
    """Takes as long as its slowest group: one second, times the group's factor, ten times that on a K80."""

    def __init__(self) -> None:
        self.options: list[Options] = []
        self.threads: list[str] = []
        self.ended = threading.Event()

    def assess(self, profile: Profile, query: Query) -> Assessment:
        return Assessment(evidence=("told",), strength=0.01)

    def fit(self, profile: Profile, context: object) -> Telling:
        return self

    def predict(self, configurations: Configurations, options: Options) -> Predictions:
        self.options.append(options)
        self.threads.append(threading.current_thread().name)
        if options.simulated_steps == SLOW_STEPS:
            self._simulate(options)
        step_s = np.array(
            [
                max(
                    group.compute_factor * (10.0 if group.device == "K80" else 1.0)
                    for group in configurations.groups(row)
                )
                for row in range(len(configurations))
            ]
        )
        made: dict[str, Any] = {
            "log_spread": 0.1,
            "once_s": configurations.hybrid_switch_s,
            "extra": {
                "async_step_s": freeze(step_s / 2),
                "change_steps": freeze(-np.ones(len(step_s))),
                "groups_count": np.array([float(len(configurations.groups(row))) for row in range(len(step_s))]),
            },
        }
        found = Predictions.of(freeze(step_s), **made)
        if options.fidelity != Fidelity.SIMULATE:
            return found
        return _simulated(found)

    def _simulate(self, options: Options) -> None:
        assert options.budget is not None
        while options.budget.remaining_s() > 0:
            time.sleep(0.005)
        self.ended.set()
        raise NodewiseError(Reason.DEADLINE_EXCEEDED, "the simulation would not end in time")


def _simulated(found: Predictions) -> Predictions:
    return replace(found, simulated=True, log_spread=freeze(found.log_spread / 10))


def telling_record(estimator: Telling, name: str = "telling") -> EstimatorRecord:
    return EstimatorRecord(name=name, version="1.0", description="for tests", estimator=estimator, columns=EVERYTHING)
