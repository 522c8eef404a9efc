"""Find the configurations of a question that were already measured."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, as_ints
from nodewise.domain.configurations import UNSTATED, Configurations
from nodewise.domain.profile import Profile

__all__ = ["ran_before"]

_EQUAL: Final = (
    ("parameter_servers", UNSTATED),
    ("sync_mode", 0),
    ("accumulation", 0),
    ("link_bytes_per_s", 0.0),
    ("tensor_parallel", 0),
    ("pipeline_parallel", 0),
    ("backup_workers", 0),
)
"""Columns besides nodes and workers that equal configurations share, and the value that means "not stated" in a run."""


def ran_before(configurations: Configurations, profile: Profile) -> NDArray[np.bool_]:
    """Return a mask of the resolved configurations that the profile's observations have measured.

    A value that an observation does not state equals any value of the question. An unknown batch equals only another
    unknown batch. A row with groups of unequal workers never counts as measured.
    """
    rows_run = profile.observations.configurations
    near = np.isin(rows_run.nodes, configurations.nodes) & np.isin(rows_run.workers, configurations.workers)
    near_runs = rows_run.take(as_ints(np.flatnonzero(near & ~rows_run.grouped())))
    runs: dict[tuple[int, int], list[int]] = defaultdict(list)
    for run, scale in enumerate(zip(near_runs.nodes.tolist(), near_runs.workers.tolist(), strict=True)):
        runs[scale].append(run)
    devices, seen_devices = configurations.device_names(), np.array(near_runs.device_names())
    batches, seen_batches = _batches(configurations), _batches(near_runs)
    ran = ~configurations.grouped()
    for row in np.flatnonzero(ran).tolist():
        alike = np.array(
            runs.get((int(configurations.nodes[row]), int(configurations.workers[row])), ()), dtype=np.int64
        )
        same = (seen_batches[alike] == batches[row]) & np.isin(seen_devices[alike], ("", devices[row]))
        for name, default in _EQUAL:
            column = getattr(near_runs, name)[alike]
            same &= (column == getattr(configurations, name)[row]) | (column == default)
        placement = sorted(configurations.placement_of(row)) if same.any() else []
        ran[row] = any(sorted(near_runs.placement_of(run)) == placement for run in alike[same].tolist())
    return ran


def _batches(configurations: Configurations) -> Floats:
    """Return the samples of one worker and micro-step; 0 = not known."""
    own = configurations.batch_per_worker.astype(np.float64)
    parts = configurations.replicas() * np.maximum(configurations.accumulation, 1)
    return np.where(own > 0.0, own, configurations.global_batch / parts)
