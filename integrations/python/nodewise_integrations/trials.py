"""Trials of a tuner: their measurements become evidence, and trials that cannot finish in time are detected early.

Only time is judged, never accuracy: the tuner decides which trial learns best.
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
"""With fewer steps a speed says little: caches are cold, and devices are warming up."""
_KEPT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Expected:
    """The highest speed that is expected of a trial."""

    most_steps_per_second: float
    """Upper bound of the predicted steps per second, or the prediction itself if it has no interval."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Work of one trial in steps, and its time limit in seconds."""

    steps: float
    seconds: float

    def cannot_be_met(self, expected: Expected | NoAnswer, *, done: float, elapsed_seconds: float) -> str:
        """Say why the deadline cannot be met; empty = it can be met, or this is not known.

        It cannot be met if both the upper bound of the prediction and the trial's own speed so far are too low.
        Without a prediction the text is empty: tuning then continues as it would without Nodewise.
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
    """Predicts and records the speed of one study's trials. Threads may share it.

    Args:
        profile_id: profile of the job. Its configurations differ in their columns.
        adviser: calls the server; None = one for NODEWISE_SERVER.
        user_agent: name of the tuner.
    """

    def __init__(self, profile_id: str, adviser: Adviser | None, *, user_agent: str) -> None:
        self._profile_id: Final = profile_id
        self._adviser: Final = adviser or Adviser(user_agent=user_agent)
        self._source: Final = user_agent
        self._lock: Final = threading.Lock()
        self._cached: dict[str, tuple[float, Expected | NoAnswer]] = {}

    def expected(self, columns: Mapping[str, Any]) -> Expected | NoAnswer:
        """Return the highest expected speed of one configuration. An answer is cached for a minute."""
        key = repr(sorted(columns.items()))
        with self._lock:
            at_seconds, kept = self._cached.get(key, (0.0, None))
            if kept is not None and time.monotonic() - at_seconds < _KEPT_SECONDS:
                return kept
        answer = self._adviser.predict(
            lambda: PredictRequest(profile=profile_source(self._profile_id), configurations=configurations(**columns))
        )
        expected = answer if isinstance(answer, NoAnswer) else _expected(answer[0])
        with self._lock:
            # Refusals are not cached: the trials may measure the missing evidence meanwhile.
            if isinstance(expected, Expected):
                self._cached[key] = (time.monotonic(), expected)
        return expected

    def measured(
        self, study: str, trial: str, columns: Mapping[str, Any], *, steps: float, seconds: float
    ) -> NoAnswer | None:
        """Add a trial's speed to the profile, unless it did few steps. A second call for a trial changes nothing."""
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
        added = self._adviser.append(self._profile_id, content, request_id=f"{self._source}-{digest}")
        return added if isinstance(added, NoAnswer) else None


def _expected(row: Prediction) -> Expected | NoAnswer:
    if not row.answered:
        problem = None if row.refusal is None else row.refusal.problem
        return NoAnswer(NoAdvice.REFUSED, "not predicted" if problem is None else problem.message)
    return Expected(row.upper_steps_per_second or row.steps_per_second or 0.0)
