"""Profiles: everything that is known of a job. For what an absent or empty value means, see configuration.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from nodewise_values.v1.configuration import Configurations
from nodewise_values.v1.problem import Notice
from nodewise_values.v1.sharing import SharedDeviceRun
from nodewise_values.v1.workload import Network, Workload
from nodewise_values.value import LazyValue, Value

__all__ = [
    "Observations",
    "PhaseTimings",
    "Profile",
    "ProfileContent",
    "ProfileSource",
    "TraceChunk",
    "TraceReference",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PhaseTimings(LazyValue):
    """Durations of the phases of one worker's step, as columns: one row per timed run.

    Usually one row with one worker.
    """

    configurations: Configurations | None = None
    """The configuration of each run."""
    download_seconds: tuple[float, ...] = ()
    """Mean seconds to receive the parameters."""
    compute_seconds: tuple[float, ...] = ()
    """Mean seconds of the forward and backward pass."""
    upload_seconds: tuple[float, ...] = ()
    """Mean seconds to send the gradient, without the update."""
    update_seconds: tuple[float, ...] = ()
    """Mean seconds in which the server applies the gradient."""
    compute_variation: tuple[float, ...] = ()
    """Coefficient of variation of the compute time, dimensionless. Empty = not known."""
    transfer_variation: tuple[float, ...] = ()
    """Coefficient of variation of the transfer times, dimensionless. Empty = not known."""
    hidden_seconds: tuple[float, ...] = ()
    """Seconds of transfer that overlap with the worker's compute. Default 0."""
    steps_counts: tuple[int, ...] = ()
    """Number of steps that the means are taken over. Empty or 0 in a row: not known."""
    compute_variation_known: tuple[bool, ...] = ()
    """Rows whose compute_variation is known. Empty = all rows, if that column is given."""
    transfer_variation_known: tuple[bool, ...] = ()
    """Rows whose transfer_variation is known. Empty = all rows, if that column is given."""
    numbers: tuple[int, ...] = ()
    """Number of each run within its profile, from 1.

    The server assigns it, and RetractEvidence uses it. Requests may hold it, so that the reply of GetProfile can be
    sent again, but it is ignored.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Observations(LazyValue):
    """Measured runs, as columns. A column is empty, has one entry for all rows, or one entry per row."""

    configurations: Configurations | None = None
    """The configuration of each run."""
    steps_per_second: tuple[float, ...] = ()
    """Measured throughput, steps per second.

    Asynchronous and hybrid: mini-batches that all workers together apply per second; otherwise global steps per second.
    """
    measured_at_unix_seconds: tuple[float, ...] = ()
    """When the run was measured, seconds since 1970 (UTC). Empty or 0 in a row: not known."""
    steps_counts: tuple[int, ...] = ()
    """Number of steps that were measured. Empty or 0 in a row: not known."""
    step_variation: tuple[float, ...] = ()
    """Coefficient of variation of the step time, dimensionless. Empty = not known."""
    exposed_sync_seconds: tuple[float, ...] = ()
    """Seconds of synchronization per step that compute does not hide. Empty = not known."""
    numbers: tuple[int, ...] = ()
    """Number of each observation within its profile, from 1.

    The server assigns it, and RetractEvidence uses it. Requests may hold it, so that the reply of GetProfile can be
    sent again, but it is ignored.
    """
    step_variation_known: tuple[bool, ...] = ()
    """Rows whose step_variation is known. Empty = all rows, if that column is given."""
    exposed_sync_known: tuple[bool, ...] = ()
    """Rows whose exposed_sync_seconds is known. Empty = all rows, if that column is given."""
    measured_memory_bytes: tuple[float, ...] = ()
    """Peak memory on the device that used the most, including the context and the allocator's cache, bytes.

    Empty or 0 in a row: not known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceReference(Value):
    """A trace that the server stores."""

    content_sha256: str = ""
    """SHA-256 of the trace's bytes, hexadecimal."""
    format: str = ""
    """Format of the trace, e.g. "kineto"; "auto" = the format of the reader that recognises it."""
    rank: int | None = None
    """Rank of the process that recorded the trace. Absent = the rank stated in the trace."""
    world_size: int | None = None
    """Number of processes of the job at the time of recording. Absent = the number stated in the trace."""
    size_bytes: int = 0
    """Size of the trace in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceChunk(Value):
    """A part of a trace. The parts of a trace are sent in order of their offsets."""

    trace_id: str = ""
    """Id that the sender chooses, one per trace and session."""
    format: str = ""
    """Format, e.g. "kineto"; "auto" = the format of the reader that recognises it. In the first chunk."""
    rank: int | None = None
    """Rank of the process that recorded the trace. Absent = the rank stated in the trace. In the first chunk."""
    world_size: int | None = None
    """Number of processes of the job. Absent = the number stated in the trace. In the first chunk."""
    offset_bytes: int = 0
    """Position of this part in the trace, bytes."""
    data: bytes = b""
    """The bytes of this part."""
    last: bool = False
    """Whether this is the last part of the trace."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileContent(Value):
    """What is known of a job. A request may hold it wherever it may name a stored profile."""

    workload: Workload | None = None
    """What the job trains."""
    network: Network | None = None
    """The network that the job uses."""
    phase_timings: PhaseTimings | None = None
    """Timed phases of steps."""
    observations: Observations | None = None
    """Measured runs."""
    traces: tuple[TraceReference, ...] = ()
    """Traces, as references."""
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    """Runs of the job beside another job on one device."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Value):
    """A stored profile. Evidence is only appended or retracted."""

    profile_id: str = ""
    """Name that the client chooses: 1 to 128 letters, digits and - .

    _ ~ / of which the first and the last are a letter or digit, without two / in a row. Paths need no escapes for it.
    """
    uid: str = ""
    """Assigned by the server. A new profile with the same name has another uid."""
    revision: int = 0
    """Increases by one with every commit."""
    etag: str = ""
    """Changes with every revision. DeleteProfile requires it."""
    digest: str = ""
    """SHA-256 of the content, hexadecimal. Profiles with the same digest have the same content."""
    create_time: datetime | None = None
    """When the profile was first committed."""
    update_time: datetime | None = None
    """When the profile was last committed."""
    observations_count: int = 0
    """Number of observations, without retracted ones."""
    content: ProfileContent | None = None
    """Content of the profile. Absent in listings and in the basic view."""
    display_name: str = ""
    """Name for people, any text. Empty = none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels, which listings can filter by: up to 32, with keys of 1 to 63 letters, digits and - .

    _ /, and values of at most 128 characters.
    """
    delete_time: datetime | None = None
    """When the profile was deleted. Absent = it is not deleted."""
    purge_time: datetime | None = None
    """When a deleted profile is removed permanently; UndeleteProfile restores it until then.

    Absent = it is not deleted.
    """
    warnings: tuple[Notice, ...] = ()
    """Doubts about the profile's observations. Only GetProfile, with the content, and AppendProfile return them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileSource(Value):
    """The profile that a question is about."""

    profile_id: str | None = None
    """Name of a stored profile."""
    content: ProfileContent | None = None
    """The profile itself. It is not stored, and its digest identifies it."""
    minimum_revision: int | None = None
    """Least revision to answer from.

    With WAIT the call waits for it. If the profile has not reached it by then, or without WAIT at once, the call fails
    with REVISION_NOT_REACHED. Absent = any revision.
    """
    revision: int | None = None
    """Answer from exactly this revision even if there are newer ones.

    Answer from exactly this revision even if there are newer ones, so that the same question has the same answer later.
    Absent = the newest. Must not be given with minimum_revision.
    """
