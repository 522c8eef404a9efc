from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReplayChangeKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REPLAY_CHANGE_KIND_UNSPECIFIED: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_SCALE: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_DELAY: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_LINK_BANDWIDTH: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_LINK_LATENCY: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_WORLD_SIZE: _ClassVar[ReplayChangeKind]
    REPLAY_CHANGE_KIND_BUCKET_BYTES: _ClassVar[ReplayChangeKind]

class StepBound(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    STEP_BOUND_UNSPECIFIED: _ClassVar[StepBound]
    STEP_BOUND_HOST: _ClassVar[StepBound]
    STEP_BOUND_DEVICE: _ClassVar[StepBound]
    STEP_BOUND_NETWORK: _ClassVar[StepBound]
    STEP_BOUND_SKEW: _ClassVar[StepBound]
    STEP_BOUND_LOADING: _ClassVar[StepBound]
    STEP_BOUND_NONE: _ClassVar[StepBound]
REPLAY_CHANGE_KIND_UNSPECIFIED: ReplayChangeKind
REPLAY_CHANGE_KIND_SCALE: ReplayChangeKind
REPLAY_CHANGE_KIND_DELAY: ReplayChangeKind
REPLAY_CHANGE_KIND_LINK_BANDWIDTH: ReplayChangeKind
REPLAY_CHANGE_KIND_LINK_LATENCY: ReplayChangeKind
REPLAY_CHANGE_KIND_WORLD_SIZE: ReplayChangeKind
REPLAY_CHANGE_KIND_BUCKET_BYTES: ReplayChangeKind
STEP_BOUND_UNSPECIFIED: StepBound
STEP_BOUND_HOST: StepBound
STEP_BOUND_DEVICE: StepBound
STEP_BOUND_NETWORK: StepBound
STEP_BOUND_SKEW: StepBound
STEP_BOUND_LOADING: StepBound
STEP_BOUND_NONE: StepBound

class ReplayChange(_message.Message):
    __slots__ = ("kind", "value", "name_pattern", "event_kinds", "ranks")
    KIND_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    NAME_PATTERN_FIELD_NUMBER: _ClassVar[int]
    EVENT_KINDS_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    kind: ReplayChangeKind
    value: float
    name_pattern: str
    event_kinds: _containers.RepeatedScalarFieldContainer[str]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, kind: _Optional[_Union[ReplayChangeKind, str]] = ..., value: _Optional[float] = ..., name_pattern: _Optional[str] = ..., event_kinds: _Optional[_Iterable[str]] = ..., ranks: _Optional[_Iterable[int]] = ...) -> None: ...

