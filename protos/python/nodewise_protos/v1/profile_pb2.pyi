import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import sharing_pb2 as _sharing_pb2
from nodewise_protos.v1 import workload_pb2 as _workload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PhaseTimings(_message.Message):
    __slots__ = ("configurations", "download_seconds", "compute_seconds", "upload_seconds", "update_seconds", "compute_variation", "transfer_variation", "hidden_seconds", "steps_counts", "compute_variation_known", "transfer_variation_known", "numbers")
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    DOWNLOAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_VARIATION_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_VARIATION_FIELD_NUMBER: _ClassVar[int]
    HIDDEN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_VARIATION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_VARIATION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    configurations: _configuration_pb2.Configurations
    download_seconds: _containers.RepeatedScalarFieldContainer[float]
    compute_seconds: _containers.RepeatedScalarFieldContainer[float]
    upload_seconds: _containers.RepeatedScalarFieldContainer[float]
    update_seconds: _containers.RepeatedScalarFieldContainer[float]
    compute_variation: _containers.RepeatedScalarFieldContainer[float]
    transfer_variation: _containers.RepeatedScalarFieldContainer[float]
    hidden_seconds: _containers.RepeatedScalarFieldContainer[float]
    steps_counts: _containers.RepeatedScalarFieldContainer[int]
    compute_variation_known: _containers.RepeatedScalarFieldContainer[bool]
    transfer_variation_known: _containers.RepeatedScalarFieldContainer[bool]
    numbers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., download_seconds: _Optional[_Iterable[float]] = ..., compute_seconds: _Optional[_Iterable[float]] = ..., upload_seconds: _Optional[_Iterable[float]] = ..., update_seconds: _Optional[_Iterable[float]] = ..., compute_variation: _Optional[_Iterable[float]] = ..., transfer_variation: _Optional[_Iterable[float]] = ..., hidden_seconds: _Optional[_Iterable[float]] = ..., steps_counts: _Optional[_Iterable[int]] = ..., compute_variation_known: _Optional[_Iterable[bool]] = ..., transfer_variation_known: _Optional[_Iterable[bool]] = ..., numbers: _Optional[_Iterable[int]] = ...) -> None: ...

class Observations(_message.Message):
    __slots__ = ("configurations", "steps_per_second", "measured_at_unix_seconds", "steps_counts", "step_variation", "exposed_sync_seconds", "numbers", "step_variation_known", "exposed_sync_known", "measured_memory_bytes")
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    MEASURED_AT_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    STEP_VARIATION_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_SYNC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    STEP_VARIATION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_SYNC_KNOWN_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    configurations: _configuration_pb2.Configurations
    steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    measured_at_unix_seconds: _containers.RepeatedScalarFieldContainer[float]
    steps_counts: _containers.RepeatedScalarFieldContainer[int]
    step_variation: _containers.RepeatedScalarFieldContainer[float]
    exposed_sync_seconds: _containers.RepeatedScalarFieldContainer[float]
    numbers: _containers.RepeatedScalarFieldContainer[int]
    step_variation_known: _containers.RepeatedScalarFieldContainer[bool]
    exposed_sync_known: _containers.RepeatedScalarFieldContainer[bool]
    measured_memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., steps_per_second: _Optional[_Iterable[float]] = ..., measured_at_unix_seconds: _Optional[_Iterable[float]] = ..., steps_counts: _Optional[_Iterable[int]] = ..., step_variation: _Optional[_Iterable[float]] = ..., exposed_sync_seconds: _Optional[_Iterable[float]] = ..., numbers: _Optional[_Iterable[int]] = ..., step_variation_known: _Optional[_Iterable[bool]] = ..., exposed_sync_known: _Optional[_Iterable[bool]] = ..., measured_memory_bytes: _Optional[_Iterable[float]] = ...) -> None: ...

class TraceReference(_message.Message):
    __slots__ = ("content_sha256", "format", "rank", "world_size", "size_bytes")
    CONTENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    content_sha256: str
    format: str
    rank: int
    world_size: int
    size_bytes: int
    def __init__(self, content_sha256: _Optional[str] = ..., format: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class TraceChunk(_message.Message):
    __slots__ = ("trace_id", "format", "rank", "world_size", "offset_bytes", "data", "last")
    TRACE_ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_BYTES_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    trace_id: str
    format: str
    rank: int
    world_size: int
    offset_bytes: int
    data: bytes
    last: bool
    def __init__(self, trace_id: _Optional[str] = ..., format: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., offset_bytes: _Optional[int] = ..., data: _Optional[bytes] = ..., last: bool = ...) -> None: ...

class ProfileContent(_message.Message):
    __slots__ = ("workload", "network", "phase_timings", "observations", "traces", "shared_runs")
    WORKLOAD_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    PHASE_TIMINGS_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    SHARED_RUNS_FIELD_NUMBER: _ClassVar[int]
    workload: _workload_pb2.Workload
    network: _workload_pb2.Network
    phase_timings: PhaseTimings
    observations: Observations
    traces: _containers.RepeatedCompositeFieldContainer[TraceReference]
    shared_runs: _containers.RepeatedCompositeFieldContainer[_sharing_pb2.SharedDeviceRun]
    def __init__(self, workload: _Optional[_Union[_workload_pb2.Workload, _Mapping]] = ..., network: _Optional[_Union[_workload_pb2.Network, _Mapping]] = ..., phase_timings: _Optional[_Union[PhaseTimings, _Mapping]] = ..., observations: _Optional[_Union[Observations, _Mapping]] = ..., traces: _Optional[_Iterable[_Union[TraceReference, _Mapping]]] = ..., shared_runs: _Optional[_Iterable[_Union[_sharing_pb2.SharedDeviceRun, _Mapping]]] = ...) -> None: ...

class Profile(_message.Message):
    __slots__ = ("profile_id", "uid", "revision", "etag", "digest", "create_time", "update_time", "observations_count", "content", "display_name", "labels", "delete_time", "purge_time", "warnings")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    UID_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    ETAG_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    OBSERVATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    DISPLAY_NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DELETE_TIME_FIELD_NUMBER: _ClassVar[int]
    PURGE_TIME_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    uid: str
    revision: int
    etag: str
    digest: str
    create_time: _timestamp_pb2.Timestamp
    update_time: _timestamp_pb2.Timestamp
    observations_count: int
    content: ProfileContent
    display_name: str
    labels: _containers.ScalarMap[str, str]
    delete_time: _timestamp_pb2.Timestamp
    purge_time: _timestamp_pb2.Timestamp
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    def __init__(self, profile_id: _Optional[str] = ..., uid: _Optional[str] = ..., revision: _Optional[int] = ..., etag: _Optional[str] = ..., digest: _Optional[str] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., observations_count: _Optional[int] = ..., content: _Optional[_Union[ProfileContent, _Mapping]] = ..., display_name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., delete_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., purge_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ...) -> None: ...

class ProfileSource(_message.Message):
    __slots__ = ("profile_id", "content", "minimum_revision", "revision")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_REVISION_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    content: ProfileContent
    minimum_revision: int
    revision: int
    def __init__(self, profile_id: _Optional[str] = ..., content: _Optional[_Union[ProfileContent, _Mapping]] = ..., minimum_revision: _Optional[int] = ..., revision: _Optional[int] = ...) -> None: ...
