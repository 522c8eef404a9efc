"""Profiles of the jobs that managers run in the tests."""

from __future__ import annotations

from typing import Final

from nodewise_client import ProfileContent, configurations, observations

__all__ = ["CIFAR10", "ELASTIC", "TUNED"]

# The third worker brings next to nothing.
ELASTIC: Final = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2, 3, 4], workers=[1, 2, 3, 4], sync_modes="allreduce", global_batch_samples=64
        ),
        steps_per_second=[1.0, 1.9, 2.0, 2.02],
    )
)
TUNED: Final = ProfileContent(
    observations=observations(
        configurations=configurations(nodes=1, workers=2, sync_modes="allreduce", batch_per_worker_samples=[32, 128]),
        steps_per_second=[50.0, 0.1],
    )
)
CIFAR10: Final = ProfileContent(
    observations=observations(
        configurations=configurations(
            nodes=[1, 2, 4, 1, 2],
            workers=[4, 8, 16, 4, 8],
            devices=["T4", "T4", "T4", "V100", "V100"],
            sync_modes="allreduce",
            global_batch_samples=2048,
        ),
        steps_per_second=[2.535, 3.848, 6.475, 9.1, 14.0],
    )
)
