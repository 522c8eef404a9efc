from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SyncMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SYNC_MODE_UNSPECIFIED: _ClassVar[SyncMode]
    SYNC_MODE_ASYNC: _ClassVar[SyncMode]
    SYNC_MODE_SYNC: _ClassVar[SyncMode]
    SYNC_MODE_ALLREDUCE: _ClassVar[SyncMode]
    SYNC_MODE_HYBRID: _ClassVar[SyncMode]

class PlacementRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_RULE_UNSPECIFIED: _ClassVar[PlacementRule]
    PLACEMENT_RULE_PACKED: _ClassVar[PlacementRule]
    PLACEMENT_RULE_SPREAD: _ClassVar[PlacementRule]

class Recomputation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECOMPUTATION_UNSPECIFIED: _ClassVar[Recomputation]
    RECOMPUTATION_NONE: _ClassVar[Recomputation]
    RECOMPUTATION_SELECTIVE: _ClassVar[Recomputation]
    RECOMPUTATION_FULL: _ClassVar[Recomputation]
SYNC_MODE_UNSPECIFIED: SyncMode
SYNC_MODE_ASYNC: SyncMode
SYNC_MODE_SYNC: SyncMode
SYNC_MODE_ALLREDUCE: SyncMode
SYNC_MODE_HYBRID: SyncMode
PLACEMENT_RULE_UNSPECIFIED: PlacementRule
PLACEMENT_RULE_PACKED: PlacementRule
PLACEMENT_RULE_SPREAD: PlacementRule
RECOMPUTATION_UNSPECIFIED: Recomputation
RECOMPUTATION_NONE: Recomputation
RECOMPUTATION_SELECTIVE: Recomputation
RECOMPUTATION_FULL: Recomputation

