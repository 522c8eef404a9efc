import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2 as _completion_offer_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompletionRow(_message.Message):
    __slots__ = ("name", "status", "problem", "time_seconds", "cost", "revocations_mean", "deadline_probability", "failure_probability", "breakdown", "ideal_seconds", "samples_per_second", "checkpoints", "lifetimes", "warnings", "basis", "nodes", "workers", "device_names", "speed_log_spread")
    NAME_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    TIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    REVOCATIONS_MEAN_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    FAILURE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    BREAKDOWN_FIELD_NUMBER: _ClassVar[int]
    IDEAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    LIFETIMES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAMES_FIELD_NUMBER: _ClassVar[int]
    SPEED_LOG_SPREAD_FIELD_NUMBER: _ClassVar[int]
    name: str
    status: _prediction_pb2.RowStatus
    problem: _problem_pb2.Problem
    time_seconds: CompletionSpread
    cost: CompletionSpread
    revocations_mean: float
    deadline_probability: float
    failure_probability: float
    breakdown: CompletionBreakdown
    ideal_seconds: float
    samples_per_second: float
    checkpoints: CompletionSaves
    lifetimes: _containers.RepeatedCompositeFieldContainer[LifetimeBasis]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    basis: _prediction_pb2.Basis
    nodes: int
    workers: int
    device_names: _containers.RepeatedScalarFieldContainer[str]
    speed_log_spread: float
    def __init__(self, name: _Optional[str] = ..., status: _Optional[_Union[_prediction_pb2.RowStatus, str]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., time_seconds: _Optional[_Union[CompletionSpread, _Mapping]] = ..., cost: _Optional[_Union[CompletionSpread, _Mapping]] = ..., revocations_mean: _Optional[float] = ..., deadline_probability: _Optional[float] = ..., failure_probability: _Optional[float] = ..., breakdown: _Optional[_Union[CompletionBreakdown, _Mapping]] = ..., ideal_seconds: _Optional[float] = ..., samples_per_second: _Optional[float] = ..., checkpoints: _Optional[_Union[CompletionSaves, _Mapping]] = ..., lifetimes: _Optional[_Iterable[_Union[LifetimeBasis, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ..., nodes: _Optional[int] = ..., workers: _Optional[int] = ..., device_names: _Optional[_Iterable[str]] = ..., speed_log_spread: _Optional[float] = ...) -> None: ...

class CompletionSpread(_message.Message):
    __slots__ = ("mean", "standard_error", "p50", "p90", "p99")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    STANDARD_ERROR_FIELD_NUMBER: _ClassVar[int]
    P50_FIELD_NUMBER: _ClassVar[int]
    P90_FIELD_NUMBER: _ClassVar[int]
    P99_FIELD_NUMBER: _ClassVar[int]
    mean: float
    standard_error: float
    p50: float
    p90: float
    p99: float
    def __init__(self, mean: _Optional[float] = ..., standard_error: _Optional[float] = ..., p50: _Optional[float] = ..., p90: _Optional[float] = ..., p99: _Optional[float] = ...) -> None: ...

class CompletionBreakdown(_message.Message):
    __slots__ = ("compute_seconds", "degraded_seconds", "checkpoint_seconds", "lost_work_seconds", "restart_seconds")
    COMPUTE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEGRADED_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LOST_WORK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESTART_SECONDS_FIELD_NUMBER: _ClassVar[int]
    compute_seconds: float
    degraded_seconds: float
    checkpoint_seconds: float
    lost_work_seconds: float
    restart_seconds: float
    def __init__(self, compute_seconds: _Optional[float] = ..., degraded_seconds: _Optional[float] = ..., checkpoint_seconds: _Optional[float] = ..., lost_work_seconds: _Optional[float] = ..., restart_seconds: _Optional[float] = ...) -> None: ...

class CompletionSaves(_message.Message):
    __slots__ = ("seconds", "interval_samples", "interval_seconds", "chosen", "young_interval_seconds", "daly_interval_seconds")
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FIELD_NUMBER: _ClassVar[int]
    YOUNG_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DALY_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    seconds: float
    interval_samples: float
    interval_seconds: float
    chosen: bool
    young_interval_seconds: float
    daly_interval_seconds: float
    def __init__(self, seconds: _Optional[float] = ..., interval_samples: _Optional[float] = ..., interval_seconds: _Optional[float] = ..., chosen: bool = ..., young_interval_seconds: _Optional[float] = ..., daly_interval_seconds: _Optional[float] = ...) -> None: ...

class LifetimeBasis(_message.Message):
    __slots__ = ("group", "data_set", "device_name", "region", "measured_time", "machines_count", "law", "ks_distance")
    GROUP_FIELD_NUMBER: _ClassVar[int]
    DATA_SET_FIELD_NUMBER: _ClassVar[int]
    DEVICE_NAME_FIELD_NUMBER: _ClassVar[int]
    REGION_FIELD_NUMBER: _ClassVar[int]
    MEASURED_TIME_FIELD_NUMBER: _ClassVar[int]
    MACHINES_COUNT_FIELD_NUMBER: _ClassVar[int]
    LAW_FIELD_NUMBER: _ClassVar[int]
    KS_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    group: int
    data_set: str
    device_name: str
    region: str
    measured_time: _timestamp_pb2.Timestamp
    machines_count: int
    law: str
    ks_distance: float
    def __init__(self, group: _Optional[int] = ..., data_set: _Optional[str] = ..., device_name: _Optional[str] = ..., region: _Optional[str] = ..., measured_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., machines_count: _Optional[int] = ..., law: _Optional[str] = ..., ks_distance: _Optional[float] = ...) -> None: ...

class CompletionChoice(_message.Message):
    __slots__ = ("row", "rule", "why")
    ROW_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    row: int
    rule: _objective_pb2.ObjectiveRule
    why: str
    def __init__(self, row: _Optional[int] = ..., rule: _Optional[_Union[_objective_pb2.ObjectiveRule, str]] = ..., why: _Optional[str] = ...) -> None: ...

class OnDemandQuestion(_message.Message):
    __slots__ = ("work_seconds", "deadline_seconds", "switch_seconds", "spot_price_per_hour", "on_demand_price_per_hour", "availability", "law", "learned_from", "nodes_needed", "tick_seconds", "starts_count")
    WORK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SWITCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPOT_PRICE_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_PRICE_PER_HOUR_FIELD_NUMBER: _ClassVar[int]
    AVAILABILITY_FIELD_NUMBER: _ClassVar[int]
    LAW_FIELD_NUMBER: _ClassVar[int]
    LEARNED_FROM_FIELD_NUMBER: _ClassVar[int]
    NODES_NEEDED_FIELD_NUMBER: _ClassVar[int]
    TICK_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STARTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    work_seconds: float
    deadline_seconds: float
    switch_seconds: float
    spot_price_per_hour: float
    on_demand_price_per_hour: float
    availability: _completion_offer_pb2.AvailabilityRecord
    law: AvailabilityLaw
    learned_from: _containers.RepeatedCompositeFieldContainer[_completion_offer_pb2.AvailabilityRecord]
    nodes_needed: int
    tick_seconds: float
    starts_count: int
    def __init__(self, work_seconds: _Optional[float] = ..., deadline_seconds: _Optional[float] = ..., switch_seconds: _Optional[float] = ..., spot_price_per_hour: _Optional[float] = ..., on_demand_price_per_hour: _Optional[float] = ..., availability: _Optional[_Union[_completion_offer_pb2.AvailabilityRecord, _Mapping]] = ..., law: _Optional[_Union[AvailabilityLaw, _Mapping]] = ..., learned_from: _Optional[_Iterable[_Union[_completion_offer_pb2.AvailabilityRecord, _Mapping]]] = ..., nodes_needed: _Optional[int] = ..., tick_seconds: _Optional[float] = ..., starts_count: _Optional[int] = ...) -> None: ...

class AvailabilityLaw(_message.Message):
    __slots__ = ("available_mean_seconds", "unavailable_mean_seconds")
    AVAILABLE_MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UNAVAILABLE_MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    available_mean_seconds: float
    unavailable_mean_seconds: float
    def __init__(self, available_mean_seconds: _Optional[float] = ..., unavailable_mean_seconds: _Optional[float] = ...) -> None: ...

class OnDemandAnswer(_message.Message):
    __slots__ = ("rules", "rule", "why", "available_ratio", "latest_switch_seconds", "starts_count")
    RULES_FIELD_NUMBER: _ClassVar[int]
    RULE_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_RATIO_FIELD_NUMBER: _ClassVar[int]
    LATEST_SWITCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STARTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    rules: _containers.RepeatedCompositeFieldContainer[OnDemandRule]
    rule: str
    why: str
    available_ratio: float
    latest_switch_seconds: float
    starts_count: int
    def __init__(self, rules: _Optional[_Iterable[_Union[OnDemandRule, _Mapping]]] = ..., rule: _Optional[str] = ..., why: _Optional[str] = ..., available_ratio: _Optional[float] = ..., latest_switch_seconds: _Optional[float] = ..., starts_count: _Optional[int] = ...) -> None: ...

class OnDemandRule(_message.Message):
    __slots__ = ("rule", "until_seconds", "cost_mean", "cost_p90", "cost_ratio", "late_ratio", "time_mean_seconds", "spot_mean_seconds", "on_demand_mean_seconds")
    RULE_FIELD_NUMBER: _ClassVar[int]
    UNTIL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COST_MEAN_FIELD_NUMBER: _ClassVar[int]
    COST_P90_FIELD_NUMBER: _ClassVar[int]
    COST_RATIO_FIELD_NUMBER: _ClassVar[int]
    LATE_RATIO_FIELD_NUMBER: _ClassVar[int]
    TIME_MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SPOT_MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_MEAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    rule: str
    until_seconds: float
    cost_mean: float
    cost_p90: float
    cost_ratio: float
    late_ratio: float
    time_mean_seconds: float
    spot_mean_seconds: float
    on_demand_mean_seconds: float
    def __init__(self, rule: _Optional[str] = ..., until_seconds: _Optional[float] = ..., cost_mean: _Optional[float] = ..., cost_p90: _Optional[float] = ..., cost_ratio: _Optional[float] = ..., late_ratio: _Optional[float] = ..., time_mean_seconds: _Optional[float] = ..., spot_mean_seconds: _Optional[float] = ..., on_demand_mean_seconds: _Optional[float] = ...) -> None: ...

class HybridQuestion(_message.Message):
    __slots__ = ("synchronous_seconds", "asynchronous_seconds", "nodes", "batch_per_worker_samples", "parameter_servers_count", "switch_seconds", "fractions", "deadline_seconds", "runs", "least_accuracy", "slowdown_ratios")
    SYNCHRONOUS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ASYNCHRONOUS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    PARAMETER_SERVERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    SWITCH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FRACTIONS_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUNS_FIELD_NUMBER: _ClassVar[int]
    LEAST_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_RATIOS_FIELD_NUMBER: _ClassVar[int]
    synchronous_seconds: float
    asynchronous_seconds: float
    nodes: _completion_offer_pb2.CompletionGroup
    batch_per_worker_samples: int
    parameter_servers_count: int
    switch_seconds: float
    fractions: _containers.RepeatedScalarFieldContainer[float]
    deadline_seconds: float
    runs: _containers.RepeatedCompositeFieldContainer[HybridRun]
    least_accuracy: float
    slowdown_ratios: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, synchronous_seconds: _Optional[float] = ..., asynchronous_seconds: _Optional[float] = ..., nodes: _Optional[_Union[_completion_offer_pb2.CompletionGroup, _Mapping]] = ..., batch_per_worker_samples: _Optional[int] = ..., parameter_servers_count: _Optional[int] = ..., switch_seconds: _Optional[float] = ..., fractions: _Optional[_Iterable[float]] = ..., deadline_seconds: _Optional[float] = ..., runs: _Optional[_Iterable[_Union[HybridRun, _Mapping]]] = ..., least_accuracy: _Optional[float] = ..., slowdown_ratios: _Optional[_Iterable[float]] = ...) -> None: ...

class HybridRun(_message.Message):
    __slots__ = ("fraction", "accuracy")
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_FIELD_NUMBER: _ClassVar[int]
    fraction: float
    accuracy: float
    def __init__(self, fraction: _Optional[float] = ..., accuracy: _Optional[float] = ...) -> None: ...

class HybridAnswer(_message.Message):
    __slots__ = ("problem", "synchronous_seconds", "asynchronous_seconds", "points", "latest_fraction", "feasible_fractions", "chosen_fraction", "next_fraction", "straggler_policies", "bases", "warnings")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    SYNCHRONOUS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ASYNCHRONOUS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    LATEST_FRACTION_FIELD_NUMBER: _ClassVar[int]
    FEASIBLE_FRACTIONS_FIELD_NUMBER: _ClassVar[int]
    CHOSEN_FRACTION_FIELD_NUMBER: _ClassVar[int]
    NEXT_FRACTION_FIELD_NUMBER: _ClassVar[int]
    STRAGGLER_POLICIES_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    problem: _problem_pb2.Problem
    synchronous_seconds: float
    asynchronous_seconds: float
    points: _containers.RepeatedCompositeFieldContainer[HybridPoint]
    latest_fraction: float
    feasible_fractions: _containers.RepeatedScalarFieldContainer[float]
    chosen_fraction: float
    next_fraction: float
    straggler_policies: _containers.RepeatedCompositeFieldContainer[StragglerPolicy]
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    def __init__(self, problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., synchronous_seconds: _Optional[float] = ..., asynchronous_seconds: _Optional[float] = ..., points: _Optional[_Iterable[_Union[HybridPoint, _Mapping]]] = ..., latest_fraction: _Optional[float] = ..., feasible_fractions: _Optional[_Iterable[float]] = ..., chosen_fraction: _Optional[float] = ..., next_fraction: _Optional[float] = ..., straggler_policies: _Optional[_Iterable[_Union[StragglerPolicy, _Mapping]]] = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ...) -> None: ...

class HybridPoint(_message.Message):
    __slots__ = ("fraction", "time_seconds", "in_time", "measured_accuracy")
    FRACTION_FIELD_NUMBER: _ClassVar[int]
    TIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    IN_TIME_FIELD_NUMBER: _ClassVar[int]
    MEASURED_ACCURACY_FIELD_NUMBER: _ClassVar[int]
    fraction: float
    time_seconds: float
    in_time: bool
    measured_accuracy: float
    def __init__(self, fraction: _Optional[float] = ..., time_seconds: _Optional[float] = ..., in_time: bool = ..., measured_accuracy: _Optional[float] = ...) -> None: ...

class StragglerPolicy(_message.Message):
    __slots__ = ("policy", "dropped_count", "time_seconds", "batch_ratio")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    DROPPED_COUNT_FIELD_NUMBER: _ClassVar[int]
    TIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BATCH_RATIO_FIELD_NUMBER: _ClassVar[int]
    policy: str
    dropped_count: int
    time_seconds: float
    batch_ratio: float
    def __init__(self, policy: _Optional[str] = ..., dropped_count: _Optional[int] = ..., time_seconds: _Optional[float] = ..., batch_ratio: _Optional[float] = ...) -> None: ...
