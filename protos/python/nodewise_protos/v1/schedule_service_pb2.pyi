import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import plugin_pb2 as _plugin_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import schedule_pb2 as _schedule_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleRequest(_message.Message):
    __slots__ = ("now", "cluster", "jobs", "policy", "policy_parameters", "policy_state", "quotas", "options", "shared_pairs")
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
    SHARED_PAIRS_FIELD_NUMBER: _ClassVar[int]
    now: _timestamp_pb2.Timestamp
    cluster: _schedule_pb2.Cluster
    jobs: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.ScheduleJob]
    policy: str
    policy_parameters: _containers.ScalarMap[str, float]
    policy_state: bytes
    quotas: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.QueueQuota]
    options: _options_pb2.ModelOptions
    shared_pairs: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.SharedPair]
    def __init__(self, now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., cluster: _Optional[_Union[_schedule_pb2.Cluster, _Mapping]] = ..., jobs: _Optional[_Iterable[_Union[_schedule_pb2.ScheduleJob, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_parameters: _Optional[_Mapping[str, float]] = ..., policy_state: _Optional[bytes] = ..., quotas: _Optional[_Iterable[_Union[_schedule_pb2.QueueQuota, _Mapping]]] = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ..., shared_pairs: _Optional[_Iterable[_Union[_schedule_pb2.SharedPair, _Mapping]]] = ...) -> None: ...

class ScheduleResponse(_message.Message):
    __slots__ = ("allocations", "policy", "policy_version", "decision_seconds", "complete", "policy_state", "bases", "pool_demands")
    ALLOCATIONS_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    DECISION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    POLICY_STATE_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    POOL_DEMANDS_FIELD_NUMBER: _ClassVar[int]
    allocations: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.JobAllocation]
    policy: str
    policy_version: str
    decision_seconds: float
    complete: bool
    policy_state: bytes
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    pool_demands: _containers.RepeatedCompositeFieldContainer[_schedule_pb2.PoolDemand]
    def __init__(self, allocations: _Optional[_Iterable[_Union[_schedule_pb2.JobAllocation, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_version: _Optional[str] = ..., decision_seconds: _Optional[float] = ..., complete: bool = ..., policy_state: _Optional[bytes] = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ..., pool_demands: _Optional[_Iterable[_Union[_schedule_pb2.PoolDemand, _Mapping]]] = ...) -> None: ...

class ListPoliciesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPoliciesResponse(_message.Message):
    __slots__ = ("policies", "next_page_token")
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[_plugin_pb2.Plugin]
    next_page_token: str
    def __init__(self, policies: _Optional[_Iterable[_Union[_plugin_pb2.Plugin, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
