from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1 import workload_pb2 as _workload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

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
    __slots__ = ("sequence_number", "workload", "network", "phase_timings", "observations", "trace_chunks", "commit")
    SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    PHASE_TIMINGS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    TRACE_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    sequence_number: int
    workload: _workload_pb2.Workload
    network: _workload_pb2.Network
    phase_timings: _profile_pb2.PhaseTimings
    observations: _profile_pb2.Observations
    trace_chunks: _containers.RepeatedCompositeFieldContainer[_profile_pb2.TraceChunk]
    commit: bool
    def __init__(self, sequence_number: _Optional[int] = ..., workload: _Optional[_Union[_workload_pb2.Workload, _Mapping]] = ..., network: _Optional[_Union[_workload_pb2.Network, _Mapping]] = ..., phase_timings: _Optional[_Union[_profile_pb2.PhaseTimings, _Mapping]] = ..., observations: _Optional[_Union[_profile_pb2.Observations, _Mapping]] = ..., trace_chunks: _Optional[_Iterable[_Union[_profile_pb2.TraceChunk, _Mapping]]] = ..., commit: bool = ...) -> None: ...

class IngestProfileResponse(_message.Message):
    __slots__ = ("durable_sequence_number", "revision", "observations_count", "committed_sequence_number")
    DURABLE_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_SEQUENCE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    durable_sequence_number: int
    revision: int
    observations_count: int
    committed_sequence_number: int
    def __init__(self, durable_sequence_number: _Optional[int] = ..., revision: _Optional[int] = ..., observations_count: _Optional[int] = ..., committed_sequence_number: _Optional[int] = ...) -> None: ...

class AppendProfileRequest(_message.Message):
    __slots__ = ("profile_id", "request_id", "content")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    request_id: str
    content: _profile_pb2.ProfileContent
    def __init__(self, profile_id: _Optional[str] = ..., request_id: _Optional[str] = ..., content: _Optional[_Union[_profile_pb2.ProfileContent, _Mapping]] = ...) -> None: ...

class AppendProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class RetractObservationsRequest(_message.Message):
    __slots__ = ("profile_id", "request_id", "numbers", "reason")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    request_id: str
    numbers: _containers.RepeatedScalarFieldContainer[int]
    reason: str
    def __init__(self, profile_id: _Optional[str] = ..., request_id: _Optional[str] = ..., numbers: _Optional[_Iterable[int]] = ..., reason: _Optional[str] = ...) -> None: ...

class RetractObservationsResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class GetProfileRequest(_message.Message):
    __slots__ = ("profile_id",)
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    def __init__(self, profile_id: _Optional[str] = ...) -> None: ...

class GetProfileResponse(_message.Message):
    __slots__ = ("profile",)
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ...) -> None: ...

class ListProfilesRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "name_prefix")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    NAME_PREFIX_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    name_prefix: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., name_prefix: _Optional[str] = ...) -> None: ...

class ListProfilesResponse(_message.Message):
    __slots__ = ("profiles", "next_page_token")
    PROFILES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    profiles: _containers.RepeatedCompositeFieldContainer[_profile_pb2.Profile]
    next_page_token: str
    def __init__(self, profiles: _Optional[_Iterable[_Union[_profile_pb2.Profile, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class DeleteProfileRequest(_message.Message):
    __slots__ = ("profile_id", "etag")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    etag: str
    def __init__(self, profile_id: _Optional[str] = ..., etag: _Optional[str] = ...) -> None: ...

class DeleteProfileResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