class ReplayRequest(_message.Message):
    __slots__ = ("profile", "trace_sha256s", "diagnoser", "fit_steps", "test_steps", "in_sample", "changes", "timeline", "budget_seconds", "trace_mapping")
    class TraceMappingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    TRACE_SHA256S_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSER_FIELD_NUMBER: _ClassVar[int]
    FIT_STEPS_FIELD_NUMBER: _ClassVar[int]
    TEST_STEPS_FIELD_NUMBER: _ClassVar[int]
    IN_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    BUDGET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TRACE_MAPPING_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    trace_sha256s: _containers.RepeatedScalarFieldContainer[str]
    diagnoser: str
    fit_steps: _containers.RepeatedScalarFieldContainer[int]
    test_steps: _containers.RepeatedScalarFieldContainer[int]
    in_sample: bool
    changes: _containers.RepeatedCompositeFieldContainer[ReplayChange]
    timeline: bool
    budget_seconds: float
    trace_mapping: _containers.ScalarMap[str, str]
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., trace_sha256s: _Optional[_Iterable[str]] = ..., diagnoser: _Optional[str] = ..., fit_steps: _Optional[_Iterable[int]] = ..., test_steps: _Optional[_Iterable[int]] = ..., in_sample: bool = ..., changes: _Optional[_Iterable[_Union[ReplayChange, _Mapping]]] = ..., timeline: bool = ..., budget_seconds: _Optional[float] = ..., trace_mapping: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ReplayResponse(_message.Message):
    __slots__ = ("progress", "timeline", "collectives", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    COLLECTIVES_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: DiagnosisProgress
    timeline: TimelinePiece
    collectives: ReplayedCollectives
    result: ReplayResult
    def __init__(self, progress: _Optional[_Union[DiagnosisProgress, _Mapping]] = ..., timeline: _Optional[_Union[TimelinePiece, _Mapping]] = ..., collectives: _Optional[_Union[ReplayedCollectives, _Mapping]] = ..., result: _Optional[_Union[ReplayResult, _Mapping]] = ...) -> None: ...

class DiagnosisProgress(_message.Message):
    __slots__ = ("stage", "done_count", "total_count")
    STAGE_FIELD_NUMBER: _ClassVar[int]
    DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    stage: str
    done_count: int
    total_count: int
    def __init__(self, stage: _Optional[str] = ..., done_count: _Optional[int] = ..., total_count: _Optional[int] = ...) -> None: ...

class TimelinePiece(_message.Message):
    __slots__ = ("recorded", "names", "lanes", "kinds", "rank_numbers", "lane_indexes", "name_indexes", "kind_indexes", "begin_nanoseconds", "duration_nanoseconds", "waiting_nanoseconds", "parts", "part_indexes")
    RECORDED_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    LANES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    RANK_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    LANE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    NAME_INDEXES_FIELD_NUMBER: _ClassVar[int]
    KIND_INDEXES_FIELD_NUMBER: _ClassVar[int]
    BEGIN_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    DURATION_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    PART_INDEXES_FIELD_NUMBER: _ClassVar[int]
    recorded: bool
    names: _containers.RepeatedScalarFieldContainer[str]
    lanes: _containers.RepeatedScalarFieldContainer[str]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    rank_numbers: _containers.RepeatedScalarFieldContainer[int]
    lane_indexes: _containers.RepeatedScalarFieldContainer[int]
    name_indexes: _containers.RepeatedScalarFieldContainer[int]
    kind_indexes: _containers.RepeatedScalarFieldContainer[int]
    begin_nanoseconds: _containers.RepeatedScalarFieldContainer[int]
    duration_nanoseconds: _containers.RepeatedScalarFieldContainer[int]
    waiting_nanoseconds: _containers.RepeatedScalarFieldContainer[int]
    parts: _containers.RepeatedScalarFieldContainer[str]
    part_indexes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, recorded: bool = ..., names: _Optional[_Iterable[str]] = ..., lanes: _Optional[_Iterable[str]] = ..., kinds: _Optional[_Iterable[str]] = ..., rank_numbers: _Optional[_Iterable[int]] = ..., lane_indexes: _Optional[_Iterable[int]] = ..., name_indexes: _Optional[_Iterable[int]] = ..., kind_indexes: _Optional[_Iterable[int]] = ..., begin_nanoseconds: _Optional[_Iterable[int]] = ..., duration_nanoseconds: _Optional[_Iterable[int]] = ..., waiting_nanoseconds: _Optional[_Iterable[int]] = ..., parts: _Optional[_Iterable[str]] = ..., part_indexes: _Optional[_Iterable[int]] = ...) -> None: ...

