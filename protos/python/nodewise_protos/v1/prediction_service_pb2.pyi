import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import objective_pb2 as _objective_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import plugin_pb2 as _plugin_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1 import workload_pb2 as _workload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PredictRequest(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective", "work", "offers", "current", "efficiency", "batch_bounds", "options", "if_none_match")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    BATCH_BOUNDS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    IF_NONE_MATCH_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    work: _objective_pb2.Work
    offers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.Offer]
    current: _objective_pb2.CurrentConfiguration
    efficiency: _objective_pb2.StatisticalEfficiency
    batch_bounds: _objective_pb2.BatchBounds
    options: _options_pb2.PredictOptions
    if_none_match: str
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_objective_pb2.Offer, _Mapping]]] = ..., current: _Optional[_Union[_objective_pb2.CurrentConfiguration, _Mapping]] = ..., efficiency: _Optional[_Union[_objective_pb2.StatisticalEfficiency, _Mapping]] = ..., batch_bounds: _Optional[_Union[_objective_pb2.BatchBounds, _Mapping]] = ..., options: _Optional[_Union[_options_pb2.PredictOptions, _Mapping]] = ..., if_none_match: _Optional[str] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("predictions", "recommendation", "basis", "unchanged")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATION_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    predictions: _prediction_pb2.Predictions
    recommendation: _objective_pb2.Recommendation
    basis: _prediction_pb2.Basis
    unchanged: bool
    def __init__(self, predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., recommendation: _Optional[_Union[_objective_pb2.Recommendation, _Mapping]] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ..., unchanged: bool = ...) -> None: ...

class BatchJob(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective", "work", "offers", "current", "efficiency", "batch_bounds", "if_none_match")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    CURRENT_FIELD_NUMBER: _ClassVar[int]
    EFFICIENCY_FIELD_NUMBER: _ClassVar[int]
    BATCH_BOUNDS_FIELD_NUMBER: _ClassVar[int]
    IF_NONE_MATCH_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    work: _objective_pb2.Work
    offers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.Offer]
    current: _objective_pb2.CurrentConfiguration
    efficiency: _objective_pb2.StatisticalEfficiency
    batch_bounds: _objective_pb2.BatchBounds
    if_none_match: str
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_objective_pb2.Offer, _Mapping]]] = ..., current: _Optional[_Union[_objective_pb2.CurrentConfiguration, _Mapping]] = ..., efficiency: _Optional[_Union[_objective_pb2.StatisticalEfficiency, _Mapping]] = ..., batch_bounds: _Optional[_Union[_objective_pb2.BatchBounds, _Mapping]] = ..., if_none_match: _Optional[str] = ...) -> None: ...

class BatchPredictRequest(_message.Message):
    __slots__ = ("jobs", "configurations", "ranges", "objective", "offers", "options", "architectures", "profile")
    JOBS_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURES_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[BatchJob]
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    offers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.Offer]
    options: _options_pb2.PredictOptions
    architectures: _workload_pb2.Architectures
    profile: _profile_pb2.ProfileSource
    def __init__(self, jobs: _Optional[_Iterable[_Union[BatchJob, _Mapping]]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_objective_pb2.Offer, _Mapping]]] = ..., options: _Optional[_Union[_options_pb2.PredictOptions, _Mapping]] = ..., architectures: _Optional[_Union[_workload_pb2.Architectures, _Mapping]] = ..., profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ...) -> None: ...

class ArchitectureRanking(_message.Message):
    __slots__ = ("architecture_indexes", "expected_kendall_tau", "refused_share")
    ARCHITECTURE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_KENDALL_TAU_FIELD_NUMBER: _ClassVar[int]
    REFUSED_SHARE_FIELD_NUMBER: _ClassVar[int]
    architecture_indexes: _containers.RepeatedScalarFieldContainer[int]
    expected_kendall_tau: float
    refused_share: float
    def __init__(self, architecture_indexes: _Optional[_Iterable[int]] = ..., expected_kendall_tau: _Optional[float] = ..., refused_share: _Optional[float] = ...) -> None: ...

