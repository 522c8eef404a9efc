import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1beta1 import completion_pb2 as _completion_pb2
from nodewise_protos.v1beta1 import completion_offer_pb2 as _completion_offer_pb2
from nodewise_protos.v1beta1 import run_estimate_pb2 as _run_estimate_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CompletionMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPLETION_METHOD_UNSPECIFIED: _ClassVar[CompletionMethod]
    COMPLETION_METHOD_MONTE_CARLO: _ClassVar[CompletionMethod]
    COMPLETION_METHOD_DETERMINISTIC: _ClassVar[CompletionMethod]
COMPLETION_METHOD_UNSPECIFIED: CompletionMethod
COMPLETION_METHOD_MONTE_CARLO: CompletionMethod
COMPLETION_METHOD_DETERMINISTIC: CompletionMethod

class EstimateCompletionRequest(_message.Message):
    __slots__ = ("profile", "options", "work", "offers", "common", "objective", "method", "runs_count", "data_sets", "completion_estimator", "now", "on_demand", "hybrid", "certain_speeds")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    COMMON_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    RUNS_COUNT_FIELD_NUMBER: _ClassVar[int]
    DATA_SETS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_FIELD_NUMBER: _ClassVar[int]
    HYBRID_FIELD_NUMBER: _ClassVar[int]
    CERTAIN_SPEEDS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    options: _options_pb2.ModelOptions
    work: _objective_pb2.Work
    offers: _containers.RepeatedCompositeFieldContainer[_completion_offer_pb2.CompletionOffer]
    common: _completion_offer_pb2.CompletionOffer
    objective: _objective_pb2.Objective
    method: CompletionMethod
    runs_count: int
    data_sets: _containers.RepeatedCompositeFieldContainer[_completion_offer_pb2.LifetimeDataSet]
    completion_estimator: str
    now: _timestamp_pb2.Timestamp
    on_demand: _completion_pb2.OnDemandQuestion
    hybrid: _completion_pb2.HybridQuestion
    certain_speeds: bool
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_completion_offer_pb2.CompletionOffer, _Mapping]]] = ..., common: _Optional[_Union[_completion_offer_pb2.CompletionOffer, _Mapping]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., method: _Optional[_Union[CompletionMethod, str]] = ..., runs_count: _Optional[int] = ..., data_sets: _Optional[_Iterable[_Union[_completion_offer_pb2.LifetimeDataSet, _Mapping]]] = ..., completion_estimator: _Optional[str] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., on_demand: _Optional[_Union[_completion_pb2.OnDemandQuestion, _Mapping]] = ..., hybrid: _Optional[_Union[_completion_pb2.HybridQuestion, _Mapping]] = ..., certain_speeds: bool = ...) -> None: ...

class EstimateCompletionResponse(_message.Message):
    __slots__ = ("rows", "frontier_rows", "choice", "no_choice_why", "estimator", "estimator_version", "on_demand", "hybrid")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FRONTIER_ROWS_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    NO_CHOICE_WHY_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    ON_DEMAND_FIELD_NUMBER: _ClassVar[int]
    HYBRID_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedCompositeFieldContainer[_completion_pb2.CompletionRow]
    frontier_rows: _containers.RepeatedScalarFieldContainer[int]
    choice: _completion_pb2.CompletionChoice
    no_choice_why: str
    estimator: str
    estimator_version: str
    on_demand: _completion_pb2.OnDemandAnswer
    hybrid: _completion_pb2.HybridAnswer
    def __init__(self, rows: _Optional[_Iterable[_Union[_completion_pb2.CompletionRow, _Mapping]]] = ..., frontier_rows: _Optional[_Iterable[int]] = ..., choice: _Optional[_Union[_completion_pb2.CompletionChoice, _Mapping]] = ..., no_choice_why: _Optional[str] = ..., estimator: _Optional[str] = ..., estimator_version: _Optional[str] = ..., on_demand: _Optional[_Union[_completion_pb2.OnDemandAnswer, _Mapping]] = ..., hybrid: _Optional[_Union[_completion_pb2.HybridAnswer, _Mapping]] = ...) -> None: ...

class EstimateRunRequest(_message.Message):
    __slots__ = ("profile", "options", "work", "configurations", "ranges", "failures", "power", "price_per_node_hour", "deadline_seconds", "runs_count")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    POWER_FIELD_NUMBER: _ClassVar[int]
    PRICE_PER_NODE_HOUR_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUNS_COUNT_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    options: _options_pb2.ModelOptions
    work: _objective_pb2.Work
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    failures: _run_estimate_pb2.RunFailures
    power: _run_estimate_pb2.RunPower
    price_per_node_hour: float
    deadline_seconds: float
    runs_count: int
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., failures: _Optional[_Union[_run_estimate_pb2.RunFailures, _Mapping]] = ..., power: _Optional[_Union[_run_estimate_pb2.RunPower, _Mapping]] = ..., price_per_node_hour: _Optional[float] = ..., deadline_seconds: _Optional[float] = ..., runs_count: _Optional[int] = ...) -> None: ...

class EstimateRunResponse(_message.Message):
    __slots__ = ("predictions", "memory", "completion", "energy", "assumptions", "doubts")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_FIELD_NUMBER: _ClassVar[int]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    ASSUMPTIONS_FIELD_NUMBER: _ClassVar[int]
    DOUBTS_FIELD_NUMBER: _ClassVar[int]
    predictions: _prediction_pb2.Predictions
    memory: _run_estimate_pb2.RunMemory
    completion: _completion_pb2.CompletionRow
    energy: _run_estimate_pb2.RunEnergy
    assumptions: _containers.RepeatedCompositeFieldContainer[_run_estimate_pb2.RunAssumption]
    doubts: _containers.RepeatedCompositeFieldContainer[_run_estimate_pb2.RunDoubt]
    def __init__(self, predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., memory: _Optional[_Union[_run_estimate_pb2.RunMemory, _Mapping]] = ..., completion: _Optional[_Union[_completion_pb2.CompletionRow, _Mapping]] = ..., energy: _Optional[_Union[_run_estimate_pb2.RunEnergy, _Mapping]] = ..., assumptions: _Optional[_Iterable[_Union[_run_estimate_pb2.RunAssumption, _Mapping]]] = ..., doubts: _Optional[_Iterable[_Union[_run_estimate_pb2.RunDoubt, _Mapping]]] = ...) -> None: ...