class ReplayedCollectives(_message.Message):
    __slots__ = ("step_ordinals", "names", "kinds", "bytes", "groups", "transfer_seconds", "end_spread_seconds", "margin_seconds", "rank_offsets", "rank_numbers", "arrival_seconds", "wait_seconds", "late_rank_offsets", "late_ranks")
    STEP_ORDINALS_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    END_SPREAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RANK_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    RANK_NUMBERS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LATE_RANK_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    LATE_RANKS_FIELD_NUMBER: _ClassVar[int]
    step_ordinals: _containers.RepeatedScalarFieldContainer[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    kinds: _containers.RepeatedScalarFieldContainer[str]
    bytes: _containers.RepeatedScalarFieldContainer[float]
    groups: _containers.RepeatedScalarFieldContainer[str]
    transfer_seconds: _containers.RepeatedScalarFieldContainer[float]
    end_spread_seconds: _containers.RepeatedScalarFieldContainer[float]
    margin_seconds: _containers.RepeatedScalarFieldContainer[float]
    rank_offsets: _containers.RepeatedScalarFieldContainer[int]
    rank_numbers: _containers.RepeatedScalarFieldContainer[int]
    arrival_seconds: _containers.RepeatedScalarFieldContainer[float]
    wait_seconds: _containers.RepeatedScalarFieldContainer[float]
    late_rank_offsets: _containers.RepeatedScalarFieldContainer[int]
    late_ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, step_ordinals: _Optional[_Iterable[int]] = ..., names: _Optional[_Iterable[str]] = ..., kinds: _Optional[_Iterable[str]] = ..., bytes: _Optional[_Iterable[float]] = ..., groups: _Optional[_Iterable[str]] = ..., transfer_seconds: _Optional[_Iterable[float]] = ..., end_spread_seconds: _Optional[_Iterable[float]] = ..., margin_seconds: _Optional[_Iterable[float]] = ..., rank_offsets: _Optional[_Iterable[int]] = ..., rank_numbers: _Optional[_Iterable[int]] = ..., arrival_seconds: _Optional[_Iterable[float]] = ..., wait_seconds: _Optional[_Iterable[float]] = ..., late_rank_offsets: _Optional[_Iterable[int]] = ..., late_ranks: _Optional[_Iterable[int]] = ...) -> None: ...

class ReplayedStep(_message.Message):
    __slots__ = ("step_ordinal", "measured_host_seconds", "predicted_host_seconds", "measured_device_seconds", "predicted_device_seconds", "rank_measured_host_seconds", "rank_predicted_host_seconds", "lower_host_seconds", "upper_host_seconds")
    STEP_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    MEASURED_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEASURED_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RANK_MEASURED_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RANK_PREDICTED_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LOWER_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UPPER_HOST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    step_ordinal: int
    measured_host_seconds: float
    predicted_host_seconds: float
    measured_device_seconds: float
    predicted_device_seconds: float
    rank_measured_host_seconds: _containers.RepeatedScalarFieldContainer[float]
    rank_predicted_host_seconds: _containers.RepeatedScalarFieldContainer[float]
    lower_host_seconds: float
    upper_host_seconds: float
    def __init__(self, step_ordinal: _Optional[int] = ..., measured_host_seconds: _Optional[float] = ..., predicted_host_seconds: _Optional[float] = ..., measured_device_seconds: _Optional[float] = ..., predicted_device_seconds: _Optional[float] = ..., rank_measured_host_seconds: _Optional[_Iterable[float]] = ..., rank_predicted_host_seconds: _Optional[_Iterable[float]] = ..., lower_host_seconds: _Optional[float] = ..., upper_host_seconds: _Optional[float] = ...) -> None: ...

class EdgeCounts(_message.Message):
    __slots__ = ("kind", "found_count", "inferred_count", "missing_count")
    KIND_FIELD_NUMBER: _ClassVar[int]
    FOUND_COUNT_FIELD_NUMBER: _ClassVar[int]
    INFERRED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MISSING_COUNT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    found_count: int
    inferred_count: int
    missing_count: int
    def __init__(self, kind: _Optional[str] = ..., found_count: _Optional[int] = ..., inferred_count: _Optional[int] = ..., missing_count: _Optional[int] = ...) -> None: ...

