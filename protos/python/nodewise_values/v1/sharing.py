"""Jobs that share a device, as evidence of a job. Absence, as on the whole wire: see configuration.proto."""

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
    """One context for all processes (NVIDIA Multi-Process Service): kernels overlap where they leave room."""
    MIG = "mig"
    """Slices with processors, cache and memory of their own (Multi-Instance GPU)."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedDeviceRun(Value):
    """A run of the job with one worker beside another job on one device."""

    device_name: str = ""
    """Accelerator, e.g. "V100"."""
    mode: SharingMode | None = None
    """How they shared it."""
    partner_profile_id: str = ""
    """Profile of the other job. It need not be stored."""
    share: float = 0.0
    """Share of its solo speed that this job kept, 1 = all of it."""
    partner_share: float = 0.0
    """Share that the other one kept."""
    measured_time: datetime | None = None
    """When it was measured. Absent = not known."""
    content_sha256: str = ""
    """SHA-256 of all of the above, by which it is retracted; the server's own, and not looked at in requests.

    The same run sent again is one.
    """
