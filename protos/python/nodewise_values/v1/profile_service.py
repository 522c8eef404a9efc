"""ProfileService: profiles come in, durably and once. Absence, as on the whole wire: see configuration.proto."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nodewise_values.v1.profile import Observations, PhaseTimings, Profile, ProfileContent, TraceChunk
from nodewise_values.v1.sharing import SharedDeviceRun
from nodewise_values.v1.workload import Network, Workload
from nodewise_values.value import Value, Word

__all__ = [
    "AppendProfileRequest",
    "AppendProfileResponse",
    "DeleteProfileRequest",
    "DeleteProfileResponse",
    "GetProfileRequest",
    "GetProfileResponse",
    "IngestBatchRequest",
    "IngestBatchResponse",
    "IngestProfileRequest",
    "IngestProfileResponse",
    "IngestState",
    "ListProfilesRequest",
    "ListProfilesResponse",
    "ListUsageRequest",
    "ListUsageResponse",
    "NamespaceUsage",
    "OpenSession",
    "ProfileBatch",
    "ProfileView",
    "RetractEvidenceRequest",
    "RetractEvidenceResponse",
    "UndeleteProfileRequest",
    "UndeleteProfileResponse",
    "WatchProfilesRequest",
    "WatchProfilesResponse",
]


class ProfileView(Word):
    """How much of a profile is wanted."""

    BASIC = "basic"
    """No content."""
    FACTS = "facts"
    """Facts, timed phases and references to traces, no observations."""
    FULL = "full"
    """All of it."""


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
    display_name: str | None = None
    """Name for people, from this unit on. Absent = as it is."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels to set from this unit on; an empty value takes its label away, others stay."""
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    """Runs beside another job on one device."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestState(Value):
    """How far a session is."""

    durable_sequence_number: int = 0
    """Highest number that is stored durably together with all before it."""
    committed_sequence_number: int = 0
    """Highest number that is part of the revision."""
    revision: int = 0
    """Revision of the profile; 0 before the first commit."""
    observations_count: int = 0
    """Observations that count in that revision."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestProfileResponse(Value):
    """The server's side of an ingest stream: one reply per request."""

    state: IngestState | None = None
    """How far the session is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestBatchRequest(Value):
    """One batch of a session."""

    profile_id: str = ""
    """The profile that the session adds to."""
    session_id: str = ""
    """Chosen by the client, e.g. a UUID; same alphabet as profile_id. Unique within the profile."""
    batch: ProfileBatch | None = None
    """The batch. Absent = only tell how far the session is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestBatchResponse(Value):
    """The session after the batch."""

    state: IngestState | None = None
    """How far the session is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileRequest(Value):
    """Appends in one call."""

    profile_id: str = ""
    """The profile; created if it does not exist."""
    request_id: str = ""
    """Chosen by the client, e.g. a UUID; same alphabet as profile_id. Makes a retry harmless."""
    content: ProfileContent | None = None
    """What to add. Traces must be empty: they come by IngestProfile or IngestBatch."""
    display_name: str | None = None
    """Name for people. Absent = as it is."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels to set; an empty value takes its label away, others stay."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileResponse(Value):
    """The profile after an append."""

    profile: Profile | None = None
    """Without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractEvidenceRequest(Value):
    """Takes evidence out: at least one entry of one list."""

    profile_id: str = ""
    """The profile."""
    request_id: str = ""
    """Chosen by the client, e.g. a UUID; same alphabet as profile_id. Makes a retry harmless."""
    observation_numbers: tuple[int, ...] = ()
    """Numbers of observations."""
    phase_timing_numbers: tuple[int, ...] = ()
    """Numbers of runs whose phases were timed."""
    fact_paths: tuple[str, ...] = ()
    """Facts, as paths from the content: "workload.parameter_bytes", "workload.transformer", "network.half_duplex".

    Another value may be stated afterwards.
    """
    trace_sha256s: tuple[str, ...] = ()
    """Traces, by content_sha256."""
    reason: str = ""
    """Why, kept in the history."""
    shared_run_sha256s: tuple[str, ...] = ()
    """Runs beside another job, by content_sha256."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractEvidenceResponse(Value):
    """The profile after a retraction."""

    profile: Profile | None = None
    """Without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileRequest(Value):
    """Reads a profile."""

    profile_id: str = ""
    """The profile."""
    view: ProfileView | None = None
    """How much of it."""
    page_size: int | None = None
    """At most this many observations, up to 20,000. Absent = 20,000."""
    page_token: str = ""
    """From an earlier reply: the observations that follow, of the same revision."""
    revision: int | None = None
    """As it was at this revision. Absent = as it is."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileResponse(Value):
    """A profile."""

    profile: Profile | None = None
    """On pages after the first its content holds observations alone."""
    next_page_token: str = ""
    """For the next page of observations. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesRequest(Value):
    """Lists profiles."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""
    name_prefix: str = ""
    """Only names that start so."""
    labels: tuple[str, ...] = ()
    """Only profiles with all of these labels: "key", or "key=value"."""
    show_deleted: bool = False
    """Deleted profiles that can be brought back as well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesResponse(Value):
    """Profiles."""

    profiles: tuple[Profile, ...] = ()
    """By name, without content."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WatchProfilesRequest(Value):
    """Watches profiles."""

    name_prefix: str = ""
    """Only names that start so."""
    labels: tuple[str, ...] = ()
    """Only profiles with all of these labels: "key", or "key=value"."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WatchProfilesResponse(Value):
    """Profiles as they are, then as they change."""

    profiles: tuple[Profile, ...] = ()
    """Profiles that are new to the caller or have changed, without content.

    Profiles that are new to the caller or have changed, without content; one that was deleted has its delete_time.
    """
    caught_up: bool = False
    """All profiles as they were at the start have been told; from now on there are changes. True in one message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileRequest(Value):
    """Deletes a profile."""

    profile_id: str = ""
    """The profile."""
    etag: str = ""
    """Its etag: delete only if this is it still; "*" = whatever it is. Must be given."""
    allow_missing: bool = False
    """That there is no such profile is no error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileResponse(Value):
    """The deletion."""

    profile: Profile | None = None
    """The profile with its delete and purge times, without content. Absent = there was none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UndeleteProfileRequest(Value):
    """Brings a profile back."""

    profile_id: str = ""
    """The profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UndeleteProfileResponse(Value):
    """The profile that is back."""

    profile: Profile | None = None
    """Without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListUsageRequest(Value):
    """Which namespaces."""

    page_size: int | None = None
    """At most this many, up to 1000. Absent = 100."""
    page_token: str = ""
    """From an earlier reply."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamespaceUsage(Value):
    """What a namespace stores: the first segment of its profiles' names. What is deleted counts until it is purged."""

    namespace: str = ""
    """Its name. Empty = profiles whose names have no slash."""
    stored_bytes: int = 0
    """Evidence, and about what it takes beside its content."""
    trace_bytes: int = 0
    """Traces as they were sent, those too that are arriving; one that two sessions sent counts twice."""
    profiles_count: int = 0
    """Profiles, those too of which nothing was committed yet."""
    stored_bytes_quota: int = 0
    """Most of evidence. 0 = no limit."""
    trace_bytes_quota: int = 0
    """Most of traces. 0 = no limit."""
    profiles_count_quota: int = 0
    """Most profiles. 0 = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListUsageResponse(Value):
    """Usage."""

    namespaces: tuple[NamespaceUsage, ...] = ()
    """By name, of those that store anything."""
    next_page_token: str = ""
    """For the next page. Empty = this was the last."""