class ReadTrace(_message.Message):
    __slots__ = ("content_sha256", "rank", "world_size", "reader", "reader_version", "events_count", "steps_count", "counts", "warnings")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    CONTENT_SHA256_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    READER_FIELD_NUMBER: _ClassVar[int]
    READER_VERSION_FIELD_NUMBER: _ClassVar[int]
    EVENTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    content_sha256: str
    rank: int
    world_size: int
    reader: str
    reader_version: str
    events_count: int
    steps_count: int
    counts: _containers.ScalarMap[str, int]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    def __init__(self, content_sha256: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., reader: _Optional[str] = ..., reader_version: _Optional[str] = ..., events_count: _Optional[int] = ..., steps_count: _Optional[int] = ..., counts: _Optional[_Mapping[str, int]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ...) -> None: ...

class DiagnosisBasis(_message.Message):
    __slots__ = ("diagnoser", "diagnoser_version", "profile_id", "profile_revision", "traces", "ranks", "world_size", "events_count", "load_seconds", "peak_memory_bytes")
    DIAGNOSER_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSER_VERSION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    PROFILE_REVISION_FIELD_NUMBER: _ClassVar[int]
    TRACES_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    EVENTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LOAD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PEAK_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    diagnoser: str
    diagnoser_version: str
    profile_id: str
    profile_revision: int
    traces: _containers.RepeatedCompositeFieldContainer[ReadTrace]
    ranks: _containers.RepeatedScalarFieldContainer[int]
    world_size: int
    events_count: int
    load_seconds: float
    peak_memory_bytes: float
    def __init__(self, diagnoser: _Optional[str] = ..., diagnoser_version: _Optional[str] = ..., profile_id: _Optional[str] = ..., profile_revision: _Optional[int] = ..., traces: _Optional[_Iterable[_Union[ReadTrace, _Mapping]]] = ..., ranks: _Optional[_Iterable[int]] = ..., world_size: _Optional[int] = ..., events_count: _Optional[int] = ..., load_seconds: _Optional[float] = ..., peak_memory_bytes: _Optional[float] = ...) -> None: ...

class ReplayResult(_message.Message):
    __slots__ = ("steps", "host_error_ratio", "device_error_ratio", "persistence_error_ratio", "kernel_start_p50_error_seconds", "kernel_start_p95_error_seconds", "in_sample", "nodes_count", "edges", "clock_offset_seconds", "clock_uncertainty_seconds", "clock_tied", "build_seconds", "replay_seconds", "counts", "warnings", "basis")
    class CountsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    STEPS_FIELD_NUMBER: _ClassVar[int]
    HOST_ERROR_RATIO_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ERROR_RATIO_FIELD_NUMBER: _ClassVar[int]
    PERSISTENCE_ERROR_RATIO_FIELD_NUMBER: _ClassVar[int]
    KERNEL_START_P50_ERROR_SECONDS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_START_P95_ERROR_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IN_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    NODES_COUNT_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    CLOCK_OFFSET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_UNCERTAINTY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CLOCK_TIED_FIELD_NUMBER: _ClassVar[int]
    BUILD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    REPLAY_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    steps: _containers.RepeatedCompositeFieldContainer[ReplayedStep]
    host_error_ratio: float
    device_error_ratio: float
    persistence_error_ratio: float
    kernel_start_p50_error_seconds: float
    kernel_start_p95_error_seconds: float
    in_sample: bool
    nodes_count: int
    edges: _containers.RepeatedCompositeFieldContainer[EdgeCounts]
    clock_offset_seconds: _containers.RepeatedScalarFieldContainer[float]
    clock_uncertainty_seconds: _containers.RepeatedScalarFieldContainer[float]
    clock_tied: _containers.RepeatedScalarFieldContainer[bool]
    build_seconds: float
    replay_seconds: float
    counts: _containers.ScalarMap[str, int]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    basis: DiagnosisBasis
    def __init__(self, steps: _Optional[_Iterable[_Union[ReplayedStep, _Mapping]]] = ..., host_error_ratio: _Optional[float] = ..., device_error_ratio: _Optional[float] = ..., persistence_error_ratio: _Optional[float] = ..., kernel_start_p50_error_seconds: _Optional[float] = ..., kernel_start_p95_error_seconds: _Optional[float] = ..., in_sample: bool = ..., nodes_count: _Optional[int] = ..., edges: _Optional[_Iterable[_Union[EdgeCounts, _Mapping]]] = ..., clock_offset_seconds: _Optional[_Iterable[float]] = ..., clock_uncertainty_seconds: _Optional[_Iterable[float]] = ..., clock_tied: _Optional[_Iterable[bool]] = ..., build_seconds: _Optional[float] = ..., replay_seconds: _Optional[float] = ..., counts: _Optional[_Mapping[str, int]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ..., basis: _Optional[_Union[DiagnosisBasis, _Mapping]] = ...) -> None: ...

class DiagnoseRequest(_message.Message):
    __slots__ = ("profile", "trace_sha256s", "diagnoser", "steps", "max_bottlenecks", "max_strategies", "largest_batch_ratio", "timeline", "budget_seconds", "trace_mapping", "since_seconds")
    class TraceMappingEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    TRACE_SHA256S_FIELD_NUMBER: _ClassVar[int]
    DIAGNOSER_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    MAX_BOTTLENECKS_FIELD_NUMBER: _ClassVar[int]
    MAX_STRATEGIES_FIELD_NUMBER: _ClassVar[int]
    LARGEST_BATCH_RATIO_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    BUDGET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TRACE_MAPPING_FIELD_NUMBER: _ClassVar[int]
    SINCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    trace_sha256s: _containers.RepeatedScalarFieldContainer[str]
    diagnoser: str
    steps: _containers.RepeatedScalarFieldContainer[int]
    max_bottlenecks: int
    max_strategies: int
    largest_batch_ratio: float
    timeline: bool
    budget_seconds: float
    trace_mapping: _containers.ScalarMap[str, str]
    since_seconds: float
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., trace_sha256s: _Optional[_Iterable[str]] = ..., diagnoser: _Optional[str] = ..., steps: _Optional[_Iterable[int]] = ..., max_bottlenecks: _Optional[int] = ..., max_strategies: _Optional[int] = ..., largest_batch_ratio: _Optional[float] = ..., timeline: bool = ..., budget_seconds: _Optional[float] = ..., trace_mapping: _Optional[_Mapping[str, str]] = ..., since_seconds: _Optional[float] = ...) -> None: ...

class StepWindows(_message.Message):
    __slots__ = ("first_steps", "steps_counts", "begin_unix_seconds", "step_seconds", "loading_seconds", "forward_seconds", "backward_seconds", "exchange_seconds", "update_seconds")
    FIRST_STEPS_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LOADING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FORWARD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BACKWARD_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXCHANGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UPDATE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    first_steps: _containers.RepeatedScalarFieldContainer[int]
    steps_counts: _containers.RepeatedScalarFieldContainer[int]
    begin_unix_seconds: _containers.RepeatedScalarFieldContainer[float]
    step_seconds: _containers.RepeatedScalarFieldContainer[float]
    loading_seconds: _containers.RepeatedScalarFieldContainer[float]
    forward_seconds: _containers.RepeatedScalarFieldContainer[float]
    backward_seconds: _containers.RepeatedScalarFieldContainer[float]
    exchange_seconds: _containers.RepeatedScalarFieldContainer[float]
    update_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, first_steps: _Optional[_Iterable[int]] = ..., steps_counts: _Optional[_Iterable[int]] = ..., begin_unix_seconds: _Optional[_Iterable[float]] = ..., step_seconds: _Optional[_Iterable[float]] = ..., loading_seconds: _Optional[_Iterable[float]] = ..., forward_seconds: _Optional[_Iterable[float]] = ..., backward_seconds: _Optional[_Iterable[float]] = ..., exchange_seconds: _Optional[_Iterable[float]] = ..., update_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class ReportStepsRequest(_message.Message):
    __slots__ = ("profile_id", "rank", "world_size", "node", "windows")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WORLD_SIZE_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    rank: int
    world_size: int
    node: int
    windows: StepWindows
    def __init__(self, profile_id: _Optional[str] = ..., rank: _Optional[int] = ..., world_size: _Optional[int] = ..., node: _Optional[int] = ..., windows: _Optional[_Union[StepWindows, _Mapping]] = ...) -> None: ...

class RecordingRequest(_message.Message):
    __slots__ = ("request_id", "steps_count", "ranks")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    steps_count: int
    ranks: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, request_id: _Optional[str] = ..., steps_count: _Optional[int] = ..., ranks: _Optional[_Iterable[int]] = ...) -> None: ...

