"""SharingService: how much of their solo speed jobs keep when several share a device.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.problem import Problem
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.v1.sharing import SharingMode
from nodewise_values.value import Value, Word

__all__ = [
    "DeviceProcessors",
    "KernelLaunch",
    "PredictSharingRequest",
    "PredictSharingResponse",
    "SetShares",
    "SharedDevice",
    "SharedRun",
    "SharingBasis",
    "SharingJob",
    "SharingSet",
    "SharingVerdict",
    "StepElsewhere",
]


class SharingVerdict(Word):
    """Whether sharing is worth it. The total of all shares is the work done per second, 1 = one job alone."""

    DOES_NOT_FIT = "does_not_fit"
    """The jobs together need more memory, or more slices, than the device has."""
    EXCLUSIVE = "exclusive"
    """The whole range of the total is below 1: running the jobs one after another is faster."""
    SERIALISED = "serialised"
    """The range of the total includes 1: the jobs take turns, and no gain is certain."""
    CONCURRENT = "concurrent"
    """The whole range of the total is above 1."""


class SharingBasis(Word):
    """What a share is based on."""

    SOLO = "solo"
    """Neither job of the pair was measured beside another: only facts about the jobs."""
    PARTNER = "partner"
    """One job of the pair was measured beside others."""
    COMPLETED = "completed"
    """Both jobs, or others of their models, were measured beside other jobs."""
    MEASURED = "measured"
    """The pair was measured. The range is the measured share alone."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedDevice(Value):
    """A device that is shared."""

    device_name: str = ""
    """Accelerator, e.g. "V100". Empty = not known; the catalog is then not used."""
    memory_bytes: float | None = None
    """Memory that jobs may use, bytes.

    Absent = that of the catalog. If it is not known there either, memory is not checked.
    """
    processors: DeviceProcessors | None = None
    """Limits that decide which kernels can run side by side. Absent = not known; kernels are then ignored."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeviceProcessors(Value):
    """Streaming multiprocessors of a device, and the capacity of each."""

    processors_count: int = 0
    """Number of streaming multiprocessors."""
    threads_count: int = 0
    """Threads that one multiprocessor can hold."""
    blocks_count: int = 0
    """Blocks that one multiprocessor can hold."""
    registers_count: int = 0
    """Registers of one multiprocessor."""
    shared_bytes: int = 0
    """Shared memory of one multiprocessor, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KernelLaunch(Value):
    """Launch of a kernel: the resources of one block, and the number of blocks."""

    blocks_count: int = 0
    """Number of blocks in the grid."""
    threads_per_block: int = 0
    """Threads per block."""
    registers_per_thread: int = 0
    """Registers per thread. 0 = not known; registers then limit nothing."""
    shared_bytes_per_block: int = 0
    """Shared memory per block, bytes. 0 = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharingJob(Value):
    """Facts about a job when it runs alone on the device.

    A fact that is not known may be left out; ranges are then wider.
    """

    name: str = ""
    """Name, unique in the request. Sets and measured pairs refer to it."""
    model_name: str = ""
    """Model that jobs of different batch sizes and precisions share, e.g. "resnet50".

    Measurements of one such job count for all of them. Empty = the job's name.
    """
    device_utilization_ratio: float | None = None
    """Share of the time in which any kernel runs, 0 to 1 ("GPU-Util").

    Absent = inferred from steps on other devices, else 1 is assumed.
    """
    memory_utilization_ratio: float | None = None
    """Share of the time in which device memory was read or written, 0 to 1. Absent = not known."""
    memory_bytes: float | None = None
    """Device memory that the job uses, bytes. Absent = not known; the job is assumed to fit."""
    step_seconds: float | None = None
    """Seconds of a step alone on this device. Absent = that of the profile, else not known."""
    steps_elsewhere: tuple[StepElsewhere, ...] = ()
    """Steps alone on other devices. The gain on faster devices shows which part of a step depends on the device."""
    kernels: tuple[KernelLaunch, ...] = ()
    """The dominant kernels of the job. Used only with DeviceProcessors."""
    slice_ratio: float | None = None
    """Only for MIG: share of the device's processors in the job's slice, e.g. 0.428571 for a 3g slice of 7.

    Absent = equal slices for the jobs of a set.
    """
    slice_memory_bytes: float | None = None
    """Only for MIG: memory of the job's slice, bytes. Absent = slice_ratio times the device's memory."""
    profile: ProfileSource | None = None
    """What is known of the job.

    Its runs with one worker supply steps on this and other devices where the request does not state them. Its runs
    beside jobs of this request, by the names of their profiles, count as measured pairs. Absent = nothing more is
    known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepElsewhere(Value):
    """Step time of a job alone on another device."""

    device_name: str = ""
    """The other device."""
    step_seconds: float = 0.0
    """Seconds of the step on that device."""
    speed_ratio: float | None = None
    """Peak FLOP/s of that device divided by those of this device. Absent = the catalog's values."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedRun(Value):
    """Two jobs that were measured together on the device, in the requested mode."""

    first_job: str = ""
    """Name of one job."""
    second_job: str = ""
    """Name of the other job. The same name means two copies of one job."""
    first_share: float = 0.0
    """Share of its solo speed that the first job kept, 1 = all of it."""
    second_share: float = 0.0
    """Share of its solo speed that the second job kept."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharingSet(Value):
    """Jobs that may share one device."""

    job_names: tuple[str, ...] = ()
    """Names of the jobs, up to 16. A name that is listed twice means two copies of the job."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictSharingRequest(Value):
    """A device, its jobs, measured pairs, and the sets to predict."""

    device: SharedDevice | None = None
    """The shared device."""
    mode: SharingMode | None = None
    """How the device is shared."""
    jobs: tuple[SharingJob, ...] = ()
    """The jobs that may share it."""
    runs: tuple[SharedRun, ...] = ()
    """Measured pairs of these jobs, on this device and in this mode.

    Measured pairs of these jobs, on this device and in this mode; runs on another device or in another mode must not be
    given. Pairs in the jobs' profiles are added.
    """
    sets: tuple[SharingSet, ...] = ()
    """Sets to predict. Empty = every pair of the jobs."""
    coverage: float | None = None
    """Share of the ranges that should hold the true value. Absent = 0.9."""
    sharing_model: str = ""
    """Name of the sharing model. Empty = the only one that is loaded, else the only shipped one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetShares(Value):
    """Result of one set."""

    job_names: tuple[str, ...] = ()
    """Names of the jobs, in the order of the set."""
    low_shares: tuple[float, ...] = ()
    """Lower bounds of the ranges of the jobs' shares, in this order.

    Empty, as the next two fields = no answer; the problem says why.
    """
    middle_shares: tuple[float, ...] = ()
    """Middle values of the ranges."""
    high_shares: tuple[float, ...] = ()
    """Upper bounds of the ranges."""
    low_total: float = 0.0
    """Lower bound of the range of the total of all shares: work per second, 1 = one job alone."""
    middle_total: float = 0.0
    """Middle value of that range."""
    high_total: float = 0.0
    """Upper bound of that range."""
    verdict: SharingVerdict | None = None
    """Whether sharing is worth it."""
    basis: SharingBasis | None = None
    """Weakest basis of any pair in the set. Unspecified = a single job."""
    memory_bytes: float | None = None
    """Memory that the jobs use together, bytes. Absent = that of some job is not known."""
    why: str = ""
    """Reason for the verdict in one sentence, with the numbers."""
    warnings: tuple[str, ...] = ()
    """Warnings for the reader."""
    problem: Problem | None = None
    """Why there is no answer. Absent = there is an answer."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictSharingResponse(Value):
    """Results of all sets."""

    sets: tuple[SetShares, ...] = ()
    """One result per set, in the order of the request.

    For every pair of the jobs: first with second, first with third and so on.
    """
    sharing_model: str = ""
    """Name of the sharing model."""
    sharing_model_version: str = ""
    """Version of the sharing model."""
    device_memory_bytes: float | None = None
    """Memory of the device that the sets were checked against, bytes. Absent = not known; memory was not checked."""
    coverage: float = 0.0
    """Coverage that the ranges were computed for."""
