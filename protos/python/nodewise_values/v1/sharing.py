"""Runs of jobs that share a device, as evidence about a job.

For what an absent or empty value means, see configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.value import Value, Word

__all__ = [
    "SharedDeviceRun",
    "SharingMode",
]


class SharingMode(Word):
    """How the driver lets processes share a device."""

    TIME_SLICED = "time_sliced"
    """Separate contexts take turns: kernels of two processes never overlap."""
    MPS = "mps"
    """One context for all processes (NVIDIA Multi-Process Service).

    One context for all processes (NVIDIA Multi-Process Service): kernels overlap where the device has room for both.
    """
    MIG = "mig"
    """The device is split into slices, each with its own processors, cache and memory (Multi-Instance GPU)."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedDeviceRun(Value):
    """A run in which the job, with one worker, shared one device with another job."""

    device_name: str = ""
    """Accelerator, e.g. "V100"."""
    mode: SharingMode | None = None
    """How the jobs shared the device."""
    partner_profile_id: str = ""
    """Id of the other job's profile. The profile need not be stored."""
    share: float = 0.0
    """Speed of this job in the run as a share of its speed alone, 1 = as fast as alone."""
    partner_share: float = 0.0
    """Speed of the other job in the run as a share of its speed alone."""
    measured_time: datetime | None = None
    """When the run was measured. Absent = not known."""
    content_sha256: str = ""
    """SHA-256 of all fields above.

    RetractEvidence names the run by it. The server computes it and ignores it in requests. The same run, sent again,
    counts once.
    """
