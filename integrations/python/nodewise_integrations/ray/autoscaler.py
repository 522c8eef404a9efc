"""Ray's autoscaler: machines for the recommended number of workers, before the job begins."""

from __future__ import annotations

from collections.abc import Mapping

from ray.autoscaler.sdk import request_resources

from nodewise_integrations.advice import Advice, NoAnswer
from nodewise_integrations.ray.worker_counts import WorkerCounts

__all__ = ["request_workers"]


def request_workers(
    counts: WorkerCounts, *, fewest: int, most: int, resources_per_worker: Mapping[str, float]
) -> Advice | NoAnswer:
    """Request machines for the recommended number of workers from the autoscaler; without an answer, request nothing.

    Ray keeps the machines until another request replaces this one: `request_resources(bundles=[])`, or a request that
    elastic training in Ray Train makes itself.
    """
    advice = counts.advice(fewest, most)
    if isinstance(advice, Advice):
        request_resources(bundles=[dict(resources_per_worker)] * advice.chosen.workers)
    return advice
