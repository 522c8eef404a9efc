import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import prediction_service_pb2 as _prediction_service_pb2
from nodewise_protos.v1 import schedule_pb2 as _schedule_pb2
from nodewise_protos.v1 import simulation_pb2 as _simulation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleRequest(_message.Message):
    __slots__ = ("now", "cluster", "jobs", "policy", "policy_parameters", "policy_state", "quotas", "options")
    class PolicyParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    NOW_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATE_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    now: _timestamp_pb2.Timestamp
    cluster: _schedule_pb2.Cluster
    jobs: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.ScheduleJob]
    policy: str
    policy_parameters: _containers.ScalarMap[str, float]
    policy_state: bytes
    quotas: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.QueueQuota]
    options: _prediction_service_pb2.PredictOptions
    def __init__(self, now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cluster: _Optional[_Union[_schedule_pb2.Cluster, _Mapping]] = ..., jobs: _Optional[_Iterable[_Union[_schedule_pb2.ScheduleJob, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_parameters: _Optional[_Mapping[str, float]] = ..., policy_state: _Optional[bytes] = ..., quotas: _Optional[_Iterable[_Union[_schedule_pb2.QueueQuota, _Mapping]]] = ..., options: _Optional[_Union[_prediction_service_pb2.PredictOptions, _Mapping]] = ...) -> None: ...

class ScheduleResponse(_message.Message):
    __slots__ = ("allocations", "policy", "policy_version", "decision_seconds", "complete", "policy_state", "bases")
    ALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    DECISION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATE_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    allocations: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.JobAllocation]
    policy: str
    policy_version: str
    decision_seconds: float
    complete: bool
    policy_state: bytes
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    def __init__(self, allocations: _Optional[_Iterable[_Union[_schedule_pb2.JobAllocation, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_version: _Optional[str] = ..., decision_seconds: _Optional[float] = ..., complete: bool = ..., policy_state: _Optional[bytes] = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ...) -> None: ...

class SimulateRequest(_message.Message):
    __slots__ = ("cluster", "jobs", "curves", "policy", "policy_parameters", "quotas", "settings", "repetitions_count", "include_jobs", "include_timeline", "options")
    class PolicyParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    CLUSTER_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CURVES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    QUOTAS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    REPETITIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_JOBS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TIMELINE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    cluster: _schedule_pb2.Cluster
    jobs: _simulation_pb2.SimulationJobs
    curves: _containers.RepeatedCompositeFieldContainer[_simulation_pb2.SimulationCurve]
    policy: str
    policy_parameters: _containers.ScalarMap[str, float]
    quotas: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.QueueQuota]
    settings: _simulation_pb2.SimulationSettings
    repetitions_count: int
    include_jobs: bool
    include_timeline: bool
    options: _prediction_service_pb2.PredictOptions
    def __init__(self, cluster: _Optional[_Union[_schedule_pb2.Cluster, _Mapping]] = ..., jobs: _Optional[_Union[_simulation_pb2.SimulationJobs, _Mapping]] = ..., curves: _Optional[_Iterable[_Union[_simulation_pb2.SimulationCurve, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_parameters: _Optional[_Mapping[str, float]] = ..., quotas: _Optional[_Iterable[_Union[_schedule_pb2.QueueQuota, _Mapping]]] = ..., settings: _Optional[_Union[_simulation_pb2.SimulationSettings, _Mapping]] = ..., repetitions_count: _Optional[int] = ..., include_jobs: bool = ..., include_timeline: bool = ..., options: _Optional[_Union[_prediction_service_pb2.PredictOptions, _Mapping]] = ...) -> None: ...

class SimulateResponse(_message.Message):
    __slots__ = ("progress", "jobs", "timeline", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    TIMELINE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: _simulation_pb2.SimulationProgress
    jobs: _simulation_pb2.SimulationJobRows
    timeline: _simulation_pb2.SimulationTimelineRows
    result: _simulation_pb2.SimulationResult
    def __init__(self, progress: _Optional[_Union[_simulation_pb2.SimulationProgress, _Mapping]] = ..., jobs: _Optional[_Union[_simulation_pb2.SimulationJobRows, _Mapping]] = ..., timeline: _Optional[_Union[_simulation_pb2.SimulationTimelineRows, _Mapping]] = ..., result: _Optional[_Union[_simulation_pb2.SimulationResult, _Mapping]] = ...) -> None: ...

class ListPoliciesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPoliciesResponse(_message.Message):
    __slots__ = ("policies", "problems", "next_page_token")
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[Policy]
    problems: _containers.RepeatedCompositeFieldContainer[_prediction_service_pb2.PluginProblem]
    next_page_token: str
    def __init__(self, policies: _Optional[_Iterable[_Union[Policy, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[_prediction_service_pb2.PluginProblem, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Policy(_message.Message):
    __slots__ = ("name", "version", "description", "distribution", "mode", "parameters")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    description: str
    distribution: str
    mode: str
    parameters: _containers.RepeatedCompositeFieldContainer[PolicyParameter]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., distribution: _Optional[str] = ..., mode: _Optional[str] = ..., parameters: _Optional[_Iterable[_Union[PolicyParameter, _Mapping]]] = ...) -> None: ...

class PolicyParameter(_message.Message):
    __slots__ = ("name", "description", "default_value", "minimum", "maximum")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_VALUE_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_FIELD_NUMBER: _ClassVar[int]
    name: str
    description: str
    default_value: float
    minimum: float
    maximum: float
    def __init__(self, name: _Optional[str] = ..., description: _Optional[str] = ..., default_value: _Optional[float] = ..., minimum: _Optional[float] = ..., maximum: _Optional[float] = ...) -> None: ...
