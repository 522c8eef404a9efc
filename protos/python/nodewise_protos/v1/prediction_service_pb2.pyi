import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.rpc import status_pb2 as _status_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Freshness(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FRESHNESS_UNSPECIFIED: _ClassVar[Freshness]
    FRESHNESS_CACHED_ONLY: _ClassVar[Freshness]
    FRESHNESS_ALLOW_STALE: _ClassVar[Freshness]
    FRESHNESS_WAIT: _ClassVar[Freshness]

class Fidelity(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FIDELITY_UNSPECIFIED: _ClassVar[Fidelity]
    FIDELITY_MODEL: _ClassVar[Fidelity]
    FIDELITY_SIMULATE: _ClassVar[Fidelity]
FRESHNESS_UNSPECIFIED: Freshness
FRESHNESS_CACHED_ONLY: Freshness
FRESHNESS_ALLOW_STALE: Freshness
FRESHNESS_WAIT: Freshness
FIDELITY_UNSPECIFIED: Fidelity
FIDELITY_MODEL: Fidelity
FIDELITY_SIMULATE: Fidelity

class PredictOptions(_message.Message):
    __slots__ = ("estimator", "interval_coverage", "freshness", "allow_fallback", "columns", "fidelity", "seed", "simulated_steps_count")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    FIDELITY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    interval_coverage: float
    freshness: Freshness
    allow_fallback: bool
    columns: _containers.RepeatedScalarFieldContainer[_prediction_pb2.PredictionColumn]
    fidelity: Fidelity
    seed: int
    simulated_steps_count: int
    def __init__(self, estimator: _Optional[str] = ..., interval_coverage: _Optional[float] = ..., freshness: _Optional[_Union[Freshness, str]] = ..., allow_fallback: bool = ..., columns: _Optional[_Iterable[_Union[_prediction_pb2.PredictionColumn, str]]] = ..., fidelity: _Optional[_Union[Fidelity, str]] = ..., seed: _Optional[int] = ..., simulated_steps_count: _Optional[int] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective", "options")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    options: PredictOptions
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., options: _Optional[_Union[PredictOptions, _Mapping]] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("predictions", "recommendation", "basis")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATION_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    predictions: _prediction_pb2.Predictions
    recommendation: _objective_pb2.Recommendation
    basis: _prediction_pb2.Basis
    def __init__(self, predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., recommendation: _Optional[_Union[_objective_pb2.Recommendation, _Mapping]] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ...) -> None: ...

class BatchJob(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ...) -> None: ...

class BatchPredictRequest(_message.Message):
    __slots__ = ("jobs", "configurations", "ranges", "objective", "options")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[BatchJob]
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    options: PredictOptions
    def __init__(self, jobs: _Optional[_Iterable[_Union[BatchJob, _Mapping]]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., options: _Optional[_Union[PredictOptions, _Mapping]] = ...) -> None: ...

class BatchJobOutcome(_message.Message):
    __slots__ = ("error", "basis_index", "columns", "interval_basis", "recommendation")
    ERROR_FIELD_NUMBER: _ClassVar[int]
    BASIS_INDEX_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_BASIS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATION_FIELD_NUMBER: _ClassVar[int]
    error: _status_pb2.Status
    basis_index: int
    columns: _containers.RepeatedScalarFieldContainer[_prediction_pb2.PredictionColumn]
    interval_basis: _prediction_pb2.IntervalBasis
    recommendation: _objective_pb2.Recommendation
    def __init__(self, error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ..., basis_index: _Optional[int] = ..., columns: _Optional[_Iterable[_Union[_prediction_pb2.PredictionColumn, str]]] = ..., interval_basis: _Optional[_Union[_prediction_pb2.IntervalBasis, str]] = ..., recommendation: _Optional[_Union[_objective_pb2.Recommendation, _Mapping]] = ...) -> None: ...

class BatchPredictResponse(_message.Message):
    __slots__ = ("outcomes", "row_offsets", "predictions", "bases")
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    ROW_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[BatchJobOutcome]
    row_offsets: _containers.RepeatedScalarFieldContainer[int]
    predictions: _prediction_pb2.Predictions
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[BatchJobOutcome, _Mapping]]] = ..., row_offsets: _Optional[_Iterable[int]] = ..., predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ...) -> None: ...

class StreamPredictRequest(_message.Message):
    __slots__ = ("request_id", "predict", "batch")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PREDICT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    predict: PredictRequest
    batch: BatchPredictRequest
    def __init__(self, request_id: _Optional[str] = ..., predict: _Optional[_Union[PredictRequest, _Mapping]] = ..., batch: _Optional[_Union[BatchPredictRequest, _Mapping]] = ...) -> None: ...

class StreamPredictResponse(_message.Message):
    __slots__ = ("request_id", "predict", "batch", "error")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PREDICT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    predict: PredictResponse
    batch: BatchPredictResponse
    error: _status_pb2.Status
    def __init__(self, request_id: _Optional[str] = ..., predict: _Optional[_Union[PredictResponse, _Mapping]] = ..., batch: _Optional[_Union[BatchPredictResponse, _Mapping]] = ..., error: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class SuggestMeasurementsRequest(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective", "suggestions_count", "start_up_seconds", "run_steps_count", "options")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    SUGGESTIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    START_UP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUN_STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    suggestions_count: int
    start_up_seconds: float
    run_steps_count: int
    options: PredictOptions
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., suggestions_count: _Optional[int] = ..., start_up_seconds: _Optional[float] = ..., run_steps_count: _Optional[int] = ..., options: _Optional[_Union[PredictOptions, _Mapping]] = ...) -> None: ...

class SuggestMeasurementsResponse(_message.Message):
    __slots__ = ("suggestions", "basis", "expected_regret", "warnings")
    SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REGRET_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    suggestions: _containers.RepeatedCompositeFieldContainer[MeasurementSuggestion]
    basis: _prediction_pb2.Basis
    expected_regret: float
    warnings: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Notice]
    def __init__(self, suggestions: _Optional[_Iterable[_Union[MeasurementSuggestion, _Mapping]]] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ..., expected_regret: _Optional[float] = ..., warnings: _Optional[_Iterable[_Union[_prediction_pb2.Notice, _Mapping]]] = ...) -> None: ...

class MeasurementSuggestion(_message.Message):
    __slots__ = ("row", "cost_node_seconds", "expected_regret_fall", "expected_width_fall", "why", "nodes", "workers")
    ROW_FIELD_NUMBER: _ClassVar[int]
    COST_NODE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REGRET_FALL_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_WIDTH_FALL_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    row: int
    cost_node_seconds: float
    expected_regret_fall: float
    expected_width_fall: float
    why: str
    nodes: int
    workers: int
    def __init__(self, row: _Optional[int] = ..., cost_node_seconds: _Optional[float] = ..., expected_regret_fall: _Optional[float] = ..., expected_width_fall: _Optional[float] = ..., why: _Optional[str] = ..., nodes: _Optional[int] = ..., workers: _Optional[int] = ...) -> None: ...

class ListEstimatorsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListEstimatorsResponse(_message.Message):
    __slots__ = ("estimators", "problems", "next_page_token", "auto_score")
    ESTIMATORS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    AUTO_SCORE_FIELD_NUMBER: _ClassVar[int]
    estimators: _containers.RepeatedCompositeFieldContainer[Estimator]
    problems: _containers.RepeatedCompositeFieldContainer[PluginProblem]
    next_page_token: str
    auto_score: RunningScore
    def __init__(self, estimators: _Optional[_Iterable[_Union[Estimator, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[PluginProblem, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., auto_score: _Optional[_Union[RunningScore, _Mapping]] = ...) -> None: ...

class Estimator(_message.Message):
    __slots__ = ("name", "version", "description", "distribution", "mode", "capabilities", "score")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    description: str
    distribution: str
    mode: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    score: RunningScore
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., distribution: _Optional[str] = ..., mode: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., score: _Optional[_Union[RunningScore, _Mapping]] = ...) -> None: ...

class RunningScore(_message.Message):
    __slots__ = ("observations_count", "mean_absolute_log_error", "mean_log_error", "coverage", "update_time", "unanswered_count")
    OBSERVATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABSOLUTE_LOG_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEAN_LOG_ERROR_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    UPDATE_TIME_FIELD_NUMBER: _ClassVar[int]
    UNANSWERED_COUNT_FIELD_NUMBER: _ClassVar[int]
    observations_count: int
    mean_absolute_log_error: float
    mean_log_error: float
    coverage: float
    update_time: _timestamp_pb2.Timestamp
    unanswered_count: int
    def __init__(self, observations_count: _Optional[int] = ..., mean_absolute_log_error: _Optional[float] = ..., mean_log_error: _Optional[float] = ..., coverage: _Optional[float] = ..., update_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., unanswered_count: _Optional[int] = ...) -> None: ...

class PluginProblem(_message.Message):
    __slots__ = ("name", "distribution", "kind", "reason", "message")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    name: str
    distribution: str
    kind: str
    reason: str
    message: str
    def __init__(self, name: _Optional[str] = ..., distribution: _Optional[str] = ..., kind: _Optional[str] = ..., reason: _Optional[str] = ..., message: _Optional[str] = ...) -> None: ...
