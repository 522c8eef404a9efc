from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1 import sharing_pb2 as _sharing_pb2
from nodewise_protos.v1 import workload_pb2 as _workload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProfileView(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROFILE_VIEW_UNSPECIFIED: _ClassVar[ProfileView]
    PROFILE_VIEW_BASIC: _ClassVar[ProfileView]
    PROFILE_VIEW_FACTS: _ClassVar[ProfileView]
    PROFILE_VIEW_FULL: _ClassVar[ProfileView]
PROFILE_VIEW_UNSPECIFIED: ProfileView
PROFILE_VIEW_BASIC: ProfileView
PROFILE_VIEW_FACTS: ProfileView
PROFILE_VIEW_FULL: ProfileView

class IngestProfileRequest(_message.Message):
    __slots__ = ("open", "batch")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    open: OpenSession
    batch: ProfileBatch
    def __init__(self, open: _Optional[_Union[OpenSession, _Mapping]] = ..., batch: _Optional[_Union[ProfileBatch, _Mapping]] = ...) -> None: ...

class OpenSession(_message.Message):
    __slots__ = ("profile_id", "session_id")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    session_id: str
    def __init__(self, profile_id: _Optional[str] = ..., session_id: _Optional[str] = ...) -> None: ...

class ProfileBatch(_message.Message):
    __slots__ = ("sequence_number", "workload", "network", "phase_timings", "observations", "trace_chunks", "commit", "display_name", "labels", "shared_runs")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    PHASE_TIMINGS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    TRACE_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SHARED_RUNS_FIELD_NUMBER: _ClassVar[int]
    sequence_number: int
    workload: _workload_pb2.Workload
    network: _workload_pb2.Network
    phase_timings: _profile_pb2.PhaseTimings
    observations: _profile_pb2.Observations
    trace_chunks: _containers.RepeatedCompositeFieldContainer[_profile_pb2.TraceChunk]
    commit: bool
    display_name: str
    labels: _containers.ScalarMap[str, str]
    shared_runs: _containers.RepeatedCompositeFieldContainer[_sharing_pb2.SharedDeviceRun]
    def __init__(self, sequence_number: _Optional[int] = ..., workload: _Optional[_Union[_workload_pb2.Workload, _Mapping]] = ..., network: _Optional[_Union[_workload_pb2.Network, _Mapping]] = ..., phase_timings: _Optional[_Union[_profile_pb2.PhaseTimings, _Mapping]] = ..., observations: _Optional[_Union[_profile_pb2.Observations, _Mapping]] = ..., trace_chunks: _Optional[_Iterable[_Union[_profile_pb2.TraceChunk, _Mapping]]] = ..., commit: bool = ..., display_name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., shared_runs: _Optional[_Iterable[_Union[_sharing_pb2.SharedDeviceRun, _Mapping]]] = ...) -> None: ...

class IngestState(_message.Message):
    __slots__ = ("durable_sequence_number", "committed_sequence_number", "revision", "observations_count")
    DURABLE_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    durable_sequence_number: int
    committed_sequence_number: int
    revision: int
    observations_count: int
    def __init__(self, durable_sequence_number: _Optional[int] = ..., committed_sequence_number: _Optional[int] = ..., revision: _Optional[int] = ..., observations_count: _Optional[int] = ...) -> None: ...

class IngestProfileResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: IngestState
    def __init__(self, state: _Optional[_Union[IngestState, _Mapping]] = ...) -> None: ...

class IngestBatchRequest(_message.Message):
    __slots__ = ("profile_id", "session_id", "batch")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    SESSION_ID_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    session_id: str
    batch: ProfileBatch
    def __init__(self, profile_id: _Optional[str] = ..., session_id: _Optional[str] = ..., batch: _Optional[_Union[ProfileBatch, _Mapping]] = ...) -> None: ...

class IngestBatchResponse(_message.Message):
    __slots__ = ("state",)
    STATE_FIELD_NUMBER: _ClassVar[int]
    state: IngestState
    def __init__(self, state: _Optional[_Union[IngestState, _Mapping]] = ...) -> None: ...

class AppendProfileRequest(_message.Message):
    __slots__ = ("profile_id", "request_id", "content", "display_name", "labels")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    request_id: str
    content: _profile_pb2.ProfileContent
    display_name: str
    labels: _containers.ScalarMap[str, str]
    def __init__(self, profile_id: _Optional[str] = ..., request_id: _Optional[str] = ..., content: _Optional[_Union[_profile_pb2.ProfileContent, _Mapping]] = ..., display_name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ...) -> None: ...

class AppendProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class RetractEvidenceRequest(_message.Message):
    __slots__ = ("profile_id", "request_id", "observation_numbers", "phase_timing_numbers", "fact_paths", "trace_sha256s", "reason", "shared_run_sha256s")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    OBSERVATION_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    PHASE_TIMING_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    FACT_PATHS_FIELD_NUMBER: _ClassVar[int]
    TRACE_SHA256S_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SHARED_RUN_SHA256S_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    request_id: str
    observation_numbers: _containers.RepeatedScalarFieldContainer[int]
    phase_timing_numbers: _containers.RepeatedScalarFieldContainer[int]
    fact_paths: _containers.RepeatedScalarFieldContainer[str]
    trace_sha256s: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    shared_run_sha256s: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, profile_id: _Optional[str] = ..., request_id: _Optional[str] = ..., observation_numbers: _Optional[_Iterable[int]] = ..., phase_timing_numbers: _Optional[_Iterable[int]] = ..., fact_paths: _Optional[_Iterable[str]] = ..., trace_sha256s: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., shared_run_sha256s: _Optional[_Iterable[str]] = ...) -> None: ...

class RetractEvidenceResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class GetProfileRequest(_message.Message):
    __slots__ = ("profile_id", "view", "page_size", "page_token", "revision")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    VIEW_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    view: ProfileView
    page_size: int
    page_token: str
    revision: int
    def __init__(self, profile_id: _Optional[str] = ..., view: _Optional[_Union[ProfileView, str]] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., revision: _Optional[int] = ...) -> None: ...

class GetProfileResponse(_message.Message):
    __slots__ = ("profile", "next_page_token")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    next_page_token: str
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class ListProfilesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "name_prefix", "labels", "show_deleted")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SHOW_DELETED_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    name_prefix: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    show_deleted: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., name_prefix: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ..., show_deleted: bool = ...) -> None: ...

class ListProfilesResponse(_message.Message):
    __slots__ = ("profiles", "next_page_token")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[_profile_pb2.Profile]
    next_page_token: str
    def __init__(self, profiles: _Optional[_Iterable[_Union[_profile_pb2.Profile, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class WatchProfilesRequest(_message.Message):
    __slots__ = ("name_prefix", "labels")
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    name_prefix: str
    labels: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name_prefix: _Optional[str] = ..., labels: _Optional[_Iterable[str]] = ...) -> None: ...

class WatchProfilesResponse(_message.Message):
    __slots__ = ("profiles", "caught_up")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    CAUGHT_UP_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[_profile_pb2.Profile]
    caught_up: bool
    def __init__(self, profiles: _Optional[_Iterable[_Union[_profile_pb2.Profile, _Mapping]]] = ..., caught_up: bool = ...) -> None: ...

class DeleteProfileRequest(_message.Message):
    __slots__ = ("profile_id", "etag", "allow_missing")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    ALLOW_MISSING_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    etag: str
    allow_missing: bool
    def __init__(self, profile_id: _Optional[str] = ..., etag: _Optional[str] = ..., allow_missing: bool = ...) -> None: ...

class DeleteProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class UndeleteProfileRequest(_message.Message):
    __slots__ = ("profile_id",)
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    def __init__(self, profile_id: _Optional[str] = ...) -> None: ...

class UndeleteProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class ListUsageRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class NamespaceUsage(_message.Message):
    __slots__ = ("namespace", "stored_bytes", "trace_bytes", "profiles_count", "stored_bytes_quota", "trace_bytes_quota", "profiles_count_quota")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_FIELD_NUMBER: _ClassVar[int]
    TRACE_BYTES_FIELD_NUMBER: _ClassVar[int]
    PROFILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    STORED_BYTES_QUOTA_FIELD_NUMBER: _ClassVar[int]
    TRACE_BYTES_QUOTA_FIELD_NUMBER: _ClassVar[int]
    PROFILES_COUNT_QUOTA_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    stored_bytes: int
    trace_bytes: int
    profiles_count: int
    stored_bytes_quota: int
    trace_bytes_quota: int
    profiles_count_quota: int
    def __init__(self, namespace: _Optional[str] = ..., stored_bytes: _Optional[int] = ..., trace_bytes: _Optional[int] = ..., profiles_count: _Optional[int] = ..., stored_bytes_quota: _Optional[int] = ..., trace_bytes_quota: _Optional[int] = ..., profiles_count_quota: _Optional[int] = ...) -> None: ...

class ListUsageResponse(_message.Message):
    __slots__ = ("namespaces", "next_page_token")
    NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespaces: _containers.RepeatedCompositeFieldContainer[NamespaceUsage]
    next_page_token: str
    def __init__(self, namespaces: _Optional[_Iterable[_Union[NamespaceUsage, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
