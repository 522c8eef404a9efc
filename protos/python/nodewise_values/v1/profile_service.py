"""ProfileService: profiles come in, durably and once."""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.profile import Observations, PhaseTimings, Profile, ProfileContent, TraceChunk
from nodewise_values.v1.workload import Network, Workload
from nodewise_values.value import Value

__all__ = [
    "AppendProfileRequest",
    "AppendProfileResponse",
    "DeleteProfileRequest",
    "DeleteProfileResponse",
    "GetProfileRequest",
    "GetProfileResponse",
    "IngestProfileRequest",
    "IngestProfileResponse",
    "ListProfilesRequest",
    "ListProfilesResponse",
    "OpenSession",
    "ProfileBatch",
    "RetractObservationsRequest",
    "RetractObservationsResponse",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestProfileRequest(Value):
    """One message of an ingest stream."""

    open: OpenSession | None = None
    """Opens or resumes a session. The first message of every stream, and only the first."""
    batch: ProfileBatch | None = None
    """Adds to the session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpenSession(Value):
    """Opens or resumes a session."""

    profile_id: str = ""
    """The profile that the session adds to."""
    session_id: str = ""
    """Chosen by the client, e.g. a UUID; same alphabet as profile_id. Unique within the profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileBatch(Value):
    """A numbered batch."""

    sequence_number: int = 0
    """1 for the first batch of a session, then one more each."""
    workload: Workload | None = None
    """Facts of the workload. Facts already known must agree."""
    network: Network | None = None
    """Facts of the network. Facts already known must agree."""
    phase_timings: PhaseTimings | None = None
    """Timed phases."""
    observations: Observations | None = None
    """Measured runs."""
    trace_chunks: tuple[TraceChunk, ...] = ()
    """Pieces of traces."""
    commit: bool = False
    """Ends the unit: this and all batches since the last commit count from now on, and the revision moves."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestProfileResponse(Value):
    """The server's side of an ingest stream: one reply per request."""

    durable_sequence_number: int = 0
    """Highest number that is stored durably together with all before it."""
    revision: int = 0
    """Revision of the profile. 0 = nothing was ever committed."""
    observations_count: int = 0
    """Observations that count in that revision."""
    committed_sequence_number: int = 0
    """Highest number that is part of that revision."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileRequest(Value):
    """Appends in one call."""

    profile_id: str = ""
    """The profile; created if it does not exist."""
    request_id: str = ""
    """Chosen by the client, e.g. a UUID; same alphabet as profile_id. Makes a retry harmless."""
    content: ProfileContent | None = None
    """What to add. Traces must be empty: they come by IngestProfile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileResponse(Value):
    """The profile after an append."""

    profile: Profile | None = None
    """Without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractObservationsRequest(Value):
    """Takes observations out."""

    profile_id: str = ""
    """The profile."""
    request_id: str = ""
    """Chosen by the client; makes a retry harmless."""
    numbers: tuple[int, ...] = ()
    """Numbers of the observations."""
    reason: str = ""
    """Why, kept in the history. At most 512 characters."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractObservationsResponse(Value):
    """The profile after a retraction."""

    profile: Profile | None = None
    """Without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileRequest(Value):
    """Reads a profile."""

    profile_id: str = ""
    """The profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileResponse(Value):
    """A profile."""

    profile: Profile | None = None
    """With its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesRequest(Value):
    """Lists profiles."""

    page_size: int = 0
    """At most this many, up to 1000. 0 = 100."""
    page_token: str = ""
    """From an earlier reply."""
    name_prefix: str = ""
    """Only names that start so."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesResponse(Value):
    """Profiles."""

    profiles: tuple[Profile, ...] = ()
    """By name, without content."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileRequest(Value):
    """Deletes a profile."""

    profile_id: str = ""
    """The profile."""
    etag: str = ""
    """Delete only if this is still its etag. Empty = whatever it is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileResponse(Value):
    """Nothing to say."""
