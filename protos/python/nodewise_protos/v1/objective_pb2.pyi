from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ObjectiveRule(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OBJECTIVE_RULE_UNSPECIFIED: _ClassVar[ObjectiveRule]
    OBJECTIVE_RULE_HIGHEST_THROUGHPUT: _ClassVar[ObjectiveRule]
    OBJECTIVE_RULE_KNEE: _ClassVar[ObjectiveRule]
    OBJECTIVE_RULE_LEAST_TIME: _ClassVar[ObjectiveRule]
    OBJECTIVE_RULE_LEAST_COST: _ClassVar[ObjectiveRule]
    OBJECTIVE_RULE_FEWEST_DEVICES: _ClassVar[ObjectiveRule]

class CapacityTier(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAPACITY_TIER_UNSPECIFIED: _ClassVar[CapacityTier]
    CAPACITY_TIER_ON_DEMAND: _ClassVar[CapacityTier]
    CAPACITY_TIER_SPOT: _ClassVar[CapacityTier]
    CAPACITY_TIER_RESERVED: _ClassVar[CapacityTier]

class RecommendationBound(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RECOMMENDATION_BOUND_UNSPECIFIED: _ClassVar[RecommendationBound]
    RECOMMENDATION_BOUND_RANGE: _ClassVar[RecommendationBound]
    RECOMMENDATION_BOUND_EVIDENCE: _ClassVar[RecommendationBound]
OBJECTIVE_RULE_UNSPECIFIED: ObjectiveRule
OBJECTIVE_RULE_HIGHEST_THROUGHPUT: ObjectiveRule
OBJECTIVE_RULE_KNEE: ObjectiveRule
OBJECTIVE_RULE_LEAST_TIME: ObjectiveRule
OBJECTIVE_RULE_LEAST_COST: ObjectiveRule
OBJECTIVE_RULE_FEWEST_DEVICES: ObjectiveRule
CAPACITY_TIER_UNSPECIFIED: CapacityTier
CAPACITY_TIER_ON_DEMAND: CapacityTier
CAPACITY_TIER_SPOT: CapacityTier
CAPACITY_TIER_RESERVED: CapacityTier
RECOMMENDATION_BOUND_UNSPECIFIED: RecommendationBound
RECOMMENDATION_BOUND_RANGE: RecommendationBound
RECOMMENDATION_BOUND_EVIDENCE: RecommendationBound

class Objective(_message.Message):
    __slots__ = ("highest_throughput", "knee", "least_time", "least_cost", "fewest_devices", "confidence", "max_extrapolation_ratio")
    HIGHEST_THROUGHPUT_FIELD_NUMBER: _ClassVar[int]
    KNEE_FIELD_NUMBER: _ClassVar[int]
    LEAST_TIME_FIELD_NUMBER: _ClassVar[int]
    LEAST_COST_FIELD_NUMBER: _ClassVar[int]
    FEWEST_DEVICES_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    MAX_EXTRAPOLATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    highest_throughput: HighestThroughput
    knee: Knee
    least_time: LeastTime
    least_cost: LeastCost
    fewest_devices: FewestDevices
    confidence: float
    max_extrapolation_ratio: float
    def __init__(self, highest_throughput: _Optional[_Union[HighestThroughput, _Mapping]] = ..., knee: _Optional[_Union[Knee, _Mapping]] = ..., least_time: _Optional[_Union[LeastTime, _Mapping]] = ..., least_cost: _Optional[_Union[LeastCost, _Mapping]] = ..., fewest_devices: _Optional[_Union[FewestDevices, _Mapping]] = ..., confidence: _Optional[float] = ..., max_extrapolation_ratio: _Optional[float] = ...) -> None: ...

class HighestThroughput(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Knee(_message.Message):
    __slots__ = ("share",)
    SHARE_FIELD_NUMBER: _ClassVar[int]
    share: float
    def __init__(self, share: _Optional[float] = ...) -> None: ...

class LeastTime(_message.Message):
    __slots__ = ("max_nodes", "max_cost")
    MAX_NODES_FIELD_NUMBER: _ClassVar[int]
    MAX_COST_FIELD_NUMBER: _ClassVar[int]
    max_nodes: int
    max_cost: float
    def __init__(self, max_nodes: _Optional[int] = ..., max_cost: _Optional[float] = ...) -> None: ...

class LeastCost(_message.Message):
    __slots__ = ("deadline_seconds",)
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    deadline_seconds: float
    def __init__(self, deadline_seconds: _Optional[float] = ...) -> None: ...

class FewestDevices(_message.Message):
    __slots__ = ("deadline_seconds",)
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    deadline_seconds: float
    def __init__(self, deadline_seconds: _Optional[float] = ...) -> None: ...

class Work(_message.Message):
    __slots__ = ("samples", "epochs")
    SAMPLES_FIELD_NUMBER: _ClassVar[int]
    EPOCHS_FIELD_NUMBER: _ClassVar[int]
    samples: float
    epochs: float
    def __init__(self, samples: _Optional[float] = ..., epochs: _Optional[float] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("name", "device_name", "tier", "region", "price_per_node_hour", "currency", "start_up_seconds")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    TIER_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    CURRENCY_FIELD_NUMBER: _ClassVar[int]
    START_UP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_name: str
    tier: CapacityTier
    region: str
    price_per_node_hour: float
    currency: str
    start_up_seconds: float
    def __init__(self, name: _Optional[str] = ..., device_name: _Optional[str] = ..., tier: _Optional[_Union[CapacityTier, str]] = ..., region: _Optional[str] = ..., price_per_node_hour: _Optional[float] = ..., currency: _Optional[str] = ..., start_up_seconds: _Optional[float] = ...) -> None: ...

class StatisticalEfficiency(_message.Message):
    __slots__ = ("gradient_noise_scale_samples", "initial_batch_samples")
    GRADIENT_NOISE_SCALE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    INITIAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    gradient_noise_scale_samples: float
    initial_batch_samples: float
    def __init__(self, gradient_noise_scale_samples: _Optional[float] = ..., initial_batch_samples: _Optional[float] = ...) -> None: ...

class BatchBounds(_message.Message):
    __slots__ = ("min_global_batch_samples", "max_global_batch_samples", "max_batch_per_worker_samples")
    MIN_GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    MAX_GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    min_global_batch_samples: float
    max_global_batch_samples: float
    max_batch_per_worker_samples: float
    def __init__(self, min_global_batch_samples: _Optional[float] = ..., max_global_batch_samples: _Optional[float] = ..., max_batch_per_worker_samples: _Optional[float] = ...) -> None: ...

class CurrentConfiguration(_message.Message):
    __slots__ = ("row", "restart_cost_seconds", "payback_seconds")
    ROW_FIELD_NUMBER: _ClassVar[int]
    RESTART_COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PAYBACK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    row: int
    restart_cost_seconds: float
    payback_seconds: float
    def __init__(self, row: _Optional[int] = ..., restart_cost_seconds: _Optional[float] = ..., payback_seconds: _Optional[float] = ...) -> None: ...

class Recommendation(_message.Message):
    __slots__ = ("row", "nodes", "workers", "device_name", "offer_name", "samples_per_second", "finish_seconds", "cost", "rule", "why", "numbers", "keeps_current", "bounded_by")
    ROW_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    OFFER_NAME_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    FINISH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    NUMBERS_FIELD_NUMBER: _ClassVar[int]
    KEEPS_CURRENT_FIELD_NUMBER: _ClassVar[int]
    BOUNDED_BY_FIELD_NUMBER: _ClassVar[int]
    row: int
    nodes: int
    workers: int
    device_name: str
    offer_name: str
    samples_per_second: float
    finish_seconds: float
    cost: float
    rule: ObjectiveRule
    why: str
    numbers: _containers.RepeatedCompositeFieldContainer[NamedNumber]
    keeps_current: bool
    bounded_by: RecommendationBound
    def __init__(self, row: _Optional[int] = ..., nodes: _Optional[int] = ..., workers: _Optional[int] = ..., device_name: _Optional[str] = ..., offer_name: _Optional[str] = ..., samples_per_second: _Optional[float] = ..., finish_seconds: _Optional[float] = ..., cost: _Optional[float] = ..., rule: _Optional[_Union[ObjectiveRule, str]] = ..., why: _Optional[str] = ..., numbers: _Optional[_Iterable[_Union[NamedNumber, _Mapping]]] = ..., keeps_current: bool = ..., bounded_by: _Optional[_Union[RecommendationBound, str]] = ...) -> None: ...

class NamedNumber(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: float
    def __init__(self, name: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
