"""Trials of a tuner: what they measured becomes evidence, and one that cannot finish in time is known early.

Time alone is judged, never accuracy: which trial learns best is the tuner's to find out.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from nodewise_client import Prediction, PredictRequest, ProfileContent, configurations, observations, profile_source
from nodewise_integrations.advice import Adviser, NoAdvice, NoAnswer

__all__ = ["Deadline", "Expected", "TrialTimes"]

_FEWEST_STEPS: Final = 10
"""Before so many a pace says little: caches are cold, and devices warm up."""
_KEPT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Expected:
    """How many steps a trial may do in a second, at best."""

    most_steps_per_second: float
    """The upper bound of the prediction, the prediction itself where there is no interval."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Work and time of one trial."""

    steps: float
    seconds: float

    def cannot_be_met(self, expected: Expected | NoAnswer, *, done: float, elapsed_seconds: float) -> str:
        """Why not, for people; empty = it can, or nobody knows.

        It cannot where both the upper bound of what was predicted and the trial's own pace until now are too slow.
        Without a prediction nothing is said: tuning then goes on as it would without Nodewise.
        """
        if isinstance(expected, NoAnswer):
            return ""
        own = done / elapsed_seconds if done >= _FEWEST_STEPS and elapsed_seconds > 0 else 0.0
        fastest = max(own, expected.most_steps_per_second)
        if fastest <= 0:
            return ""
        needed_seconds = elapsed_seconds + max(0.0, self.steps - done) / fastest
        if needed_seconds <= self.seconds:
            return ""
        needs = f"{self.steps:g} steps take {needed_seconds:.4g} s at {fastest:.4g} steps/s"
        return f"{needs}, the deadline is {self.seconds:g} s"


class TrialTimes:
    """Asks and tells for the trials of one study. Threads may share it.

    Args:
        profile_id: the job; its configurations are told apart by their columns.
        adviser: who asks; None = one by NODEWISE_SERVER.
        user_agent: the tuner.
    """

    def __init__(self, profile_id: str, adviser: Adviser | None, *, user_agent: str) -> None:
        self._profile_id: Final = profile_id
        self._adviser: Final = adviser or Adviser(user_agent=user_agent)
        self._source: Final = user_agent
        self._lock: Final = threading.Lock()
        self._told: dict[str, tuple[float, Expected | NoAnswer]] = {}

    def expected(self, columns: Mapping[str, Any]) -> Expected | NoAnswer:
        """How fast one configuration may be; what was told holds for a minute."""
        key = repr(sorted(columns.items()))
        with self._lock:
            at_seconds, kept = self._told.get(key, (0.0, None))
            if kept is not None and time.monotonic() - at_seconds < _KEPT_SECONDS:
                return kept
        answer = self._adviser.ask(
            lambda client: client.predict(
                PredictRequest(profile=profile_source(self._profile_id), configurations=configurations(**columns))
            )
        )
        told = answer if isinstance(answer, NoAnswer) else _expected(answer[0])
        with self._lock:
            # Refusals are not kept: what the trials measure meanwhile may be what was missing.
            if isinstance(told, Expected):
                self._told[key] = (time.monotonic(), told)
        return told

    def measured(
        self, study: str, trial: str, columns: Mapping[str, Any], *, steps: float, seconds: float
    ) -> NoAnswer | None:
        """Add what a trial measured to the profile; the same trial again changes nothing. A few steps are not told."""
        if steps < _FEWEST_STEPS or seconds <= 0:
            return None

        def content() -> ProfileContent:
            return ProfileContent(
                observations=observations(
                    configurations=configurations(**columns),
                    steps_per_second=steps / seconds,
                    steps_counts=int(steps),
                    measured_at_unix_seconds=time.time(),
                )
            )

        digest = hashlib.sha256(f"{study}\n{trial}".encode()).hexdigest()[:24]
        told = self._adviser.append(self._profile_id, content, request_id=f"{self._source}-{digest}")
        return told if isinstance(told, NoAnswer) else None


def _expected(row: Prediction) -> Expected | NoAnswer:
    if not row.answered:
        problem = None if row.refusal is None else row.refusal.problem
        return NoAnswer(NoAdvice.REFUSED, "not predicted" if problem is None else problem.message)
    return Expected(row.upper_steps_per_second or row.steps_per_second or 0.0)