class ReportStepsResponse(_message.Message):
    __slots__ = ("recording",)
    RECORDING_FIELD_NUMBER: _ClassVar[int]
    recording: RecordingRequest
    def __init__(self, recording: _Optional[_Union[RecordingRequest, _Mapping]] = ...) -> None: ...

class StepAlarm(_message.Message):
    __slots__ = ("kind", "ranks", "node", "part", "first_step", "begin_unix_seconds", "end_unix_seconds", "slowdown_ratio", "lower_slowdown_ratio", "upper_slowdown_ratio", "what")
    KIND_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    FIRST_STEP_FIELD_NUMBER: _ClassVar[int]
    BEGIN_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    END_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    LOWER_SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    UPPER_SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    kind: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    node: int
    part: str
    first_step: int
    begin_unix_seconds: float
    end_unix_seconds: float
    slowdown_ratio: float
    lower_slowdown_ratio: float
    upper_slowdown_ratio: float
    what: str
    def __init__(self, kind: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., node: _Optional[int] = ..., part: _Optional[str] = ..., first_step: _Optional[int] = ..., begin_unix_seconds: _Optional[float] = ..., end_unix_seconds: _Optional[float] = ..., slowdown_ratio: _Optional[float] = ..., lower_slowdown_ratio: _Optional[float] = ..., upper_slowdown_ratio: _Optional[float] = ..., what: _Optional[str] = ...) -> None: ...

