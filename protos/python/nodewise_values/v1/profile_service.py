"""ProfileService: stores profiles durably, and each batch once.

For what an absent or empty value means, see configuration.proto.
"""

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
    """How much of a profile a reply holds."""

    BASIC = "basic"
    """No content."""
    FACTS = "facts"
    """Facts, timed phases and references to traces, but no observations."""
    FULL = "full"
    """The full content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestProfileRequest(Value):
    """One message of an ingest stream."""

    open: OpenSession | None = None
    """Opens or resumes a session. The first message of every stream, and only the first."""
    batch: ProfileBatch | None = None
    """Adds a batch to the session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpenSession(Value):
    """Opens or resumes a session."""

    profile_id: str = ""
    """The profile that the session adds to."""
    session_id: str = ""
    """Id that the client chooses, e.g. a UUID, with the alphabet of profile_id. Unique within the profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProfileBatch(Value):
    """A numbered batch."""

    sequence_number: int = 0
    """1 for the first batch of a session; each further batch increases it by 1."""
    workload: Workload | None = None
    """Facts about the workload. They must agree with facts already stored."""
    network: Network | None = None
    """Facts about the network. They must agree with facts already stored."""
    phase_timings: PhaseTimings | None = None
    """Timed phases of steps."""
    observations: Observations | None = None
    """Measured runs."""
    trace_chunks: tuple[TraceChunk, ...] = ()
    """Parts of traces."""
    commit: bool = False
    """Ends the unit: this batch and all batches since the last commit take effect, and the revision increases."""
    display_name: str | None = None
    """Name for people, set with this unit. Absent = unchanged."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels to set with this unit. An empty value removes its label; other labels stay."""
    shared_runs: tuple[SharedDeviceRun, ...] = ()
    """Runs of the job beside another job on one device."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestState(Value):
    """Progress of a session."""

    durable_sequence_number: int = 0
    """Highest number whose batch, and all batches before it, are stored durably."""
    committed_sequence_number: int = 0
    """Highest number whose batch the revision includes."""
    revision: int = 0
    """Revision of the profile; 0 before the first commit."""
    observations_count: int = 0
    """Number of observations in that revision."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestProfileResponse(Value):
    """The server's reply to one request of an ingest stream."""

    state: IngestState | None = None
    """Progress of the session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestBatchRequest(Value):
    """Ingests one batch of a session."""

    profile_id: str = ""
    """The profile that the session adds to."""
    session_id: str = ""
    """Id that the client chooses, e.g. a UUID, with the alphabet of profile_id. Unique within the profile."""
    batch: ProfileBatch | None = None
    """The batch. Absent = only return the session's progress."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class IngestBatchResponse(Value):
    """The session after the batch."""

    state: IngestState | None = None
    """Progress of the session."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileRequest(Value):
    """Appends in one call."""

    profile_id: str = ""
    """Name of the profile, which is created if it does not exist."""
    request_id: str = ""
    """Id that the client chooses, e.g. a UUID, with the alphabet of profile_id. With it, a retry changes nothing."""
    content: ProfileContent | None = None
    """Evidence to add. Its traces must be empty: IngestProfile and IngestBatch take traces."""
    display_name: str | None = None
    """Name for people. Absent = unchanged."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels to set. An empty value removes its label; other labels stay."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AppendProfileResponse(Value):
    """The profile after an append."""

    profile: Profile | None = None
    """The profile, without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractEvidenceRequest(Value):
    """Retracts evidence. At least one of the lists must have an entry."""

    profile_id: str = ""
    """Name of the profile."""
    request_id: str = ""
    """Id that the client chooses, e.g. a UUID, with the alphabet of profile_id. With it, a retry changes nothing."""
    observation_numbers: tuple[int, ...] = ()
    """Numbers of the observations to retract."""
    phase_timing_numbers: tuple[int, ...] = ()
    """Numbers of the timed runs to retract."""
    fact_paths: tuple[str, ...] = ()
    """Facts to retract, as paths from the content.

    Facts to retract, as paths from the content: "workload.parameter_bytes", "workload.transformer",
    "network.half_duplex". Another value may be stated afterwards.
    """
    trace_sha256s: tuple[str, ...] = ()
    """Traces to retract, by content_sha256."""
    reason: str = ""
    """Reason for the retraction, stored in the history."""
    shared_run_sha256s: tuple[str, ...] = ()
    """Runs beside another job to retract, by content_sha256."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RetractEvidenceResponse(Value):
    """The profile after a retraction."""

    profile: Profile | None = None
    """The profile, without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileRequest(Value):
    """Requests a profile."""

    profile_id: str = ""
    """Name of the profile."""
    view: ProfileView | None = None
    """How much of the profile the reply holds."""
    page_size: int | None = None
    """Most observations in the reply, up to 20,000. Absent = 20,000."""
    page_token: str = ""
    """Token from an earlier reply, for the observations that follow, of the same revision. Empty = the first page."""
    revision: int | None = None
    """Revision to return. Absent = the newest."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GetProfileResponse(Value):
    """A profile."""

    profile: Profile | None = None
    """The profile. On pages after the first, its content holds only observations."""
    next_page_token: str = ""
    """Token of the next page of observations. Empty = this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesRequest(Value):
    """Lists profiles."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""
    name_prefix: str = ""
    """Only profiles whose names start with this."""
    labels: tuple[str, ...] = ()
    """Only profiles with all of these labels: "key" or "key=value"."""
    show_deleted: bool = False
    """Whether to list deleted profiles that can be restored as well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListProfilesResponse(Value):
    """A page of profiles."""

    profiles: tuple[Profile, ...] = ()
    """Profiles by name, without content."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WatchProfilesRequest(Value):
    """Watches profiles."""

    name_prefix: str = ""
    """Only profiles whose names start with this."""
    labels: tuple[str, ...] = ()
    """Only profiles with all of these labels: "key" or "key=value"."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WatchProfilesResponse(Value):
    """Profiles in their present state at first, then changed profiles."""

    profiles: tuple[Profile, ...] = ()
    """Profiles that are new to the caller or have changed, without content. A deleted profile has its delete_time."""
    caught_up: bool = False
    """All profiles that existed at the start have been sent; from now on the stream sends changes.

    True in one message.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileRequest(Value):
    """Deletes a profile."""

    profile_id: str = ""
    """Name of the profile."""
    etag: str = ""
    """Etag of the profile: the call deletes only if it is still the same; "*" = any. Must be given."""
    allow_missing: bool = False
    """Whether a profile that does not exist is no error."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class DeleteProfileResponse(Value):
    """The deleted profile."""

    profile: Profile | None = None
    """The profile with its delete and purge times, without content. Absent = there was no such profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UndeleteProfileRequest(Value):
    """Restores a profile."""

    profile_id: str = ""
    """Name of the profile."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class UndeleteProfileResponse(Value):
    """The restored profile."""

    profile: Profile | None = None
    """The profile, without its content."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListUsageRequest(Value):
    """Lists the usage of namespaces."""

    page_size: int | None = None
    """Most entries in the reply, up to 1000. Absent = 100."""
    page_token: str = ""
    """Token of the next page, from an earlier reply. Empty = the first page."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class NamespaceUsage(Value):
    """What a namespace stores.

    A namespace is the first segment of profile names. Deleted profiles count until they are purged.
    """

    namespace: str = ""
    """Name of the namespace. Empty = profiles whose names have no slash."""
    stored_bytes: int = 0
    """Bytes of evidence, including an estimate of the store's overhead."""
    trace_bytes: int = 0
    """Bytes of traces as they were sent, including traces that are still being sent.

    A trace that two sessions sent counts twice.
    """
    profiles_count: int = 0
    """Number of profiles, including those without a commit."""
    stored_bytes_quota: int = 0
    """Limit of stored_bytes. 0 = no limit."""
    trace_bytes_quota: int = 0
    """Limit of trace_bytes. 0 = no limit."""
    profiles_count_quota: int = 0
    """Limit of profiles_count. 0 = no limit."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ListUsageResponse(Value):
    """A page of usage."""

    namespaces: tuple[NamespaceUsage, ...] = ()
    """Namespaces that store anything, by name."""
    next_page_token: str = ""
    """Token of the next page. Empty = this is the last page."""
