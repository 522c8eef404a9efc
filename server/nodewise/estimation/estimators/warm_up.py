"""Warm-up of estimators, so that the first answers do not wait for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import structlog

from nodewise.domain.errors import NodewiseError
from nodewise.hosting.calls import call, has
from nodewise.hosting.registry import LoadedPlugin
from nodewise.plugin import EstimatorRecord, WarmingEstimator

__all__ = ["warm_up", "warm_up_aside"]

_log = structlog.get_logger(__name__)


def warm_up(estimators: Mapping[str, LoadedPlugin[EstimatorRecord]]) -> None:
    """Warm up every estimator that supports it. If one fails, its first answer is slow; the others are not affected."""
    for name, plugin in estimators.items():
        estimator = plugin.record.estimator
        start_s = time.perf_counter()
        try:
            if not has(plugin, estimator, WarmingEstimator, "warm_up"):
                continue
            call(plugin, estimator, "warm_up", check=lambda _: None)
        except NodewiseError as error:
            _log.warning("warm_up_failed", estimator=name, distribution=plugin.distribution, reason=str(error.reason))
        else:
            _log.info("warmed_up", estimator=name, seconds=round(time.perf_counter() - start_s, 3))


def warm_up_aside(estimators: Mapping[str, LoadedPlugin[EstimatorRecord]]) -> None:
    """Warm up the estimators in hosts without waiting. An estimator that hangs delays only those of the same host."""
    homes: dict[str, dict[str, LoadedPlugin[EstimatorRecord]]] = {}
    for name, plugin in estimators.items():
        if plugin.mode == "process":
            homes.setdefault(plugin.distribution, {})[name] = plugin
    for home in homes.values():
        threading.Thread(target=warm_up, args=(home,), name="nodewise-warming", daemon=True).start()