class Configurations(_message.Message):
    __slots__ = ("nodes", "workers", "parameter_servers", "device_names", "device_indexes", "sync_modes", "placement_offsets", "placement_workers", "batch_per_worker_samples", "accumulation_steps", "global_batch_samples", "link_bytes_per_second", "tensor_parallel_degrees", "pipeline_parallel_degrees", "data_parallel_degrees", "expert_parallel_degrees", "context_parallel_degrees", "sequence_parallel", "interleave_degrees", "zero_stages", "recomputations", "precisions", "backup_workers", "hybrid_sync_fractions", "hybrid_switch_seconds", "group_offsets", "group_workers", "group_device_indexes", "group_compute_factors", "offer_names", "offer_indexes")
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAMES_FIELD_NUMBER: _ClassVar[int]
    DEVICE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    SYNC_MODES_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_WORKERS_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACCUMULATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TENSOR_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    DATA_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    EXPERT_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    INTERLEAVE_DEGREES_FIELD_NUMBER: _ClassVar[int]
    ZERO_STAGES_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTATIONS_FIELD_NUMBER: _ClassVar[int]
    PRECISIONS_FIELD_NUMBER: _ClassVar[int]
    BACKUP_WORKERS_FIELD_NUMBER: _ClassVar[int]
    HYBRID_SYNC_FRACTIONS_FIELD_NUMBER: _ClassVar[int]
    HYBRID_SWITCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    GROUP_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    GROUP_WORKERS_FIELD_NUMBER: _ClassVar[int]
    GROUP_DEVICE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    GROUP_COMPUTE_FACTORS_FIELD_NUMBER: _ClassVar[int]
    OFFER_NAMES_FIELD_NUMBER: _ClassVar[int]
    OFFER_INDEXES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedScalarFieldContainer[int]
    workers: _containers.RepeatedScalarFieldContainer[int]
    parameter_servers: _containers.RepeatedScalarFieldContainer[int]
    device_names: _containers.RepeatedScalarFieldContainer[str]
    device_indexes: _containers.RepeatedScalarFieldContainer[int]
    sync_modes: _containers.RepeatedScalarFieldContainer[SyncMode]
    placement_offsets: _containers.RepeatedScalarFieldContainer[int]
    placement_workers: _containers.RepeatedScalarFieldContainer[int]
    batch_per_worker_samples: _containers.RepeatedScalarFieldContainer[float]
    accumulation_steps: _containers.RepeatedScalarFieldContainer[int]
    global_batch_samples: _containers.RepeatedScalarFieldContainer[float]
    link_bytes_per_second: _containers.RepeatedScalarFieldContainer[float]
    tensor_parallel_degrees: _containers.RepeatedScalarFieldContainer[int]
    pipeline_parallel_degrees: _containers.RepeatedScalarFieldContainer[int]
    data_parallel_degrees: _containers.RepeatedScalarFieldContainer[int]
    expert_parallel_degrees: _containers.RepeatedScalarFieldContainer[int]
    context_parallel_degrees: _containers.RepeatedScalarFieldContainer[int]
    sequence_parallel: _containers.RepeatedScalarFieldContainer[bool]
    interleave_degrees: _containers.RepeatedScalarFieldContainer[int]
    zero_stages: _containers.RepeatedScalarFieldContainer[int]
    recomputations: _containers.RepeatedScalarFieldContainer[Recomputation]
    precisions: _containers.RepeatedScalarFieldContainer[str]
    backup_workers: _containers.RepeatedScalarFieldContainer[int]
    hybrid_sync_fractions: _containers.RepeatedScalarFieldContainer[float]
    hybrid_switch_seconds: _containers.RepeatedScalarFieldContainer[float]
    group_offsets: _containers.RepeatedScalarFieldContainer[int]
    group_workers: _containers.RepeatedScalarFieldContainer[int]
    group_device_indexes: _containers.RepeatedScalarFieldContainer[int]
    group_compute_factors: _containers.RepeatedScalarFieldContainer[float]
    offer_names: _containers.RepeatedScalarFieldContainer[str]
    offer_indexes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, nodes: _Optional[_Iterable[int]] = ..., workers: _Optional[_Iterable[int]] = ..., parameter_servers: _Optional[_Iterable[int]] = ..., device_names: _Optional[_Iterable[str]] = ..., device_indexes: _Optional[_Iterable[int]] = ..., sync_modes: _Optional[_Iterable[_Union[SyncMode, str]]] = ..., placement_offsets: _Optional[_Iterable[int]] = ..., placement_workers: _Optional[_Iterable[int]] = ..., batch_per_worker_samples: _Optional[_Iterable[float]] = ..., accumulation_steps: _Optional[_Iterable[int]] = ..., global_batch_samples: _Optional[_Iterable[float]] = ..., link_bytes_per_second: _Optional[_Iterable[float]] = ..., tensor_parallel_degrees: _Optional[_Iterable[int]] = ..., pipeline_parallel_degrees: _Optional[_Iterable[int]] = ..., data_parallel_degrees: _Optional[_Iterable[int]] = ..., expert_parallel_degrees: _Optional[_Iterable[int]] = ..., context_parallel_degrees: _Optional[_Iterable[int]] = ..., sequence_parallel: _Optional[_Iterable[bool]] = ..., interleave_degrees: _Optional[_Iterable[int]] = ..., zero_stages: _Optional[_Iterable[int]] = ..., recomputations: _Optional[_Iterable[_Union[Recomputation, str]]] = ..., precisions: _Optional[_Iterable[str]] = ..., backup_workers: _Optional[_Iterable[int]] = ..., hybrid_sync_fractions: _Optional[_Iterable[float]] = ..., hybrid_switch_seconds: _Optional[_Iterable[float]] = ..., group_offsets: _Optional[_Iterable[int]] = ..., group_workers: _Optional[_Iterable[int]] = ..., group_device_indexes: _Optional[_Iterable[int]] = ..., group_compute_factors: _Optional[_Iterable[float]] = ..., offer_names: _Optional[_Iterable[str]] = ..., offer_indexes: _Optional[_Iterable[int]] = ...) -> None: ...

