from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import schedule_pb2 as _schedule_pb2
from nodewise_protos.v1beta1 import simulation_pb2 as _simulation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SimulateRequest(_message.Message):
    __slots__ = ("cluster", "jobs", "curves", "policy", "policy_parameters", "quotas", "settings", "repetitions_count", "include_jobs", "include_timeline", "options", "shared_pairs")
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
    SHARED_PAIRS_FIELD_NUMBER: _ClassVar[int]
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
    options: _options_pb2.ModelOptions
    shared_pairs: _simulation_pb2.SimulationSharedPairs
    def __init__(self, cluster: _Optional[_Union[_schedule_pb2.Cluster, _Mapping]] = ..., jobs: _Optional[_Union[_simulation_pb2.SimulationJobs, _Mapping]] = ..., curves: _Optional[_Iterable[_Union[_simulation_pb2.SimulationCurve, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_parameters: _Optional[_Mapping[str, float]] = ..., quotas: _Optional[_Iterable[_Union[_schedule_pb2.QueueQuota, _Mapping]]] = ..., settings: _Optional[_Union[_simulation_pb2.SimulationSettings, _Mapping]] = ..., repetitions_count: _Optional[int] = ..., include_jobs: bool = ..., include_timeline: bool = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ..., shared_pairs: _Optional[_Union[_simulation_pb2.SimulationSharedPairs, _Mapping]] = ...) -> None: ...

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