class BatchJobOutcome(_message.Message):
    __slots__ = ("problem", "basis_index", "recommendation", "columns", "interval_basis", "unchanged")
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    BASIS_INDEX_FIELD_NUMBER: _ClassVar[int]
    RECOMMENDATION_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_BASIS_FIELD_NUMBER: _ClassVar[int]
    UNCHANGED_FIELD_NUMBER: _ClassVar[int]
    problem: _problem_pb2.Problem
    basis_index: int
    recommendation: _objective_pb2.Recommendation
    columns: _containers.RepeatedScalarFieldContainer[_options_pb2.PredictionColumn]
    interval_basis: _prediction_pb2.IntervalBasis
    unchanged: bool
    def __init__(self, problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., basis_index: _Optional[int] = ..., recommendation: _Optional[_Union[_objective_pb2.Recommendation, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[_options_pb2.PredictionColumn, str]]] = ..., interval_basis: _Optional[_Union[_prediction_pb2.IntervalBasis, str]] = ..., unchanged: bool = ...) -> None: ...

class BatchPredictResponse(_message.Message):
    __slots__ = ("outcomes", "row_offsets", "predictions", "bases", "rankings")
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    ROW_OFFSETS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    RANKINGS_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[BatchJobOutcome]
    row_offsets: _containers.RepeatedScalarFieldContainer[int]
    predictions: _prediction_pb2.Predictions
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    rankings: _containers.RepeatedCompositeFieldContainer[ArchitectureRanking]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[BatchJobOutcome, _Mapping]]] = ..., row_offsets: _Optional[_Iterable[int]] = ..., predictions: _Optional[_Union[_prediction_pb2.Predictions, _Mapping]] = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ..., rankings: _Optional[_Iterable[_Union[ArchitectureRanking, _Mapping]]] = ...) -> None: ...

class StreamPredictRequest(_message.Message):
    __slots__ = ("question_id", "predict", "batch")
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    PREDICT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    question_id: str
    predict: PredictRequest
    batch: BatchPredictRequest
    def __init__(self, question_id: _Optional[str] = ..., predict: _Optional[_Union[PredictRequest, _Mapping]] = ..., batch: _Optional[_Union[BatchPredictRequest, _Mapping]] = ...) -> None: ...

class StreamPredictResponse(_message.Message):
    __slots__ = ("question_id", "predict", "batch", "problem")
    QUESTION_ID_FIELD_NUMBER: _ClassVar[int]
    PREDICT_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    question_id: str
    predict: PredictResponse
    batch: BatchPredictResponse
    problem: _problem_pb2.Problem
    def __init__(self, question_id: _Optional[str] = ..., predict: _Optional[_Union[PredictResponse, _Mapping]] = ..., batch: _Optional[_Union[BatchPredictResponse, _Mapping]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ...) -> None: ...

class SuggestMeasurementsRequest(_message.Message):
    __slots__ = ("profile", "configurations", "ranges", "objective", "work", "offers", "max_suggestions", "start_up_seconds", "run_steps_count", "options")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    OBJECTIVE_FIELD_NUMBER: _ClassVar[int]
    WORK_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    MAX_SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    START_UP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RUN_STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    configurations: _configuration_pb2.Configurations
    ranges: _containers.RepeatedCompositeFieldContainer[_configuration_pb2.ConfigurationRange]
    objective: _objective_pb2.Objective
    work: _objective_pb2.Work
    offers: _containers.RepeatedCompositeFieldContainer[_objective_pb2.Offer]
    max_suggestions: int
    start_up_seconds: float
    run_steps_count: int
    options: _options_pb2.ModelOptions
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., ranges: _Optional[_Iterable[_Union[_configuration_pb2.ConfigurationRange, _Mapping]]] = ..., objective: _Optional[_Union[_objective_pb2.Objective, _Mapping]] = ..., work: _Optional[_Union[_objective_pb2.Work, _Mapping]] = ..., offers: _Optional[_Iterable[_Union[_objective_pb2.Offer, _Mapping]]] = ..., max_suggestions: _Optional[int] = ..., start_up_seconds: _Optional[float] = ..., run_steps_count: _Optional[int] = ..., options: _Optional[_Union[_options_pb2.ModelOptions, _Mapping]] = ...) -> None: ...