class SlowHour(_message.Message):
    __slots__ = ("hour", "slowdown_ratio", "slow_days_count", "days_count")
    HOUR_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    SLOW_DAYS_COUNT_FIELD_NUMBER: _ClassVar[int]
    DAYS_COUNT_FIELD_NUMBER: _ClassVar[int]
    hour: int
    slowdown_ratio: float
    slow_days_count: int
    days_count: int
    def __init__(self, hour: _Optional[int] = ..., slowdown_ratio: _Optional[float] = ..., slow_days_count: _Optional[int] = ..., days_count: _Optional[int] = ...) -> None: ...

class StepsDiagnosis(_message.Message):
    __slots__ = ("alarms", "slow_hours", "verdict", "ranks_count", "steps_count", "lost_windows_count", "step_seconds")
    ALARMS_FIELD_NUMBER: _ClassVar[int]
    SLOW_HOURS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    RANKS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LOST_WINDOWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    alarms: _containers.RepeatedCompositeFieldContainer[StepAlarm]
    slow_hours: _containers.RepeatedCompositeFieldContainer[SlowHour]
    verdict: str
    ranks_count: int
    steps_count: int
    lost_windows_count: int
    step_seconds: float
    def __init__(self, alarms: _Optional[_Iterable[_Union[StepAlarm, _Mapping]]] = ..., slow_hours: _Optional[_Iterable[_Union[SlowHour, _Mapping]]] = ..., verdict: _Optional[str] = ..., ranks_count: _Optional[int] = ..., steps_count: _Optional[int] = ..., lost_windows_count: _Optional[int] = ..., step_seconds: _Optional[float] = ...) -> None: ...