class ConfigurationSettings(_message.Message):
    __slots__ = ("parameter_servers", "device_name", "sync_mode", "batch_per_worker_samples", "accumulation_steps", "global_batch_samples", "link_bytes_per_second", "tensor_parallel_degree", "pipeline_parallel_degree", "data_parallel_degree", "expert_parallel_degree", "context_parallel_degree", "sequence_parallel", "interleave_degree", "zero_stage", "recomputation", "precision", "backup_workers", "hybrid_sync_fraction", "hybrid_switch_seconds", "offer_name")
    PARAMETER_SERVERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    SYNC_MODE_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACCUMULATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TENSOR_PARALLEL_DEGREE_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_PARALLEL_DEGREE_FIELD_NUMBER: _ClassVar[int]
    DATA_PARALLEL_DEGREE_FIELD_NUMBER: _ClassVar[int]
    EXPERT_PARALLEL_DEGREE_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_PARALLEL_DEGREE_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    INTERLEAVE_DEGREE_FIELD_NUMBER: _ClassVar[int]
    ZERO_STAGE_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTATION_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    BACKUP_WORKERS_FIELD_NUMBER: _ClassVar[int]
    HYBRID_SYNC_FRACTION_FIELD_NUMBER: _ClassVar[int]
    HYBRID_SWITCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    OFFER_NAME_FIELD_NUMBER: _ClassVar[int]
    parameter_servers: int
    device_name: str
    sync_mode: SyncMode
    batch_per_worker_samples: float
    accumulation_steps: int
    global_batch_samples: float
    link_bytes_per_second: float
    tensor_parallel_degree: int
    pipeline_parallel_degree: int
    data_parallel_degree: int
    expert_parallel_degree: int
    context_parallel_degree: int
    sequence_parallel: bool
    interleave_degree: int
    zero_stage: int
    recomputation: Recomputation
    precision: str
    backup_workers: int
    hybrid_sync_fraction: float
    hybrid_switch_seconds: float
    offer_name: str
    def __init__(self, parameter_servers: _Optional[int] = ..., device_name: _Optional[str] = ..., sync_mode: _Optional[_Union[SyncMode, str]] = ..., batch_per_worker_samples: _Optional[float] = ..., accumulation_steps: _Optional[int] = ..., global_batch_samples: _Optional[float] = ..., link_bytes_per_second: _Optional[float] = ..., tensor_parallel_degree: _Optional[int] = ..., pipeline_parallel_degree: _Optional[int] = ..., data_parallel_degree: _Optional[int] = ..., expert_parallel_degree: _Optional[int] = ..., context_parallel_degree: _Optional[int] = ..., sequence_parallel: bool = ..., interleave_degree: _Optional[int] = ..., zero_stage: _Optional[int] = ..., recomputation: _Optional[_Union[Recomputation, str]] = ..., precision: _Optional[str] = ..., backup_workers: _Optional[int] = ..., hybrid_sync_fraction: _Optional[float] = ..., hybrid_switch_seconds: _Optional[float] = ..., offer_name: _Optional[str] = ...) -> None: ...

class CountRange(_message.Message):
    __slots__ = ("first", "last", "step", "powers_of_two")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    POWERS_OF_TWO_FIELD_NUMBER: _ClassVar[int]
    first: int
    last: int
    step: int
    powers_of_two: bool
    def __init__(self, first: _Optional[int] = ..., last: _Optional[int] = ..., step: _Optional[int] = ..., powers_of_two: bool = ...) -> None: ...

class ConfigurationRange(_message.Message):
    __slots__ = ("nodes", "workers", "workers_per_node", "placement_rule", "settings")
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_RULE_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    nodes: CountRange
    workers: CountRange
    workers_per_node: int
    placement_rule: PlacementRule
    settings: ConfigurationSettings
    def __init__(self, nodes: _Optional[_Union[CountRange, _Mapping]] = ..., workers: _Optional[_Union[CountRange, _Mapping]] = ..., workers_per_node: _Optional[int] = ..., placement_rule: _Optional[_Union[PlacementRule, str]] = ..., settings: _Optional[_Union[ConfigurationSettings, _Mapping]] = ...) -> None: ...
