"""SharingService: what jobs keep of their solo speed where several share a device.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
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
    """What sharing comes to. The total of all shares is the work done per second, 1 = one job alone."""

    DOES_NOT_FIT = "does_not_fit"
    """Together they need more memory, or more slices, than the device has."""
    EXCLUSIVE = "exclusive"
    """The total is below 1 all over its range: one after the other is faster."""
    SERIALISED = "serialised"
    """The range of the total holds 1: they take turns, and nothing is known to be gained."""
    CONCURRENT = "concurrent"
    """The total is above 1 all over its range."""


class SharingBasis(Word):
    """What a share rests on."""

    SOLO = "solo"
    """Neither job of a pair was ever seen beside another: facts of the jobs alone."""
    PARTNER = "partner"
    """One of the two ran with others."""
    COMPLETED = "completed"
    """Both jobs, or others of their models, ran with other partners."""
    MEASURED = "measured"
    """The pair ran. Its range is the measured share alone."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedDevice(Value):
    """A device that is shared."""

    device_name: str = ""
    """Accelerator, e.g. "V100". Empty = not known; nothing is then looked up."""
    memory_bytes: float | None = None
    """Memory that jobs may use, bytes.

    Absent = as the catalog has it; not known there either = memory is not checked.
    """
    processors: DeviceProcessors | None = None
    """What places kernels beside each other. Absent = not known; shapes of kernels then tell nothing."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeviceProcessors(Value):
    """Streaming multiprocessors of a device, and what one of them holds at once."""

    processors_count: int = 0
    """How many there are."""
    threads_count: int = 0
    """Threads that one holds."""
    blocks_count: int = 0
    """Blocks that one holds."""
    registers_count: int = 0
    """Registers of one."""
    shared_bytes: int = 0
    """Shared memory of one, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KernelLaunch(Value):
    """Launch of a kernel: what one block needs, and how many blocks there are."""

    blocks_count: int = 0
    """Blocks of the grid."""
    threads_per_block: int = 0
    """Threads of a block."""
    registers_per_thread: int = 0
    """Registers of a thread. 0 = not known: they limit nothing."""
    shared_bytes_per_block: int = 0
    """Shared memory of a block, bytes. 0 = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharingJob(Value):
    """A job as it ran alone on the device. What is not known is left out: ranges become wider."""

    name: str = ""
    """Name, unique in the request; sets and measured pairs name it."""
    model_name: str = ""
    """What jobs of other batch sizes and precisions share, e.g. "resnet50".

    What jobs of other batch sizes and precisions share, e.g. "resnet50": what is learned of one counts for all of its
    model. Empty = the job's name.
    """
    device_utilization_ratio: float | None = None
    """Share of the time in which some kernel ran, 0 to 1 ("GPU-Util").

    Absent = inferred from steps on other devices, else the whole step is taken.
    """
    memory_utilization_ratio: float | None = None
    """Share of the time in which device memory was read or written, 0 to 1. Absent = not known."""
    memory_bytes: float | None = None
    """Device memory that it holds, bytes. Absent = not known; it is then taken to fit."""
    step_seconds: float | None = None
    """Seconds of a step alone on this device. Absent = from the profile, else not known."""
    steps_elsewhere: tuple[StepElsewhere, ...] = ()
    """Steps alone on other devices: how much of a step waits for the device shows in what faster ones gain."""
    kernels: tuple[KernelLaunch, ...] = ()
    """Its dominant kernels. Looked at with DeviceProcessors alone."""
    slice_ratio: float | None = None
    """MIG alone: share of the device's processors that its slice has, e.g. 0.428571 of a 3g slice of 7.

    Absent in this mode = equal slices for the jobs of a set.
    """
    slice_memory_bytes: float | None = None
    """MIG alone: memory of its slice, bytes. Absent = slice_ratio of the device's."""
    profile: ProfileSource | None = None
    """What is known of the job.

    What is known of the job: its runs with one worker tell steps on this and on other devices, where these are not
    stated, and its runs beside jobs of this request, by the names of their profiles, count as runs. Absent = nothing
    but what stands here.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StepElsewhere(Value):
    """A step of a job alone on another device."""

    device_name: str = ""
    """The other device."""
    step_seconds: float = 0.0
    """Seconds of the step there."""
    speed_ratio: float | None = None
    """Its peak FLOP/s over this device's. Absent = as the catalog has both."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharedRun(Value):
    """Two jobs that ran together on the device, in the mode that is asked about."""

    first_job: str = ""
    """One job."""
    second_job: str = ""
    """The other; may be the same name: two copies of one job."""
    first_share: float = 0.0
    """Share of its solo speed that the first kept, 1 = all of it."""
    second_share: float = 0.0
    """The same of the second."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SharingSet(Value):
    """Jobs that would share one device."""

    job_names: tuple[str, ...] = ()
    """Their names, up to 16; one that stands there twice is two copies."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictSharingRequest(Value):
    """A device, jobs, what was measured of them together, and who would share."""

    device: SharedDevice | None = None
    """What is shared."""
    mode: SharingMode | None = None
    """How."""
    jobs: tuple[SharingJob, ...] = ()
    """Who might share it."""
    runs: tuple[SharedRun, ...] = ()
    """Pairs that ran, of these jobs, on this device and in this mode.

    Pairs that ran, of these jobs, on this device and in this mode: runs of another device or mode teach nothing here.
    Those that the jobs' profiles hold are added.
    """
    sets: tuple[SharingSet, ...] = ()
    """Sets that are asked about. Empty = every pair of the jobs."""
    coverage: float | None = None
    """What share of the ranges shall hold the truth. Absent = 0.9."""
    sharing_model: str = ""
    """Who answers. Empty = the only one that is loaded, else the only shipped one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SetShares(Value):
    """The answer for one set."""

    job_names: tuple[str, ...] = ()
    """Its jobs, in the order of the set."""
    low_shares: tuple[float, ...] = ()
    """Low ends of the ranges of their shares of solo speed, in this order.

    Empty, as the next two = no answer; the problem says why.
    """
    middle_shares: tuple[float, ...] = ()
    """Middles."""
    high_shares: tuple[float, ...] = ()
    """High ends."""
    low_total: float = 0.0
    """Low end of the range of the total of shares: work per second, 1 = one job alone."""
    middle_total: float = 0.0
    """Its middle."""
    high_total: float = 0.0
    """Its high end."""
    verdict: SharingVerdict | None = None
    """What it comes to."""
    basis: SharingBasis | None = None
    """The weakest of what the pairs rest on. Unspecified = one job alone."""
    memory_bytes: float | None = None
    """Memory that the jobs hold together, bytes. Absent = not known of one of them."""
    why: str = ""
    """The verdict in one sentence, with the numbers."""
    warnings: tuple[str, ...] = ()
    """What to know before relying on it."""
    problem: Problem | None = None
    """Why there is no answer. Absent = there is one."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictSharingResponse(Value):
    """Answers."""

    sets: tuple[SetShares, ...] = ()
    """One per set, in the request's order; for every pair: first with second, first with third and so on."""
    sharing_model: str = ""
    """Who answered."""
    sharing_model_version: str = ""
    """Its version."""
    device_memory_bytes: float | None = None
    """Memory of the device that was checked against, bytes. Absent = not known, and nothing was."""
    coverage: float = 0.0
    """The coverage that ranges were made for."""
