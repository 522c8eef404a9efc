"""The number of workers that a job should have, among those that a cluster has room for."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Mapping
from typing import Any, Final

from nodewise_client import Knee, Objective, PredictRequest, configurations, objective, profile_source
from nodewise_integrations.advice import Advice, Adviser, NoAnswer

__all__ = ["WorkerCounts"]

logger = logging.getLogger(__name__)

TIMEOUT_SECONDS: Final = 2.0
"""Deadline of a question. Ray's controller does not watch its workers while it waits."""
_KEPT_SECONDS: Final = 30.0


class WorkerCounts:
    """Asks how many workers a job should have. In another process it opens a connection of its own.

    Args:
        profile_id: profile of the job.
        workers_per_node: devices, and thus workers, of a node.
        columns: further columns for `configurations`, such as `{"global_batch_samples": 2048}`.
        rule: the objective; None = the knee: each further node must add at least half the throughput of the first.
        least_gain: relative gain of throughput below which running workers are not restarted.
        target: `host:port`; None = the value of NODEWISE_SERVER in this process.
        timeout_seconds: deadline of each question.
        options: further arguments of `Client`.
    """

    def __init__(
        self,
        profile_id: str,
        *,
        workers_per_node: int = 1,
        columns: Mapping[str, Any] | None = None,
        rule: Objective | None = None,
        least_gain: float = 0.1,
        target: str | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
        **options: Any,
    ) -> None:
        self.profile_id: Final = profile_id
        self._workers_per_node: Final = workers_per_node
        self._columns: Final = dict(columns or {})
        self._rule: Final = rule or objective(Knee(share=0.5))
        self._least_gain: Final = least_gain
        self._target: Final = target or os.environ.get("NODEWISE_SERVER", "")
        self._options: Final = {"timeout_seconds": timeout_seconds, "user_agent": "ray", **options}
        self._adviser: Adviser | None = None
        self._advice: Advice | None = None
        self._asked: tuple[int, int] | None = None
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        # Connections, and times of this machine's clock, are of no use in another process.
        return {**self.__dict__, "_adviser": None, "_advice": None, "_asked": None}

    @property
    def adviser(self) -> Adviser:
        """The adviser of this process."""
        if self._adviser is None:
            self._adviser = Adviser(self._target, **self._options)
        return self._adviser

    def columns_of(self, workers: int) -> dict[str, Any]:
        """Return the configuration of a number of workers, on as few nodes as can hold them."""
        return {**self._columns, "workers": workers, "nodes": math.ceil(workers / self._workers_per_node)}

    def advice(self, fewest: int, most: int) -> Advice | NoAnswer:
        """Ask for the best number of workers in a range."""
        return self.adviser.advise(lambda: self._request(fewest, most))

    def within(self, possible: int, *, fewest: int, most: int, running: int | None = None) -> int:
        """Return how many of the possible workers the job should have.

        If Nodewise does not answer, its last advice holds; if there is none, all possible workers. 0 if the possible
        workers do not fit into memory but more would: Ray then waits for room, as it does below its least number.

        Args:
            possible: number of workers that there is room for.
            fewest: least number of workers that the owner allows.
            most: greatest number of workers that the owner allows.
            running: number of workers that a change would restart; None = none are running.
        """
        advice = self._kept_advice(fewest, most)
        if advice is None:
            return possible
        # Step rates are comparable only if the global batch does not change; they serve where samples/s are not known.
        rates = {
            row.workers: row.samples_per_second or row.steps_per_second or 0.0
            for row in advice.answer
            if row.answered and not row.excess_memory_bytes and row.workers <= possible
        }
        wanted = [count for count in rates if count <= advice.chosen.workers]
        if not wanted:
            too_large = [row for row in advice.answer if row.workers <= possible and row.excess_memory_bytes]
            if not too_large:
                return possible
            logger.warning("%d workers do not fit into memory; waiting for room for more", possible)
            return 0
        best = max(wanted, key=lambda count: (rates[count], -count))
        keeps = running in rates and rates[best] < (1.0 + self._least_gain) * rates[running]
        return running if keeps and running is not None else best

    def _request(self, fewest: int, most: int) -> PredictRequest:
        rows = [self.columns_of(count) for count in range(fewest, most + 1)]
        scale = {name: [row[name] for row in rows] for name in ("workers", "nodes")}
        return PredictRequest(
            profile=profile_source(self.profile_id),
            configurations=configurations(**{**self._columns, **scale}),
            objective=self._rule,
        )

    def _kept_advice(self, fewest: int, most: int) -> Advice | None:
        now = time.monotonic()
        if self._asked == (fewest, most) and now - self._asked_at < _KEPT_SECONDS:
            return self._advice
        advice = self.advice(fewest, most)
        if isinstance(advice, NoAnswer):
            fallback = "all possible workers are used" if self._advice is None else "its last advice holds"
            logger.warning("Nodewise does not answer; %s: %s", fallback, advice)
        else:
            logger.info("Nodewise advises %d workers of %d to %d: %s", advice.chosen.workers, fewest, most, advice.why)
            self._advice = advice
        self._asked, self._asked_at = (fewest, most), now
        return self._advice
