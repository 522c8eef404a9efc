"""What a profile tells of a job alone on a device: its runs with one worker."""

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
    """Peak FLOP/s of a device over that of another, in single precision; None = not known of both."""
    peaks = [(catalogue.device(name) or {}).get("fp32_flops_per_s", 0.0) for name in (device, over)]
    return peaks[0] / peaks[1] if min(peaks) > 0.0 else None


def with_profile(job: SoloJob, profile: Profile, device: str, catalogue: Catalogue) -> SoloJob:
    """The job with what it does not state itself, of runs with one worker: steps here and elsewhere, memory here.

    Steps are of one global batch: that of most runs here, or where none are, of most runs (ties: the largest). Runs of
    several steps at once (accumulation) and of hybrid jobs are left out, as are devices whose peak nobody knows.
    """
    seconds, memory_bytes = _solo_runs(profile, device)
    here = catalogue_key(device)
    stated = job.step_seconds is not None
    elsewhere = dict(job.elsewhere)
    if not elsewhere and (stated or here in seconds):
        for key, (name, step_s) in seconds.items():
            ratio = None if key == here else peak_ratio(catalogue, name, device)
            if ratio is not None:
                elsewhere[name] = step_s, ratio
    return replace(
        job,
        step_seconds=job.step_seconds if stated or here not in seconds else seconds[here][1],
        memory_bytes=memory_bytes if job.memory_bytes is None else job.memory_bytes,
        elsewhere=elsewhere,
    )


def _solo_runs(profile: Profile, device: str) -> tuple[Mapping[str, tuple[str, float]], float | None]:
    """By device its name and the mean step (s) of one worker; memory held on this device, None = not measured."""
    runs = profile.observations
    asked = runs.configurations
    alone = (
        (asked.workers == 1)
        & (asked.accumulation <= 1)
        & (asked.sync_mode != SyncMode.HYBRID)
        & (runs.steps_per_s > 0.0)
    )
    if not alone.any():
        return {}, None
    names = np.array(asked.device_names())
    keys = np.array([catalogue_key(name) for name in names])
    on_this = alone & (keys == catalogue_key(device))
    batches, counts = np.unique(asked.global_batch[on_this if on_this.any() else alone], return_counts=True)
    batch = batches[counts == counts.max()].max()
    alone &= asked.global_batch == batch
    found = {
        key: (str(names[alone & (keys == key)][0]), float(np.mean(1.0 / runs.steps_per_s[alone & (keys == key)])))
        for key in dict.fromkeys(keys[alone].tolist())
    }
    held = float(runs.measured_memory_bytes[on_this & alone].max(initial=0.0))
    return found, held or None
