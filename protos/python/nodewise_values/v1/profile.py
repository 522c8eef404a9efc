"""Profiles: everything known of a job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from nodewise_values.v1.configuration import Configurations
from nodewise_values.v1.workload import Network, Workload
from nodewise_values.value import Value

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
class PhaseTimings(Value):
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
    """Coefficient of variation of the compute time, dimensionless. Negative = not known. Empty = not known."""
    transfer_variation: tuple[float, ...] = ()
    """Coefficient of variation of the transfer times, dimensionless. Negative = not known. Empty = not known."""
    hidden_seconds: tuple[float, ...] = ()
    """Seconds of transfer that ran while the worker computed. Default 0."""
    steps_counts: tuple[int, ...] = ()
    """Steps the means were taken over. 0 = not known."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Observations(Value):
    """Runs that were measured, as columns. A column is empty, has one entry for all rows, or one per row."""

    configurations: Configurations | None = None
    """What ran."""
    steps_per_second: tuple[float, ...] = ()
    """Measured throughput, steps per second.

    Asynchronous and hybrid: mini-batches applied per second by all workers together; otherwise global steps per second.
    """
    measured_at_unix_seconds: tuple[float, ...] = ()
    """When, seconds since 1970 (UTC). 0 = not known."""
    steps_counts: tuple[int, ...] = ()
    """Steps that were counted. 0 = not known."""
    step_variation: tuple[float, ...] = ()
    """Coefficient of variation of the step time, dimensionless. Negative = not known. Empty = not known."""
    exposed_sync_seconds: tuple[float, ...] = ()
    """Synchronisation not hidden by compute, seconds per step. Negative = not known. Empty = not known."""
    numbers: tuple[int, ...] = ()
    """Number of each observation within its profile, from 1; assigned by the server, named in RetractObservations.

    Ignored in requests, so that what GetProfile returned may be sent inline.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceReference(Value):
    """A trace that the server holds."""

    content_sha256: str = ""
    """SHA-256 of its bytes, hexadecimal."""
    format: str = ""
    """Its format, e.g. "kineto"; "auto" = that of the reader which recognises it."""
    rank: int = 0
    """Rank of the process that recorded it; -1 = as the trace says."""
    world_size: int = 0
    """Processes of the job when it was recorded; 0 = as the trace says."""
    size_bytes: int = 0
    """Its size in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceChunk(Value):
    """A piece of a trace. Pieces of a trace are sent in order of their offset."""

    trace_id: str = ""
    """Chosen by the sender, one per trace and session."""
    format: str = ""
    """Format, e.g. "kineto"; "auto" = that of the reader which recognises it. In the first chunk."""
    rank: int = 0
    """Rank of the process that recorded it; -1 = as the trace says. In the first chunk."""
    world_size: int = 0
    """Processes of the job; 0 = as the trace says. In the first chunk."""
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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Profile(Value):
    """A stored profile. Append-only, with retraction."""

    profile_id: str = ""
    """Name chosen by the client: 1 to 128 characters, letters, digits, space and .

    _ / + : @ = , ( ) # -, the first a letter or digit, the last no space.
    """
    uid: str = ""
    """Assigned by the server; another profile under the same name has another uid."""
    revision: int = 0
    """Grows by one with every commit."""
    etag: str = ""
    """Changes with every revision; may be given to DeleteProfile."""
    digest: str = ""
    """SHA-256 of the content, hexadecimal. Same digest, same content."""
    create_time: datetime | None = None
    """When it was first committed."""
    update_time: datetime | None = None
    """When it was last committed."""
    observations_count: int = 0
    """Observations that count (retracted ones do not)."""
    content: ProfileContent | None = None
    """What it holds. Absent in listings."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileSource(Value):
    """Which profile a question is about."""

    profile_id: str | None = None
    """Name of a stored profile."""
    inline: ProfileContent | None = None
    """The profile itself; nothing is stored. Its revision is its digest."""
    minimum_revision: int = 0
    """Refuse to answer from an older revision. 0 = any."""
