"""Estimated run times of a task on its candidates, for SkyPilot's optimizer."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from nodewise_client import Prediction, PredictRequest, configurations, profile_source
from nodewise_integrations.advice import Adviser, NoAnswer
from nodewise_integrations.skypilot.candidates import (
    TIMEOUT_SECONDS,
    Candidate,
    candidate_of,
    candidates_of,
    device_of,
    named,
    why_not,
)

__all__ = ["time_estimator"]

logger = logging.getLogger(__name__)

DEFAULT_SECONDS: Final = 3600
"""SkyPilot's own assumption for a task without an estimator."""
LAST_SECONDS: Final = 10 * 365 * 24 * 3600
"""Estimate for candidates that do not fit into memory or cannot be predicted, so that they come last."""
_KEPT_SECONDS: Final = 60.0


def time_estimator(
    task: Any,
    profile_id: str,
    *,
    steps: float | None = None,
    samples: float | None = None,
    adviser: Adviser | None = None,
    columns: Mapping[str, Any] | None = None,
    devices: Mapping[str, str] | None = None,
) -> Callable[[Any], int]:
    """Make a function for `task.set_time_estimator`: seconds of the remaining work on `task.num_nodes` nodes.

    One call predicts all candidates of the task, and its answer is cached for a minute. Nothing is raised: without an
    answer the estimate of each candidate is SkyPilot's default of one hour, and the log says why.

    Args:
        task: the task. Its resources and number of nodes are read when the optimizer calls the function.
        profile_id: profile of the job.
        steps: optimizer steps left, if the global batch is the same on all candidates.
        samples: samples left to train on, instead of steps. `columns` or the evidence must state the batch.
        adviser: calls the server; None = one for NODEWISE_SERVER.
        columns: further columns for `configurations`, such as `{"global_batch_samples": 2048}`.
        devices: Nodewise's names of accelerators by SkyPilot's; they override `DEVICES`.
    """
    if (steps is None) == (samples is None):
        raise ValueError("the work left must be given, either as steps or as samples")
    asks = _Estimates(
        task,
        profile_id,
        (steps, samples),
        adviser or Adviser(timeout_seconds=TIMEOUT_SECONDS, user_agent="skypilot"),
        columns or {},
        devices or {},
    )

    # A function, not an object: SkyPilot copies tasks with all their attributes, but connections cannot be copied.
    def estimate(resources: Any) -> int:
        try:
            return asks.seconds(resources)
        except Exception as error:  # noqa: BLE001  # SkyPilot must continue after any error
            logger.warning("%s: one hour is assumed: %s: %s", resources, type(error).__name__, error)
            return DEFAULT_SECONDS

    return estimate


class _Estimates:
    def __init__(
        self,
        task: Any,
        profile_id: str,
        work: tuple[float | None, float | None],
        adviser: Adviser,
        columns: Mapping[str, Any],
        devices: Mapping[str, str],
    ) -> None:
        self._task: Final = task
        self._profile_id: Final = profile_id
        self._work: Final = work
        self._adviser: Final = adviser
        self._columns: Final = columns
        self._devices: Final = devices
        self._asked: tuple[int, frozenset[Candidate]] = (0, frozenset())
        self._cached: dict[Candidate, int] = {}
        self._cached_at = 0.0

    def seconds(self, resources: Any) -> int:
        candidate = candidate_of(resources)
        if candidate is None:
            logger.warning(
                "%s: one hour is assumed, because these resources have no accelerators to predict", resources
            )
            return DEFAULT_SECONDS
        nodes = int(self._task.num_nodes)
        asked_nodes, asked = self._asked
        if nodes != asked_nodes or candidate not in asked or time.monotonic() - self._cached_at > _KEPT_SECONDS:
            every = frozenset({candidate, *candidates_of(self._task)})
            self._cached = self._ask(nodes, sorted(every))
            self._asked, self._cached_at = (nodes, every), time.monotonic()
        return self._cached.get(candidate, DEFAULT_SECONDS)

    def _ask(self, nodes: int, candidates: list[Candidate]) -> dict[Candidate, int]:
        request = PredictRequest(
            profile=profile_source(self._profile_id),
            configurations=configurations(
                **{
                    **self._columns,
                    "nodes": nodes,
                    "workers": [nodes * count for _, count in candidates],
                    "devices": [device_of(name, self._devices) for name, _ in candidates],
                }
            ),
        )
        answer = self._adviser.predict(request)
        if isinstance(answer, NoAnswer):
            logger.warning("one hour is assumed for every candidate, because Nodewise does not answer: %s", answer)
            return {}
        seconds_of: dict[Candidate, int] = {}
        for candidate, row in zip(candidates, answer, strict=True):
            seconds = _row_seconds(row, *self._work)
            if seconds is not None:
                seconds_of[candidate] = max(1, round(seconds))
            elif row.excess_memory_bytes or any(each.answered for each in answer):
                logger.warning("%s: ranked last: %s", named(nodes, candidate), why_not(row))
                seconds_of[candidate] = LAST_SECONDS
        if not seconds_of:
            logger.warning(
                "one hour is assumed for every candidate, because Nodewise can predict none: %s", why_not(row)
            )
        return seconds_of


def _row_seconds(row: Prediction, steps: float | None, samples: float | None) -> float | None:
    per_second = row.steps_per_second if samples is None else row.samples_per_second
    work = steps if samples is None else samples
    if not row.answered or row.excess_memory_bytes or not per_second or work is None:
        return None
    return work / per_second + (row.once_seconds or 0.0)