class DiagnoseResponse(_message.Message):
    __slots__ = ("progress", "timeline", "collectives", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    COLLECTIVES_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: DiagnosisProgress
    timeline: TimelinePiece
    collectives: ReplayedCollectives
    result: DiagnosisResult
    def __init__(self, progress: _Optional[_Union[DiagnosisProgress, _Mapping]] = ..., timeline: _Optional[_Union[TimelinePiece, _Mapping]] = ..., collectives: _Optional[_Union[ReplayedCollectives, _Mapping]] = ..., result: _Optional[_Union[DiagnosisResult, _Mapping]] = ...) -> None: ...

class Bottleneck(_message.Message):
    __slots__ = ("kind", "what", "rank", "seconds", "gain_if_removed_seconds", "matters", "why")
    KIND_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    GAIN_IF_REMOVED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MATTERS_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    kind: str
    what: str
    rank: int
    seconds: float
    gain_if_removed_seconds: float
    matters: bool
    why: str
    def __init__(self, kind: _Optional[str] = ..., what: _Optional[str] = ..., rank: _Optional[int] = ..., seconds: _Optional[float] = ..., gain_if_removed_seconds: _Optional[float] = ..., matters: bool = ..., why: _Optional[str] = ...) -> None: ...

class Straggler(_message.Message):
    __slots__ = ("collective", "ranks", "margin_seconds", "imposed_wait_seconds", "transfer_seconds")
    COLLECTIVE_FIELD_NUMBER: _ClassVar[int]
    RANKS_FIELD_NUMBER: _ClassVar[int]
    MARGIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IMPOSED_WAIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TRANSFER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    collective: str
    ranks: _containers.RepeatedScalarFieldContainer[int]
    margin_seconds: float
    imposed_wait_seconds: float
    transfer_seconds: float
    def __init__(self, collective: _Optional[str] = ..., ranks: _Optional[_Iterable[int]] = ..., margin_seconds: _Optional[float] = ..., imposed_wait_seconds: _Optional[float] = ..., transfer_seconds: _Optional[float] = ...) -> None: ...

class Strategy(_message.Message):
    __slots__ = ("name", "predicted_step_seconds", "speedup_ratio", "lower_step_seconds", "upper_step_seconds", "parts", "changes", "rests_on", "effort", "acts_on")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_RATIO_FIELD_NUMBER: _ClassVar[int]
    LOWER_STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UPPER_STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    CHANGES_FIELD_NUMBER: _ClassVar[int]
    RESTS_ON_FIELD_NUMBER: _ClassVar[int]
    EFFORT_FIELD_NUMBER: _ClassVar[int]
    ACTS_ON_FIELD_NUMBER: _ClassVar[int]
    name: str
    predicted_step_seconds: float
    speedup_ratio: float
    lower_step_seconds: float
    upper_step_seconds: float
    parts: _containers.RepeatedScalarFieldContainer[str]
    changes: _containers.RepeatedCompositeFieldContainer[ReplayChange]
    rests_on: str
    effort: str
    acts_on: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., predicted_step_seconds: _Optional[float] = ..., speedup_ratio: _Optional[float] = ..., lower_step_seconds: _Optional[float] = ..., upper_step_seconds: _Optional[float] = ..., parts: _Optional[_Iterable[str]] = ..., changes: _Optional[_Iterable[_Union[ReplayChange, _Mapping]]] = ..., rests_on: _Optional[str] = ..., effort: _Optional[str] = ..., acts_on: _Optional[_Iterable[str]] = ...) -> None: ...

class StepPart(_message.Message):
    __slots__ = ("kind", "what", "seconds", "waits_for_rank")
    KIND_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITS_FOR_RANK_FIELD_NUMBER: _ClassVar[int]
    kind: str
    what: str
    seconds: float
    waits_for_rank: int
    def __init__(self, kind: _Optional[str] = ..., what: _Optional[str] = ..., seconds: _Optional[float] = ..., waits_for_rank: _Optional[int] = ...) -> None: ...

