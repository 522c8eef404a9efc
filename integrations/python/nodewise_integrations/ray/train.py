"""Ray Train: as many workers as a job is worth, and what they measured told to its profile."""

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
    """The same trainer, whose number of workers Nodewise chooses within `ScalingConfig(num_workers=(least, most))`.

    Ray has no public place for a scaling policy: `fit()` hands one to the controller by an internal method, which is
    wrapped here for this trainer alone. Where this version of Ray has it otherwise, or the number of workers is fixed,
    the log says so and the trainer is left as it is.
    """
    try:
        from nodewise_integrations.ray.policy import NodewiseScalingPolicy  # noqa: PLC0415  # internal to Ray

        run = getattr(trainer, _HOOK)
        elastic = NodewiseScalingPolicy.__mro__[1]
        elastic._count_possible_workers  # noqa: B018, SLF001  # what is overridden must be there
    except (ImportError, AttributeError) as error:
        logger.warning("this version of Ray cannot be advised by Nodewise, and scales as it would: %s", error)
        return trainer

    def advised(**arguments: Any) -> Any:
        policy: Any = arguments.get("scaling_policy")
        if type(policy) is elastic:
            arguments["scaling_policy"] = NodewiseScalingPolicy(policy.scaling_config, counts)
        else:
            logger.warning("Nodewise is not asked: ScalingConfig(num_workers=...) must be a range, (least, most)")
        return run(**arguments)

    setattr(trainer, _HOOK, advised)
    return trainer


class StepTimes(UserCallback):  # type: ignore[misc]  # Ray is not installed where types are checked
    """Adds measured step times to the profile: for `RunConfig(callbacks=[...])`, run by Ray's controller.

    Workers report the seconds of a step under `key` with `ray.train.report`; the slowest worker's is the step's.

    Args:
        counts: of the same job.
        key: name of the metric.
        reports: as many are one observation: the median of them.
        steps_per_report: steps that one report stands for.
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
        self._told = 0

    def after_report(self, run_context: Any, metrics: list[dict[str, Any]], checkpoint: Any) -> None:  # noqa: ARG002  # Ray's signature
        """One report of all workers."""
        told = [each[self._key] for each in metrics if isinstance(each.get(self._key), int | float)]
        if len(told) < len(metrics) or not told or not 0 < max(told) < float("inf"):
            return
        if len(metrics) != self._workers:
            self._measured, self._workers = [], len(metrics)
        self._measured.append(max(told))
        if len(self._measured) < self._reports:
            return
        self._told += 1
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

        request_id = f"ray-{run_context.run_id}-{self._told}"
        failed = self._counts.adviser.append(self._counts.profile_id, content, request_id=request_id)
        if isinstance(failed, NoAnswer):
            logger.warning("step times of %d workers are not added to the profile: %s", self._workers, failed)