class SuggestMeasurementsResponse(_message.Message):
    __slots__ = ("suggestions", "basis", "expected_regret", "warnings")
    SUGGESTIONS_FIELD_NUMBER: _ClassVar[int]
    BASIS_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_REGRET_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    suggestions: _containers.RepeatedCompositeFieldContainer[MeasurementSuggestion]
    basis: _prediction_pb2.Basis
    expected_regret: float
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    def __init__(self, suggestions: _Optional[_Iterable[_Union[MeasurementSuggestion, _Mapping]]] = ..., basis: _Optional[_Union[_prediction_pb2.Basis, _Mapping]] = ..., expected_regret: _Optional[float] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ...) -> None: ...

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
    __slots__ = ("estimators", "next_page_token")
    ESTIMATORS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    estimators: _containers.RepeatedCompositeFieldContainer[Estimator]
    next_page_token: str
    def __init__(self, estimators: _Optional[_Iterable[_Union[Estimator, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class Estimator(_message.Message):
    __slots__ = ("plugin", "capabilities", "score", "track")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    plugin: _plugin_pb2.Plugin
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    score: RunningScore
    track: str
    def __init__(self, plugin: _Optional[_Union[_plugin_pb2.Plugin, _Mapping]] = ..., capabilities: _Optional[_Iterable[str]] = ..., score: _Optional[_Union[RunningScore, _Mapping]] = ..., track: _Optional[str] = ...) -> None: ...

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

class ListDevicesRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListDevicesResponse(_message.Message):
    __slots__ = ("devices", "next_page_token", "catalog_digest")
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    CATALOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    devices: _containers.RepeatedCompositeFieldContainer[Device]
    next_page_token: str
    catalog_digest: str
    def __init__(self, devices: _Optional[_Iterable[_Union[Device, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., catalog_digest: _Optional[str] = ...) -> None: ...

class Device(_message.Message):
    __slots__ = ("name", "aliases", "facts", "intra_node_link", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ALIASES_FIELD_NUMBER: _ClassVar[int]
    FACTS_FIELD_NUMBER: _ClassVar[int]
    INTRA_NODE_LINK_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    aliases: _containers.RepeatedScalarFieldContainer[str]
    facts: _containers.RepeatedCompositeFieldContainer[_objective_pb2.NamedNumber]
    intra_node_link: str
    source: str
    def __init__(self, name: _Optional[str] = ..., aliases: _Optional[_Iterable[str]] = ..., facts: _Optional[_Iterable[_Union[_objective_pb2.NamedNumber, _Mapping]]] = ..., intra_node_link: _Optional[str] = ..., source: _Optional[str] = ...) -> None: ...

class ListPluginsRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "kind")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    kind: _plugin_pb2.PluginKind
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., kind: _Optional[_Union[_plugin_pb2.PluginKind, str]] = ...) -> None: ...

class ListPluginsResponse(_message.Message):
    __slots__ = ("plugins", "problems", "next_page_token")
    PLUGINS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    plugins: _containers.RepeatedCompositeFieldContainer[_plugin_pb2.Plugin]
    problems: _containers.RepeatedCompositeFieldContainer[_plugin_pb2.PluginProblem]
    next_page_token: str
    def __init__(self, plugins: _Optional[_Iterable[_Union[_plugin_pb2.Plugin, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[_plugin_pb2.PluginProblem, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...
