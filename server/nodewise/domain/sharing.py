"""Jobs that share one device: facts of each alone, measurements of them together, and predicted shares."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass, field
from enum import StrEnum

from nodewise.domain.columns import Floats

__all__ = [
    "DeviceShares",
    "KernelShape",
    "PairRun",
    "Processors",
    "ShareBasis",
    "ShareVerdict",
    "SharedDeviceRun",
    "SharingMode",
    "SharingQuestion",
    "SoloJob",
]


class SharingMode(StrEnum):
    """How the driver shares a device among processes. Runs of one mode are no evidence for another."""

    TIME_SLICED = "time-sliced"
    """Separate contexts take turns: kernels of two processes never overlap (the default of CUDA)."""
    MPS = "mps"
    """One context for all processes (NVIDIA Multi-Process Service): kernels overlap where they leave room."""
    MIG = "mig"
    """Slices with processors, cache and memory of their own (Multi-Instance GPU)."""


class ShareBasis(StrEnum):
    """Evidence for a share."""

    MEASURED = "measured"
    """The pair ran."""
    COMPLETED = "completed"
    """Both jobs, or others of their models, ran with other partners."""
    PARTNER = "partner"
    """One of the two ran with others."""
    SOLO = "solo"
    """Neither ran beside another job."""


class ShareVerdict(StrEnum):
    """Verdict on sharing. The total of all shares is the work per second, 1 = one job alone."""

    DOES_NOT_FIT = "does not fit"
    """Together they need more memory, or more slices, than the device has."""
    EXCLUSIVE = "exclusive"
    """The total is below 1 all over its range: one after the other is faster."""
    SERIALISED = "serialised"
    """The range of the total holds 1: a gain is not certain."""
    CONCURRENT = "concurrent"
    """The total is above 1 all over its range."""


@dataclass(frozen=True, slots=True)
class KernelShape:
    """Launch of a kernel: resources of one block, and the number of blocks."""

    blocks: int
    threads_per_block: int
    registers_per_thread: int = 0
    shared_bytes_per_block: int = 0


@dataclass(frozen=True, slots=True)
class Processors:
    """Streaming multiprocessors of a device, and the resources of each."""

    processors: int
    threads: int
    blocks: int
    registers: int
    shared_bytes: int


@dataclass(frozen=True, slots=True)
class SoloJob:
    """A job as it ran alone on one device."""

    name: str
    model: str = ""
    """Common name of jobs that differ in batch size and precision; empty = the job's name."""
    device_utilisation: float | None = None
    """Share of the time in which some kernel ran, 0 to 1."""
    memory_utilisation: float | None = None
    """Share of the time in which device memory was read or written, 0 to 1."""
    memory_bytes: float | None = None
    step_seconds: float | None = None
    elsewhere: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Solo steps on other devices: name -> (seconds, the device's peak FLOP/s over this one's)."""
    kernels: tuple[KernelShape, ...] = ()
    """Its dominant kernels."""
    slice_share: float | None = None
    """MIG: share of the device's processors that its slice has; None = equal slices for the jobs of a set."""
    slice_memory_bytes: float | None = None
    """MIG: memory of its slice; None = ``slice_share`` of the device's."""

    @property
    def family(self) -> str:
        """The model, or the name where no model is stated."""
        return self.model or self.name


@dataclass(frozen=True, slots=True)
class PairRun:
    """Two jobs that ran together on one device, and each one's share of its solo speed."""

    jobs: tuple[SoloJob, SoloJob]
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedDeviceRun:
    """Evidence of a job: it ran with one worker beside another job on one device.

    Attributes
    ----------
    partner_profile_id : str
        Name of the other job's profile, which need not be stored.
    share, partner_share : float
        This job's share of its solo speed, and the other job's.
    measured_at_s : float
        Seconds since 1970; 0 = not known.
    """

    device: str
    mode: SharingMode
    partner_profile_id: str
    share: float
    partner_share: float
    measured_at_s: float = 0.0

    @property
    def content_sha256(self) -> str:
        """The identity of the run, from its content."""
        return hashlib.sha256(repr(astuple(self)).encode()).hexdigest()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharingQuestion:
    """Jobs that would share a device, and measurements on it.

    Attributes
    ----------
    device : str
        Its name; empty = not known.
    runs : tuple of PairRun
        Measured on this device in this mode.
    sets : tuple of tuple of SoloJob
        Jobs that would share a device, one set each; a set holds at least one job.
    memory_bytes : float or None
        Memory of the device; None = not known, and memory is not checked.
    processors : Processors or None
        None = not known; shapes of kernels are then ignored.
    coverage : float
        Coverage of the ranges, 0 to 1.
    """

    device: str = ""
    mode: SharingMode = SharingMode.TIME_SLICED
    runs: tuple[PairRun, ...] = ()
    sets: tuple[tuple[SoloJob, ...], ...] = ()
    memory_bytes: float | None = None
    processors: Processors | None = None
    coverage: float = 0.9


@dataclass(frozen=True, slots=True)
class DeviceShares:
    """Jobs on one device: the range of each one's share of its solo speed, its middle, and the verdict."""

    low: Floats
    middle: Floats
    high: Floats
    total: tuple[float, float, float]
    """Low end, middle and high end of the sum of shares."""
    verdict: ShareVerdict
    basis: ShareBasis | None
    """The weakest evidence of the pairs; None for a job alone."""
    memory_bytes: float | None
    """Memory of all the jobs; None = unknown for one of them."""
    warnings: tuple[str, ...] = ()
