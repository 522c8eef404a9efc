from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CountSet(_message.Message):
    __slots__ = ("values", "ranges")
    VALUES_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    values: _containers.RepeatedScalarFieldContainer[int]
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.CountRange]
    def __init__(self, values: _Optional[_Iterable[int]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.CountRange, _Mapping]]] = ...) -> None: ...

class PlanPool(_message.Message):
    __slots__ = ("device_name", "nodes", "workers_per_node", "link_bytes_per_second")
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_PER_NODE_FIELD_NUMBER: _ClassVar[int]
    LINK_BYTES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    device_name: str
    nodes: CountSet
    workers_per_node: int
    link_bytes_per_second: float
    def __init__(self, device_name: _Optional[str] = ..., nodes: _Optional[_Union[CountSet, _Mapping]] = ..., workers_per_node: _Optional[int] = ..., link_bytes_per_second: _Optional[float] = ...) -> None: ...

class PlanConstraints(_message.Message):
    __slots__ = ("pools", "global_batch_samples", "micro_batch_samples", "tensor_parallel_degrees", "pipeline_parallel_degrees", "data_parallel_degrees", "context_parallel_degrees", "expert_parallel_degrees", "interleave_degrees", "recomputations", "zero_stages", "sequence_parallel", "precisions", "memory_headroom_bytes", "parameter_servers", "sync_modes", "max_nodes")
    POOLS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    MICRO_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    TENSOR_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    DATA_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    EXPERT_PARALLEL_DEGREES_FIELD_NUMBER: _ClassVar[int]
    INTERLEAVE_DEGREES_FIELD_NUMBER: _ClassVar[int]
    RECOMPUTATIONS_FIELD_NUMBER: _ClassVar[int]
    ZERO_STAGES_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_PARALLEL_FIELD_NUMBER: _ClassVar[int]
    PRECISIONS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_HEADROOM_BYTES_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVERS_FIELD_NUMBER: _ClassVar[int]
    SYNC_MODES_FIELD_NUMBER: _ClassVar[int]
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    pools: _containers.RepeatedCompositeFieldContainer[PlanPool]
    global_batch_samples: CountSet
    micro_batch_samples: CountSet
    tensor_parallel_degrees: CountSet
    pipeline_parallel_degrees: CountSet
    data_parallel_degrees: CountSet
    context_parallel_degrees: CountSet
    expert_parallel_degrees: CountSet
    interleave_degrees: CountSet
    recomputations: _containers.RepeatedScalarFieldContainer[_configuration_pb2.Recomputation]
    zero_stages: _containers.RepeatedScalarFieldContainer[int]
    sequence_parallel: _containers.RepeatedScalarFieldContainer[bool]
    precisions: _containers.RepeatedScalarFieldContainer[str]
    memory_headroom_bytes: float
    parameter_servers: CountSet
    sync_modes: _containers.RepeatedScalarFieldContainer[_configuration_pb2.SyncMode]
    max_nodes: int
    def __init__(self, pools: _Optional[_Iterable[_Union[PlanPool, _Mapping]]] = ..., global_batch_samples: _Optional[_Union[CountSet, _Mapping]] = ..., micro_batch_samples: _Optional[_Union[CountSet, _Mapping]] = ..., tensor_parallel_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., pipeline_parallel_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., data_parallel_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., context_parallel_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., expert_parallel_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., interleave_degrees: _Optional[_Union[CountSet, _Mapping]] = ..., recomputations: _Optional[_Iterable[_Union[_configuration_pb2.Recomputation, str]]] = ..., zero_stages: _Optional[_Iterable[int]] = ..., sequence_parallel: _Optional[_Iterable[bool]] = ..., precisions: _Optional[_Iterable[str]] = ..., memory_headroom_bytes: _Optional[float] = ..., parameter_servers: _Optional[_Union[CountSet, _Mapping]] = ..., sync_modes: _Optional[_Iterable[_Union[_configuration_pb2.SyncMode, str]]] = ..., max_nodes: _Optional[int] = ...) -> None: ...

class PlanRequest(_message.Message):
    __slots__ = ("profile", "constraints", "objective", "options", "budget_seconds", "exhaustive", "max_frontier_points", "skip_explanation", "work", "offers")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINTS_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    BUDGET_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXHAUSTIVE_FIELD_NUMBER: _ClassVar[int]
    MAX_FRONTIER_POINTS_FIELD_NUMBER: _ClassVar[int]
    SKIP_EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    constraints: PlanConstraints
    objective: _objective_pb2.Objective
    options: _options_pb2.ModelOptions
    budget_seconds: float
    exhaustive: bool
    max_frontier_points: int
    skip_explanation: bool
    work: _objective_pb2.Work
    offers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.Offer]
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., constraints: _Optional[_Union[PlanConstraints, _Mapping]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ..., budget_seconds: _Optional[float] = ..., exhaustive: bool = ..., max_frontier_points: _Optional[int] = ..., skip_explanation: bool = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_objective_pb2.Offer, _Mapping]]] = ...) -> None: ...

