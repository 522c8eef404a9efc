"""Profiles: everything known of a job. Absence, as on the whole wire: see configuration.proto."""

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
    """Phases of one worker's step, as columns: one row per run that was timed. Usually one row with one worker."""

    configurations: Configurations | None = None
    """The configuration of each run."""
    download_seconds: tuple[float, ...] = ()
    """Mean seconds to receive the parameters."""
    compute_seconds: tuple[float, ...] = ()
    """Mean seconds of forward and backward pass."""
    upload_seconds: tuple[float, ...] = ()
    """Mean seconds to send the gradient, the update not included."""
    update_seconds: tuple[float, ...] = ()
    """Mean seconds to apply the gradient at the server."""
    compute_variation: tuple[float, ...] = ()
    """Coefficient of variation of the compute time, dimensionless. Empty = not known."""
    transfer_variation: tuple[float, ...] = ()
    """Coefficient of variation of the transfer times, dimensionless. Empty = not known."""
    hidden_seconds: tuple[float, ...] = ()
    """Seconds of transfer that ran while the worker computed. Default 0."""
    steps_counts: tuple[int, ...] = ()
    """Steps the means were taken over. Empty or 0 in a row: not known."""
    compute_variation_known: tuple[bool, ...] = ()
    """Rows whose compute_variation is known. Empty = all, where that column is given."""
    transfer_variation_known: tuple[bool, ...] = ()
    """Rows whose transfer_variation is known. Empty = all, where that column is given."""
    numbers: tuple[int, ...] = ()
    """Number of each run within its profile, from 1; assigned by the server, named in RetractEvidence.

    Ignored in requests, so that what GetProfile returned may be sent again.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Observations(LazyValue):
    """Runs that were measured, as columns. A column is empty, has one entry for all rows, or one per row."""

    configurations: Configurations | None = None
    """What ran."""
    steps_per_second: tuple[float, ...] = ()
    """Measured throughput, steps per second.

    Asynchronous and hybrid: mini-batches applied per second by all workers together; otherwise global steps per second.
    """
    measured_at_unix_seconds: tuple[float, ...] = ()
    """When, seconds since 1970 (UTC). Empty or 0 in a row: not known."""
    steps_counts: tuple[int, ...] = ()
    """Steps that were counted. Empty or 0 in a row: not known."""
    step_variation: tuple[float, ...] = ()
    """Coefficient of variation of the step time, dimensionless. Empty = not known."""
    exposed_sync_seconds: tuple[float, ...] = ()
    """Synchronization not hidden by compute, seconds per step. Empty = not known."""
    numbers: tuple[int, ...] = ()
    """Number of each observation within its profile, from 1; assigned by the server, named in RetractEvidence.

    Ignored in requests, so that what GetProfile returned may be sent again.
    """
    step_variation_known: tuple[bool, ...] = ()
    """Rows whose step_variation is known. Empty = all, where that column is given."""
    exposed_sync_known: tuple[bool, ...] = ()
    """Rows whose exposed_sync_seconds is known. Empty = all, where that column is given."""
    measured_memory_bytes: tuple[float, ...] = ()
    """Memory that the fullest device held at most, context and the allocator's cache included.

    Empty or 0 in a row: not known.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceReference(Value):
    """A trace that the server holds."""

    content_sha256: str = ""
    """SHA-256 of its bytes, hexadecimal."""
    format: str = ""
    """Its format, e.g. "kineto"; "auto" = that of the reader which recognises it."""
    rank: int | None = None
    """Rank of the process that recorded it. Absent = as the trace says."""
    world_size: int | None = None
    """Processes of the job when it was recorded. Absent = as the trace says."""
    size_bytes: int = 0
    """Its size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceChunk(Value):
    """A piece of a trace. Pieces of a trace are sent in order of their offset."""

    trace_id: str = ""
    """Chosen by the sender, one per trace and session."""
    format: str = ""
    """Format, e.g. "kineto"; "auto" = that of the reader which recognises it. In the first chunk."""
    rank: int | None = None
    """Rank of the process that recorded it. Absent = as the trace says. In the first chunk."""
    world_size: int | None = None
    """Processes of the job. Absent = as the trace says. In the first chunk."""
    offset_bytes: int = 0
    """Position of this piece in the trace, bytes."""
    data: bytes = b""
    """The bytes."""
    last: bool = False
    """Whether the trace ends here."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileContent(Value):
    """What is known of a job: may stand in a request wherever a stored profile's name may."""

    workload: Workload | None = None
    """What is trained."""
    network: Network | None = None
    """Over what links."""
    phase_timings: PhaseTimings | None = None
    """Timed phases."""
    observations: Observations | None = None
    """Measured runs."""
    traces: tuple[TraceReference, ...] = ()
    """Traces, by reference."""
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    """Runs beside another job on one device."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Value):
    """A stored profile. Append-only, with retraction."""

    profile_id: str = ""
    """Name chosen by the client: 1 to 128 letters, digits and - .

    _ ~ / of which the first and the last are a letter or digit, without two / in a row. It stands in paths as it is.
    """
    uid: str = ""
    """Assigned by the server; another profile under the same name has another uid."""
    revision: int = 0
    """Grows by one with every commit."""
    etag: str = ""
    """Changes with every revision; DeleteProfile asks for it."""
    digest: str = ""
    """SHA-256 of the content, hexadecimal. Same digest, same content."""
    create_time: datetime | None = None
    """When it was first committed."""
    update_time: datetime | None = None
    """When it was last committed."""
    observations_count: int = 0
    """Observations that count (retracted ones do not)."""
    content: ProfileContent | None = None
    """What it holds. Absent in listings and in the basic view."""
    display_name: str = ""
    """Name for people, any text. Empty = none."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels to list by: up to 32, keys of 1 to 63 letters, digits and - . _ /, values of at most 128 characters."""
    delete_time: datetime | None = None
    """When it was deleted. Absent = it was not."""
    purge_time: datetime | None = None
    """When a deleted profile is gone for good; until then UndeleteProfile brings it back.

    Absent = it was not deleted.
    """
    warnings: tuple[Notice, ...] = ()
    """What is doubtful of its observations. Only GetProfile tells it, with the content, and AppendProfile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileSource(Value):
    """Which profile a question is about."""

    profile_id: str | None = None
    """Name of a stored profile."""
    content: ProfileContent | None = None
    """The profile itself; nothing is stored. Its digest identifies it."""
    minimum_revision: int | None = None
    """Do not answer from an older revision: wait for it under WAIT, then REVISION_NOT_REACHED. Absent = any."""
    revision: int | None = None
    """Answer from exactly this revision, though there are newer ones: the same question has the same answer later.

    Absent = the newest. Not with minimum_revision.
    """
