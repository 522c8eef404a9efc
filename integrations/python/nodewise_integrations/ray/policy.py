"""Ray Train's elastic policy with the advised number of workers. Only this module uses internal classes of Ray."""

from __future__ import annotations

from typing import Any

from ray.train.v2._internal.execution.scaling_policy import ElasticScalingPolicy

from nodewise_integrations.ray.worker_counts import WorkerCounts

__all__ = ["NodewiseScalingPolicy"]


class NodewiseScalingPolicy(ElasticScalingPolicy):  # type: ignore[misc]  # Ray is not installed where types are checked
    """Uses as many of the workers that Ray's elastic policy finds possible as Nodewise advises.

    Ray still decides when to scale and how many workers the cluster has room for.
    """

    def __init__(self, scaling_config: Any, counts: WorkerCounts) -> None:
        super().__init__(scaling_config)
        self._counts = counts
        self._running: int | None = None

    def make_decision_for_running_worker_group(self, worker_group_state: Any, worker_group_status: Any) -> Any:
        """Decide as Ray does, with the number of running workers known to `within`."""
        self._running = worker_group_state.num_workers
        try:
            return super().make_decision_for_running_worker_group(worker_group_state, worker_group_status)
        finally:
            self._running = None

    def _count_possible_workers(self, reserved_resources: Any) -> int:
        possible = int(super()._count_possible_workers(reserved_resources))
        fewest, most = self.scaling_config.min_workers, self.scaling_config.max_workers
        if possible < fewest:
            return possible
        return self._counts.within(possible, fewest=fewest, most=most, running=self._running)
