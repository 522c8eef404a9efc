"""Optuna: trials add their measurements to a profile, and end early if they cannot meet their deadline."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from optuna import TrialPruned

from nodewise_integrations.advice import Adviser, NoAnswer
from nodewise_integrations.trials import Deadline, Expected, TrialTimes

__all__ = ["StudyTimes", "TimedTrial"]

logger = logging.getLogger(__name__)

STEPS_PER_SECOND: Final = "nodewise_steps_per_second"
"""Attribute of a trial that holds its speed."""


class TimedTrial:
    """Counts the steps of one trial."""

    def __init__(self, deadline: Deadline | None, expected: Expected | NoAnswer, clock: Callable[[], float]) -> None:
        self._deadline: Final = deadline
        self._expected: Final = expected
        self._clock: Final = clock
        self._began: Final = clock()
        self.steps = 0

    @property
    def elapsed_seconds(self) -> float:
        """Seconds since the trial began."""
        return self._clock() - self._began

    def step(self, count: int = 1) -> None:
        """Record that `count` steps are done. Raises TrialPruned if the deadline cannot be met."""
        self.steps += count
        self.check()

    def check(self) -> None:
        """Raise TrialPruned if the deadline cannot be met."""
        if self._deadline is None:
            return
        why = self._deadline.cannot_be_met(self._expected, done=self.steps, elapsed_seconds=self.elapsed_seconds)
        if why:
            raise TrialPruned(why)


class StudyTimes:
    """Times the trials of a study and adds the times to a profile. No error of Nodewise is raised into the study.

    Args:
        profile_id: profile of the job that the trials train.
        columns: the configuration that all trials share, as arguments of `configurations`.
        adviser: calls the server; None = one for NODEWISE_SERVER.
        clock: monotonic clock, in seconds.
    """

    def __init__(
        self,
        profile_id: str,
        *,
        columns: Mapping[str, Any],
        adviser: Adviser | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._times: Final = TrialTimes(profile_id, adviser, user_agent="optuna")
        self._columns: Final = dict(columns)
        self._clock: Final = clock

    @contextmanager
    def timed(
        self,
        trial: Any,
        *,
        steps: float | None = None,
        deadline_seconds: float | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Iterator[TimedTrial]:
        """Time one trial: `step()` in its loop.

        Args:
            trial: the trial of Optuna.
            steps: total steps of the trial.
            deadline_seconds: seconds from now; None = no deadline.
            columns: columns that differ from the shared ones, such as the batch.
        """
        ran = {**self._columns, **(columns or {})}
        deadline = None if steps is None or deadline_seconds is None else Deadline(steps, deadline_seconds)
        expected: Expected | NoAnswer = Expected(0.0)
        if deadline is not None:
            expected = self._times.expected(ran)
            if isinstance(expected, NoAnswer):
                logger.info("the deadline of trial %d is not checked: %s", trial.number, expected)
        timed = TimedTrial(deadline, expected, self._clock)
        try:
            timed.check()
            yield timed
        finally:
            self._record(trial, ran, timed.steps, timed.elapsed_seconds)

    def _record(self, trial: Any, columns: Mapping[str, Any], steps: int, seconds: float) -> None:
        if steps and seconds > 0:
            trial.set_user_attr(STEPS_PER_SECOND, steps / seconds)
        failed = self._times.measured(trial.study.study_name, str(trial.number), columns, steps=steps, seconds=seconds)
        if failed is not None:
            logger.warning("the times of trial %d are not added to the profile: %s", trial.number, failed)
