import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ScheduleAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SCHEDULE_ACTION_UNSPECIFIED: _ClassVar[ScheduleAction]
    SCHEDULE_ACTION_START: _ClassVar[ScheduleAction]
    SCHEDULE_ACTION_KEEP: _ClassVar[ScheduleAction]
    SCHEDULE_ACTION_CHANGE: _ClassVar[ScheduleAction]
    SCHEDULE_ACTION_WAIT: _ClassVar[ScheduleAction]
    SCHEDULE_ACTION_NO_ANSWER: _ClassVar[ScheduleAction]
SCHEDULE_ACTION_UNSPECIFIED: ScheduleAction
SCHEDULE_ACTION_START: ScheduleAction
SCHEDULE_ACTION_KEEP: ScheduleAction
SCHEDULE_ACTION_CHANGE: ScheduleAction
SCHEDULE_ACTION_WAIT: ScheduleAction
SCHEDULE_ACTION_NO_ANSWER: ScheduleAction

class Cluster(_message.Message):
    __slots__ = ("pools",)
    POOLS_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[NodePool]
    def __init__(self, pools: _Optional[_Iterable[_Union[NodePool, _Mapping]]] = ...) -> None: ...

class NodePool(_message.Message):
    __slots__ = ("name", "device_name", "available_devices", "link_bytes_per_second", "price_per_node_hour", "node_names", "devices_per_node", "max_nodes", "device_hours_between_failures", "restart_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_DEVICES_FIELD_NUMBER: _ClassVar[int]
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    NODE_NAMES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_HOURS_BETWEEN_FAILURES_FIELD_NUMBER: _ClassVar[int]
    RESTART_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_name: str
    available_devices: _containers.RepeatedScalarFieldContainer[int]
    link_bytes_per_second: float
    price_per_node_hour: float
    node_names: _containers.RepeatedScalarFieldContainer[str]
    devices_per_node: int
    max_nodes: int
    device_hours_between_failures: float
    restart_seconds: float
    def __init__(self, name: _Optional[str] = ..., device_name: _Optional[str] = ..., available_devices: _Optional[_Iterable[int]] = ..., link_bytes_per_second: _Optional[float] = ..., price_per_node_hour: _Optional[float] = ..., node_names: _Optional[_Iterable[str]] = ..., devices_per_node: _Optional[int] = ..., max_nodes: _Optional[int] = ..., device_hours_between_failures: _Optional[float] = ..., restart_seconds: _Optional[float] = ...) -> None: ...

class ScheduleJob(_message.Message):
    __slots__ = ("job_id", "profile", "remaining_samples", "allowed_devices", "min_devices", "max_devices", "allowed_pools", "server_devices", "requested_devices", "submit_time", "attained_service_device_seconds", "current_allocation", "restart_cost_seconds", "weight", "queue", "deadline", "settings", "minimum_run_seconds", "restarts_count", "efficiency", "preemptible", "checkpoint_seconds")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_DEVICES_FIELD_NUMBER: _ClassVar[int]
    MIN_DEVICES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEVICES_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_POOLS_FIELD_NUMBER: _ClassVar[int]
    SERVER_DEVICES_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_DEVICES_FIELD_NUMBER: _ClassVar[int]
    SUBMIT_TIME_FIELD_NUMBER: _ClassVar[int]
    ATTAINED_SERVICE_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_ALLOCATION_FIELD_NUMBER: _ClassVar[int]
    RESTART_COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_RUN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    PREEMPTIBLE_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    profile: _profile_pb2.ProfileSource
    remaining_samples: float
    allowed_devices: _containers.RepeatedScalarFieldContainer[int]
    min_devices: int
    max_devices: int
    allowed_pools: _containers.RepeatedScalarFieldContainer[str]
    server_devices: int
    requested_devices: int
    submit_time: _timestamp_pb2.Timestamp
    attained_service_device_seconds: float
    current_allocation: CurrentAllocation
    restart_cost_seconds: float
    weight: float
    queue: str
    deadline: _timestamp_pb2.Timestamp
    settings: _configuration_pb2.ConfigurationSettings
    minimum_run_seconds: float
    restarts_count: int
    efficiency: _objective_pb2.StatisticalEfficiency
    preemptible: bool
    checkpoint_seconds: float
    def __init__(self, job_id: _Optional[str] = ..., profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., remaining_samples: _Optional[float] = ..., allowed_devices: _Optional[_Iterable[int]] = ..., min_devices: _Optional[int] = ..., max_devices: _Optional[int] = ..., allowed_pools: _Optional[_Iterable[str]] = ..., server_devices: _Optional[int] = ..., requested_devices: _Optional[int] = ..., submit_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., attained_service_device_seconds: _Optional[float] = ..., current_allocation: _Optional[_Union[CurrentAllocation, _Mapping]] = ..., restart_cost_seconds: _Optional[float] = ..., weight: _Optional[float] = ..., queue: _Optional[str] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., settings: _Optional[_Union[_configuration_pb2.ConfigurationSettings, _Mapping]] = ..., minimum_run_seconds: _Optional[float] = ..., restarts_count: _Optional[int] = ..., efficiency: _Optional[_Union[_objective_pb2.StatisticalEfficiency, _Mapping]] = ..., preemptible: bool = ..., checkpoint_seconds: _Optional[float] = ...) -> None: ...

class CurrentAllocation(_message.Message):
    __slots__ = ("pool", "placement", "age_seconds", "shares_with_job_id")
    POOL_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SHARES_WITH_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    pool: str
    placement: _containers.RepeatedCompositeFieldContainer[NodeDevices]
    age_seconds: float
    shares_with_job_id: str
    def __init__(self, pool: _Optional[str] = ..., placement: _Optional[_Iterable[_Union[NodeDevices, _Mapping]]] = ..., age_seconds: _Optional[float] = ..., shares_with_job_id: _Optional[str] = ...) -> None: ...

class SharedPair(_message.Message):
    __slots__ = ("first_job_id", "second_job_id", "pool", "first_share", "second_share")
    FIRST_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SECOND_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    FIRST_SHARE_FIELD_NUMBER: _ClassVar[int]
    SECOND_SHARE_FIELD_NUMBER: _ClassVar[int]
    first_job_id: str
    second_job_id: str
    pool: str
    first_share: float
    second_share: float
    def __init__(self, first_job_id: _Optional[str] = ..., second_job_id: _Optional[str] = ..., pool: _Optional[str] = ..., first_share: _Optional[float] = ..., second_share: _Optional[float] = ...) -> None: ...

class NodeDevices(_message.Message):
    __slots__ = ("node_index", "devices_count", "node_name")
    NODE_INDEX_FIELD_NUMBER: _ClassVar[int]
    DEVICES_COUNT_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    node_index: int
    devices_count: int
    node_name: str
    def __init__(self, node_index: _Optional[int] = ..., devices_count: _Optional[int] = ..., node_name: _Optional[str] = ...) -> None: ...

class QueueQuota(_message.Message):
    __slots__ = ("queue", "max_devices")
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    MAX_DEVICES_FIELD_NUMBER: _ClassVar[int]
    queue: str
    max_devices: int
    def __init__(self, queue: _Optional[str] = ..., max_devices: _Optional[int] = ...) -> None: ...

class JobAllocation(_message.Message):
    __slots__ = ("job_id", "action", "pool", "devices_count", "nodes_count", "placement", "samples_per_second", "finish_seconds", "marginal_samples_per_second", "reason", "why", "basis_index", "problem", "shares_with_job_id", "solo_speed_ratio", "useful_ratio", "goodput_samples_per_second")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    POOL_FIELD_NUMBER: _ClassVar[int]
    DEVICES_COUNT_FIELD_NUMBER: _ClassVar[int]
    NODES_COUNT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    FINISH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MARGINAL_SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    BASIS_INDEX_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SHARES_WITH_JOB_ID_FIELD_NUMBER: _ClassVar[int]
    SOLO_SPEED_RATIO_FIELD_NUMBER: _ClassVar[int]
    USEFUL_RATIO_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    action: ScheduleAction
    pool: str
    devices_count: int
    nodes_count: int
    placement: _containers.RepeatedCompositeFieldContainer[NodeDevices]
    samples_per_second: float
    finish_seconds: float
    marginal_samples_per_second: float
    reason: str
    why: str
    basis_index: int
    problem: _problem_pb2.Problem
    shares_with_job_id: str
    solo_speed_ratio: float
    useful_ratio: float
    goodput_samples_per_second: float
    def __init__(self, job_id: _Optional[str] = ..., action: _Optional[_Union[ScheduleAction, str]] = ..., pool: _Optional[str] = ..., devices_count: _Optional[int] = ..., nodes_count: _Optional[int] = ..., placement: _Optional[_Iterable[_Union[NodeDevices, _Mapping]]] = ..., samples_per_second: _Optional[float] = ..., finish_seconds: _Optional[float] = ..., marginal_samples_per_second: _Optional[float] = ..., reason: _Optional[str] = ..., why: _Optional[str] = ..., basis_index: _Optional[int] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., shares_with_job_id: _Optional[str] = ..., solo_speed_ratio: _Optional[float] = ..., useful_ratio: _Optional[float] = ..., goodput_samples_per_second: _Optional[float] = ...) -> None: ...

class PoolDemand(_message.Message):
    __slots__ = ("pool", "used_nodes", "desired_nodes")
    POOL_FIELD_NUMBER: _ClassVar[int]
    USED_NODES_FIELD_NUMBER: _ClassVar[int]
    DESIRED_NODES_FIELD_NUMBER: _ClassVar[int]
    pool: str
    used_nodes: int
    desired_nodes: int
    def __init__(self, pool: _Optional[str] = ..., used_nodes: _Optional[int] = ..., desired_nodes: _Optional[int] = ...) -> None: ...
