"""Ray Train: the recommended number of workers, and their step times as evidence for the job's profile."""

from __future__ import annotations

import logging
import statistics
import time
from typing import Any, Final, TypeVar

from ray.train import UserCallback

from nodewise_client import ProfileContent, configurations, observations
from nodewise_integrations.advice import NoAnswer
from nodewise_integrations.ray.worker_counts import WorkerCounts

__all__ = ["StepTimes", "scaled"]

logger = logging.getLogger(__name__)

TrainerT = TypeVar("TrainerT")
_HOOK: Final = "_initialize_and_run_controller"


def scaled(trainer: TrainerT, counts: WorkerCounts) -> TrainerT:
    """Let Nodewise choose a trainer's number of workers within `ScalingConfig(num_workers=(least, most))`.

    Ray has no public interface for a scaling policy: `fit()` passes one to the controller by an internal method, which
    is wrapped for this trainer only. If this version of Ray has no such method, or the number of workers is fixed, the
    trainer is not changed and the log says so.
    """
    try:
        from nodewise_integrations.ray.policy import NodewiseScalingPolicy  # noqa: PLC0415  # internal to Ray

        run = getattr(trainer, _HOOK)
        elastic = NodewiseScalingPolicy.__mro__[1]
        elastic._count_possible_workers  # noqa: B018, SLF001  # the overridden method must exist
    except (ImportError, AttributeError) as error:
        logger.warning("Nodewise does not support this version of Ray, which scales without advice: %s", error)
        return trainer

    def advised(**arguments: Any) -> Any:
        policy: Any = arguments.get("scaling_policy")
        if type(policy) is elastic:
            arguments["scaling_policy"] = NodewiseScalingPolicy(policy.scaling_config, counts)
        else:
            logger.warning("Nodewise gives no advice: ScalingConfig(num_workers=...) must be a range (least, most)")
        return run(**arguments)

    setattr(trainer, _HOOK, advised)
    return trainer


class StepTimes(UserCallback):  # type: ignore[misc]  # Ray is not installed where types are checked
    """Adds measured step times to the profile: for `RunConfig(callbacks=[...])`, run by Ray's controller.

    Workers report the seconds of a step under `key` with `ray.train.report`. The slowest worker's time counts.

    Args:
        counts: the worker counts of the same job.
        key: name of the metric.
        reports: number of reports whose median becomes one observation.
        steps_per_report: number of steps that one report covers.
    """

    def __init__(
        self, counts: WorkerCounts, *, key: str = "step_seconds", reports: int = 10, steps_per_report: int = 1
    ) -> None:
        self._counts = counts
        self._key = key
        self._reports = reports
        self._steps_per_report = steps_per_report
        self._measured: list[float] = []
        self._workers = 0
        self._observations = 0

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:  # noqa: ARG002  # Ray's signature
        """Record one report of all workers."""
        seconds = [each[self._key] for each in metrics if isinstance(each.get(self._key), int | float)]
        if len(seconds) < len(metrics) or not seconds or not 0 < max(seconds) < float("inf"):
            return
        if len(metrics) != self._workers:
            self._measured, self._workers = [], len(metrics)
        self._measured.append(max(seconds))
        if len(self._measured) < self._reports:
            return
        self._observations += 1
        step_seconds, self._measured = statistics.median(self._measured), []

        def content() -> ProfileContent:
            return ProfileContent(
                observations=observations(
                    configurations=configurations(**self._counts.columns_of(self._workers)),
                    steps_per_second=1.0 / step_seconds,
                    steps_counts=self._reports * self._steps_per_report,
                    measured_at_unix_seconds=time.time(),
                )
            )

        request_id = f"ray-{run_context.run_id}-{self._observations}"
        failed = self._counts.adviser.append(self._counts.profile_id, content, request_id=request_id)
        if isinstance(failed, NoAnswer):
            logger.warning("step times of %d workers are not added to the profile: %s", self._workers, failed)
