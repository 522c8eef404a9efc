"""Evidence of a profile about a job alone on a device: its runs with one worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nodewise.domain.configurations import SyncMode
from nodewise.domain.profile import Profile
from nodewise.domain.sharing import SoloJob
from nodewise.plugin import Catalogue
from nodewise.plugin.catalogue import catalogue_key

__all__ = ["peak_ratio", "with_profile"]


def peak_ratio(catalogue: Catalogue, device: str, over: str) -> float | None:
    """Peak FLOP/s of a device divided by that of another, in single precision; None = one of them is not known."""
    peaks = [(catalogue.device(name) or {}).get("fp32_flops_per_s", 0.0) for name in (device, over)]
    return peaks[0] / peaks[1] if min(peaks) > 0.0 else None


def with_profile(job: SoloJob, profile: Profile, device: str, catalogue: Catalogue) -> SoloJob:
    """The job with facts that it does not state, from runs with one worker: step times, and memory on this device.

    Step times are of one global batch: that of most runs on this device, else of most runs (ties: the largest). Runs
    with accumulation, runs of hybrid jobs and devices of unknown peak are omitted.
    """
    seconds, memory_bytes = _solo_runs(profile, device)
    here = catalogue_key(device)
    has_step_time = job.step_seconds is not None
    elsewhere = dict(job.elsewhere)
    if not elsewhere and (has_step_time or here in seconds):
        for key, (name, step_s) in seconds.items():
            ratio = None if key == here else peak_ratio(catalogue, name, device)
            if ratio is not None:
                elsewhere[name] = step_s, ratio
    return replace(
        job,
        step_seconds=job.step_seconds if has_step_time or here not in seconds else seconds[here][1],
        memory_bytes=memory_bytes if job.memory_bytes is None else job.memory_bytes,
        elsewhere=elsewhere,
    )


def _solo_runs(profile: Profile, device: str) -> tuple[Mapping[str, tuple[str, float]], float | None]:
    """Name and mean step time (s) of one worker, by device; memory used on this device (bytes, None = not measured)."""
    runs = profile.observations
    configurations = runs.configurations
    alone = (
        (configurations.workers == 1)
        & (configurations.accumulation <= 1)
        & (configurations.sync_mode != SyncMode.HYBRID)
        & (runs.steps_per_s > 0.0)
    )
    if not alone.any():
        return {}, None
    names = np.array(configurations.device_names())
    keys = np.array([catalogue_key(name) for name in names])
    on_this = alone & (keys == catalogue_key(device))
    batches, counts = np.unique(configurations.global_batch[on_this if on_this.any() else alone], return_counts=True)
    batch = batches[counts == counts.max()].max()
    alone &= configurations.global_batch == batch
    by_device = {
        key: (str(names[alone & (keys == key)][0]), float(np.mean(1.0 / runs.steps_per_s[alone & (keys == key)])))
        for key in dict.fromkeys(keys[alone].tolist())
    }
    memory_bytes = float(runs.measured_memory_bytes[on_this & alone].max(initial=0.0))
    return by_device, memory_bytes or None
