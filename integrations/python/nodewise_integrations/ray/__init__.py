"""Ray: numbers of workers for Ray Train and the autoscaler; deadlines and measurements of trials for Ray Tune."""

from nodewise_integrations.ray.worker_counts import WorkerCounts

__all__ = ["WorkerCounts"]
