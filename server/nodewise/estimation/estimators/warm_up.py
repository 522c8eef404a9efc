"""Warm-up: what the first answers would wait for happens before there are any."""

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
    """Let every estimator that wants to warm up; one that fails has a slow first answer, and the others theirs."""
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
    """As :func:`warm_up` for those in hosts, without waiting: one that hangs delays nobody but those of its host."""
    homes: dict[str, dict[str, LoadedPlugin[EstimatorRecord]]] = {}
    for name, plugin in estimators.items():
        if plugin.mode == "process":
            homes.setdefault(plugin.distribution, {})[name] = plugin
    for home in homes.values():
        threading.Thread(target=warm_up, args=(home,), name="nodewise-warming", daemon=True).start()
