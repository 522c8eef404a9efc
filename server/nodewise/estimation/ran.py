"""Which of the asked configurations ran already."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from nodewise.domain.columns import Floats, as_ints
from nodewise.domain.configurations import UNSTATED, Configurations
from nodewise.domain.profile import Profile

__all__ = ["ran_before"]

_EQUAL: Final = (
    ("nodes", 0),
    ("workers", 0),
    ("parameter_servers", UNSTATED),
    ("sync_mode", 0),
    ("accumulation", 0),
    ("link_bytes_per_s", 0.0),
    ("tensor_parallel", 0),
    ("pipeline_parallel", 0),
    ("backup_workers", 0),
)
"""Columns in which one configuration is equal to another, and what stands for "not stated" in an observation."""


def ran_before(configurations: Configurations, profile: Profile) -> NDArray[np.bool_]:
    """Rows of resolved configurations that the profile's observations have measured.

    What an observation does not state is as asked; a batch that is not known is only that of another such. A row of
    workers that are not alike is no other's repeat.
    """
    observed = profile.observations.configurations
    near = np.isin(observed.nodes, configurations.nodes) & np.isin(observed.workers, configurations.workers)
    seen = observed.take(as_ints(np.flatnonzero(near & ~observed.grouped())))
    if not len(seen):
        return np.zeros(len(configurations), dtype=bool)
    devices, seen_devices = configurations.device_names(), np.array(seen.device_names())
    batches, seen_batches = _batches(configurations), _batches(seen)
    placements = [sorted(seen.placement_of(run)) for run in range(len(seen))]
    found = ~configurations.grouped()
    for row in np.flatnonzero(found).tolist():
        same = (seen_batches == batches[row]) & ((seen_devices == devices[row]) | (seen_devices == ""))
        for name, unstated in _EQUAL:
            column = getattr(seen, name)
            same &= (column == getattr(configurations, name)[row]) | (column == unstated)
        runs = np.flatnonzero(same).tolist()
        found[row] = bool(runs) and any(placements[run] == sorted(configurations.placement_of(row)) for run in runs)
    return found


def _batches(configurations: Configurations) -> Floats:
    """Samples of one worker and micro-step; 0 = not known."""
    own = configurations.batch_per_worker.astype(np.float64)
    parts = configurations.replicas() * np.maximum(configurations.accumulation, 1)
    return np.where(own > 0.0, own, configurations.global_batch / parts)
