"""How long a task takes on each of its candidates, for SkyPilot's optimizer."""

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
"""What SkyPilot assumes where a task has no estimator."""
LAST_SECONDS: Final = 10 * 365 * 24 * 3600
"""Of what does not fit into memory or cannot be predicted: behind everything that can."""
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
    """What `task.set_time_estimator` takes: seconds that the work left takes on a candidate, on `task.num_nodes` nodes.

    All candidates of the task are asked about in one call, and what was told holds for a minute. Nothing is raised:
    without an answer each takes SkyPilot's default of one hour, and the log says why.

    Args:
        task: its resources and number of nodes are read when the optimizer asks.
        profile_id: the job.
        steps: optimizer steps left, where the global batch is the same on all candidates.
        samples: left to train on; either these or steps. The batch must be known, by `columns` or by the evidence.
        adviser: who asks; None = one by NODEWISE_SERVER.
        columns: what `configurations` takes besides, such as `{"global_batch_samples": 2048}`.
        devices: Nodewise's device by the accelerator's name, above `DEVICES`.
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

    # A function: SkyPilot copies tasks with what they hold, and a connection cannot be copied.
    def estimate(resources: Any) -> int:
        try:
            return asks.seconds(resources)
        except Exception as error:  # noqa: BLE001  # whatever is broken here, SkyPilot goes on
            logger.warning("%s: taken as one hour: %s: %s", resources, type(error).__name__, error)
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
        self._told: dict[Candidate, int] = {}
        self._told_at = 0.0

    def seconds(self, resources: Any) -> int:
        candidate = candidate_of(resources)
        if candidate is None:
            logger.warning("Nodewise is not asked about %s: it has no accelerators; taken as one hour", resources)
            return DEFAULT_SECONDS
        nodes = int(self._task.num_nodes)
        asked_nodes, asked = self._asked
        if nodes != asked_nodes or candidate not in asked or time.monotonic() - self._told_at > _KEPT_SECONDS:
            every = frozenset({candidate, *candidates_of(self._task)})
            self._told = self._ask(nodes, sorted(every))
            self._asked, self._told_at = (nodes, every), time.monotonic()
        return self._told.get(candidate, DEFAULT_SECONDS)

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
        answer = self._adviser.ask(lambda client: client.predict(request))
        if isinstance(answer, NoAnswer):
            logger.warning("Nodewise does not answer, every candidate is taken as one hour: %s", answer)
            return {}
        told: dict[Candidate, int] = {}
        for candidate, row in zip(candidates, answer, strict=True):
            seconds = _row_seconds(row, *self._work)
            if seconds is not None:
                told[candidate] = max(1, round(seconds))
            elif row.excess_memory_bytes or any(each.answered for each in answer):
                logger.warning("%s: put last, %s", named(nodes, candidate), why_not(row))
                told[candidate] = LAST_SECONDS
        if not told:
            logger.warning("Nodewise can predict none of the candidates, each is taken as one hour: %s", why_not(row))
        return told


def _row_seconds(row: Prediction, steps: float | None, samples: float | None) -> float | None:
    per_second = row.steps_per_second if samples is None else row.samples_per_second
    work = steps if samples is None else samples
    if not row.answered or row.excess_memory_bytes or not per_second or work is None:
        return None
    return work / per_second + (row.once_seconds or 0.0)