class PlanResponse(_message.Message):
    __slots__ = ("progress", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: PlanProgress
    result: PlanResult
    def __init__(self, progress: _Optional[_Union[PlanProgress, _Mapping]] = ..., result: _Optional[_Union[PlanResult, _Mapping]] = ...) -> None: ...

class PlanProgress(_message.Message):
    __slots__ = ("space_count", "evaluated_count", "pruned_count", "feasible_count", "best", "best_step_seconds")
    SPACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVALUATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PRUNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FEASIBLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    BEST_STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    space_count: int
    evaluated_count: int
    pruned_count: int
    feasible_count: int
    best: _configuration_pb2.Configurations
    best_step_seconds: float
    def __init__(self, space_count: _Optional[int] = ..., evaluated_count: _Optional[int] = ..., pruned_count: _Optional[int] = ..., feasible_count: _Optional[int] = ..., best: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., best_step_seconds: _Optional[float] = ...) -> None: ...

class PlanResult(_message.Message):
    __slots__ = ("space_count", "evaluated_count", "pruned_count", "feasible_count", "search_seconds", "complete", "configurations", "predictions", "recommendation", "frontier_rows", "frontier_count", "basis", "rejections", "explanation", "estimator", "estimator_version")
    SPACE_COUNT_FIELD_NUMBER: _ClassVar[int]
    EVALUATED_COUNT_FIELD_NUMBER: _ClassVar[int]
    PRUNED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FEASIBLE_COUNT_FIELD_NUMBER: _ClassVar[int]
    SEARCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATION_FIELD_NUMBER: _ClassVar[int]
    FRONTIER_ROWS_FIELD_NUMBER: _ClassVar[int]
    FRONTIER_COUNT_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    REJECTIONS_FIELD_NUMBER: _ClassVar[int]
    EXPLANATION_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    space_count: int
    evaluated_count: int
    pruned_count: int
    feasible_count: int
    search_seconds: float
    complete: bool
    configurations: _configuration_pb2.Configurations
    predictions: _prediction_pb2.Predictions
    recommendation: _objective_pb2.Recommendation
    frontier_rows: _containers.RepeatedScalarFieldContainer[int]
    frontier_count: int
    basis: _prediction_pb2.Basis
    rejections: _containers.RepeatedCompositeFieldContainer[PlanRejection]
    explanation: PlanExplanation
    estimator: str
    estimator_version: str
    def __init__(self, space_count: _Optional[int] = ..., evaluated_count: _Optional[int] = ..., pruned_count: _Optional[int] = ..., feasible_count: _Optional[int] = ..., search_seconds: _Optional[float] = ..., complete: bool = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., recommendation: _Optional[_Union[_objective_pb2.Recommendation, _Mapping]] = ..., frontier_rows: _Optional[_Iterable[int]] = ..., frontier_count: _Optional[int] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ..., rejections: _Optional[_Iterable[_Union[PlanRejection, _Mapping]]] = ..., explanation: _Optional[_Union[PlanExplanation, _Mapping]] = ..., estimator: _Optional[str] = ..., estimator_version: _Optional[str] = ...) -> None: ...

class PlanRejection(_message.Message):
    __slots__ = ("constraint", "message", "configurations_count", "numbers")
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    constraint: str
    message: str
    configurations_count: int
    numbers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.NamedNumber]
    def __init__(self, constraint: _Optional[str] = ..., message: _Optional[str] = ..., configurations_count: _Optional[int] = ..., numbers: _Optional[_Iterable[_Union[_objective_pb2.NamedNumber, _Mapping]]] = ...) -> None: ...

class PlanExplanation(_message.Message):
    __slots__ = ("alternatives", "binding", "sensitivities", "complete")
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    BINDING_FIELD_NUMBER: _ClassVar[int]
    SENSITIVITIES_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    alternatives: _containers.RepeatedCompositeFieldContainer[PlanAlternative]
    binding: _containers.RepeatedCompositeFieldContainer[PlanRejection]
    sensitivities: _containers.RepeatedCompositeFieldContainer[PlanSensitivity]
    complete: bool
    def __init__(self, alternatives: _Optional[_Iterable[_Union[PlanAlternative, _Mapping]]] = ..., binding: _Optional[_Iterable[_Union[PlanRejection, _Mapping]]] = ..., sensitivities: _Optional[_Iterable[_Union[PlanSensitivity, _Mapping]]] = ..., complete: bool = ...) -> None: ...

class PlanAlternative(_message.Message):
    __slots__ = ("dimension", "chosen_value", "alternative_value", "fits", "step_seconds", "time_change_ratio", "term", "term_seconds", "excess_memory_bytes", "why")
    DIMENSION_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_VALUE_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVE_VALUE_FIELD_NUMBER: _ClassVar[int]
    FITS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TIME_CHANGE_RATIO_FIELD_NUMBER: _ClassVar[int]
    TERM_FIELD_NUMBER: _ClassVar[int]
    TERM_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXCESS_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    dimension: str
    chosen_value: str
    alternative_value: str
    fits: bool
    step_seconds: float
    time_change_ratio: float
    term: str
    term_seconds: float
    excess_memory_bytes: float
    why: str
    def __init__(self, dimension: _Optional[str] = ..., chosen_value: _Optional[str] = ..., alternative_value: _Optional[str] = ..., fits: bool = ..., step_seconds: _Optional[float] = ..., time_change_ratio: _Optional[float] = ..., term: _Optional[str] = ..., term_seconds: _Optional[float] = ..., excess_memory_bytes: _Optional[float] = ..., why: _Optional[str] = ...) -> None: ...

class PlanSensitivity(_message.Message):
    __slots__ = ("change", "best", "speedup_ratio", "numbers", "obstacle")
    CHANGE_FIELD_NUMBER: _ClassVar[int]
    BEST_FIELD_NUMBER: _ClassVar[int]
    SPEEDUP_RATIO_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    OBSTACLE_FIELD_NUMBER: _ClassVar[int]
    change: str
    best: str
    speedup_ratio: float
    numbers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.NamedNumber]
    obstacle: str
    def __init__(self, change: _Optional[str] = ..., best: _Optional[str] = ..., speedup_ratio: _Optional[float] = ..., numbers: _Optional[_Iterable[_Union[_objective_pb2.NamedNumber, _Mapping]]] = ..., obstacle: _Optional[str] = ...) -> None: ...
