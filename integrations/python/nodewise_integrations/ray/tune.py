"""Ray Tune: trials add their measurements to a profile, and stop if they cannot meet their deadline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ray.tune import Callback, Stopper

from nodewise_integrations.advice import Adviser
from nodewise_integrations.trials import Deadline, TrialTimes

__all__ = ["DeadlineStopper", "TrialObservations"]

logger = logging.getLogger(__name__)

Columns = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Computes a trial's columns for `nodewise_client.configurations` from its parameters in Tune."""


class _Asking:
    """The server and the connection of both classes. Tune does not store the connection with its experiment."""

    def __init__(
        self,
        profile_id: str,
        *,
        columns: Columns,
        steps_per_iteration: int = 1,
        target: str | None = None,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._profile_id = profile_id
        self._columns = columns
        self._steps_per_iteration = steps_per_iteration
        self._target = target
        self._timeout_seconds = timeout_seconds
        self._asks: TrialTimes | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_asks": None}

    @property
    def _times(self) -> TrialTimes:
        if self._asks is None:
            adviser = Adviser(self._target, timeout_seconds=self._timeout_seconds, user_agent="ray-tune")
            self._asks = TrialTimes(self._profile_id, adviser, user_agent="ray-tune")
        return self._asks

    def _done(self, result: Mapping[str, Any]) -> tuple[float, float]:
        """Return the steps done, and their seconds."""
        return float(result["training_iteration"] * self._steps_per_iteration), float(result["time_total_s"])


class DeadlineStopper(_Asking, Stopper):  # type: ignore[misc]  # Ray is not installed where types are checked
    """Stops trials that cannot do their steps within their time, for `RunConfig(stop=...)`. It ignores accuracy.

    Args:
        profile_id: profile of the job that the trials train.
        steps: steps of every trial.
        deadline_seconds: seconds that every trial may take from its start.
        options: `columns`, a function of a trial's config; `steps_per_iteration`; `target` and `timeout_seconds`.
    """

    def __init__(self, profile_id: str, *, steps: float, deadline_seconds: float, **options: Any) -> None:
        super().__init__(profile_id, **options)
        self._deadline = Deadline(steps, deadline_seconds)

    def __call__(self, trial_id: str, result: Mapping[str, Any]) -> bool:
        """Return whether to stop the trial."""
        done, seconds = self._done(result)
        expected = self._times.expected(self._columns(result.get("config", {})))
        why = self._deadline.cannot_be_met(expected, done=done, elapsed_seconds=seconds)
        if why:
            logger.info("trial %s is stopped: %s", trial_id, why)
        return bool(why)

    def stop_all(self) -> bool:
        """Return False: each trial has its own deadline."""
        return False


class TrialObservations(_Asking, Callback):  # type: ignore[misc]  # Ray is not installed where types are checked
    """Adds the speed of every finished trial to the profile, for `RunConfig(callbacks=[...])`.

    Args:
        profile_id: profile of the job that the trials train.
        options: `columns`, a function of a trial's config; `steps_per_iteration`; `target` and `timeout_seconds`.
    """

    def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:  # noqa: ARG002  # Ray's signature
        """Record a finished trial."""
        result = trial.last_result or {}
        if "training_iteration" not in result:
            return
        steps, seconds = self._done(result)
        failed = self._times.measured(
            str(trial.experiment_tag or ""), trial.trial_id, self._columns(trial.config), steps=steps, seconds=seconds
        )
        if failed is not None:
            logger.warning("the times of trial %s are not added to the profile: %s", trial.trial_id, failed)
