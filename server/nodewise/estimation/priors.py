"""Priors of a backtest: what estimators learn from the rows that they may see, of all jobs together."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import structlog

from nodewise.domain.errors import NodewiseError, Reason
from nodewise.domain.profile import Profile
from nodewise.estimation.registry import Loaded, Registry
from nodewise.plugin import EstimatorRecord, LearningEstimator, Prior

__all__ = ["Learned", "learned_from"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What came of learning.

    Attributes
    ----------
    registry : Registry
        The estimators that can be asked: those that failed to learn are left out.
    priors : mapping of estimator to Prior
        Estimators without one answer from each job's own evidence.
    seconds : mapping of estimator to float
        Time that each took.
    failures : mapping of estimator to NodewiseError
        Why estimators were left out.
    """

    registry: Registry
    priors: Mapping[str, Prior]
    seconds: Mapping[str, float]
    failures: Mapping[str, NodewiseError]


def learned_from(registry: Registry, corpus: Sequence[Profile]) -> Learned:
    """Let every estimator that can learn do so. Those that say that the corpus does not suffice go without a prior."""
    priors: dict[str, Prior] = {}
    seconds: dict[str, float] = {}
    failures: dict[str, NodewiseError] = {}
    for name, loaded in registry.estimators.items():
        estimator = loaded.record.estimator
        if not isinstance(estimator, LearningEstimator):
            continue
        started = time.perf_counter()
        try:
            priors[name] = _learned(loaded, estimator, corpus)
        except _NothingLearnedError:
            pass
        except NodewiseError as error:
            failures[name] = error
        seconds[name] = time.perf_counter() - started
    able = {name: loaded for name, loaded in registry.estimators.items() if name not in failures}
    return Learned(
        registry=replace(registry, estimators=MappingProxyType(able)),
        priors=MappingProxyType(priors),
        seconds=MappingProxyType(seconds),
        failures=MappingProxyType(failures),
    )


class _NothingLearnedError(Exception):
    """The estimator says that there is nothing to learn."""


def _learned(loaded: Loaded[EstimatorRecord], estimator: LearningEstimator, corpus: Sequence[Profile]) -> Prior:
    record = loaded.record
    try:
        prior: object = estimator.learn(corpus)
    except NodewiseError as error:
        raise _NothingLearnedError from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  # a plugin's SystemExit must not end the server
        raise _failure(loaded, error) from None
    if not isinstance(prior, Prior):
        raise NodewiseError(
            Reason.ESTIMATOR_INVALID_RESULT,
            f"estimator {record.name!r} learned a {type(prior).__name__} instead of a Prior",
            {"estimator": record.name},
        )
    return prior


def _failure(loaded: Loaded[EstimatorRecord], error: BaseException) -> NodewiseError:
    """An error that names the plugin and keeps the exception's text in the log."""
    record = loaded.record
    _log.error("estimator_failed", estimator=record.name, version=record.version, method="learn", exc_info=error)
    return NodewiseError(
        Reason.ESTIMATOR_FAILED,
        f"estimator {record.name!r} {record.version} of {loaded.distribution} failed in learn",
        {"estimator": record.name, "version": record.version, "distribution": loaded.distribution, "method": "learn"},
    )