class RankShares(_message.Message):
    __slots__ = ("rank", "step_seconds", "compute_seconds", "communication_seconds", "exposed_communication_seconds", "waiting_seconds", "idle_seconds", "host_bound_seconds", "data_loading_seconds", "memory_high_water_bytes", "parts", "step_ordinals", "step_begin_nanoseconds", "step_duration_nanoseconds")
    RANK_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPUTE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMMUNICATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_COMMUNICATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WAITING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IDLE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    HOST_BOUND_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DATA_LOADING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_HIGH_WATER_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    STEP_ORDINALS_FIELD_NUMBER: _ClassVar[int]
    STEP_BEGIN_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    STEP_DURATION_NANOSECONDS_FIELD_NUMBER: _ClassVar[int]
    rank: int
    step_seconds: float
    compute_seconds: float
    communication_seconds: float
    exposed_communication_seconds: float
    waiting_seconds: float
    idle_seconds: float
    host_bound_seconds: float
    data_loading_seconds: float
    memory_high_water_bytes: float
    parts: _containers.RepeatedCompositeFieldContainer[StepPart]
    step_ordinals: _containers.RepeatedScalarFieldContainer[int]
    step_begin_nanoseconds: _containers.RepeatedScalarFieldContainer[int]
    step_duration_nanoseconds: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rank: _Optional[int] = ..., step_seconds: _Optional[float] = ..., compute_seconds: _Optional[float] = ..., communication_seconds: _Optional[float] = ..., exposed_communication_seconds: _Optional[float] = ..., waiting_seconds: _Optional[float] = ..., idle_seconds: _Optional[float] = ..., host_bound_seconds: _Optional[float] = ..., data_loading_seconds: _Optional[float] = ..., memory_high_water_bytes: _Optional[float] = ..., parts: _Optional[_Iterable[_Union[StepPart, _Mapping]]] = ..., step_ordinals: _Optional[_Iterable[int]] = ..., step_begin_nanoseconds: _Optional[_Iterable[int]] = ..., step_duration_nanoseconds: _Optional[_Iterable[int]] = ...) -> None: ...

class DiagnosisResult(_message.Message):
    __slots__ = ("bottlenecks", "strategies", "stragglers", "bound_by", "verdict", "step_seconds", "persistence_seconds", "exposed_communication_seconds", "rank_shares", "edges", "warnings", "complete", "basis", "steps")
    BOTTLENECKS_FIELD_NUMBER: _ClassVar[int]
    STRATEGIES_FIELD_NUMBER: _ClassVar[int]
    STRAGGLERS_FIELD_NUMBER: _ClassVar[int]
    BOUND_BY_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PERSISTENCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_COMMUNICATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RANK_SHARES_FIELD_NUMBER: _ClassVar[int]
    EDGES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    bottlenecks: _containers.RepeatedCompositeFieldContainer[Bottleneck]
    strategies: _containers.RepeatedCompositeFieldContainer[Strategy]
    stragglers: _containers.RepeatedCompositeFieldContainer[Straggler]
    bound_by: StepBound
    verdict: str
    step_seconds: float
    persistence_seconds: float
    exposed_communication_seconds: float
    rank_shares: _containers.RepeatedCompositeFieldContainer[RankShares]
    edges: _containers.RepeatedCompositeFieldContainer[EdgeCounts]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    complete: bool
    basis: DiagnosisBasis
    steps: StepsDiagnosis
    def __init__(self, bottlenecks: _Optional[_Iterable[_Union[Bottleneck, _Mapping]]] = ..., strategies: _Optional[_Iterable[_Union[Strategy, _Mapping]]] = ..., stragglers: _Optional[_Iterable[_Union[Straggler, _Mapping]]] = ..., bound_by: _Optional[_Union[StepBound, str]] = ..., verdict: _Optional[str] = ..., step_seconds: _Optional[float] = ..., persistence_seconds: _Optional[float] = ..., exposed_communication_seconds: _Optional[float] = ..., rank_shares: _Optional[_Iterable[_Union[RankShares, _Mapping]]] = ..., edges: _Optional[_Iterable[_Union[EdgeCounts, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ..., complete: bool = ..., basis: _Optional[_Union[DiagnosisBasis, _Mapping]] = ..., steps: _Optional[_Union[StepsDiagnosis, _Mapping]] = ...) -> None: ...
