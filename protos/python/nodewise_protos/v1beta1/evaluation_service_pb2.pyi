from google.api import annotations_pb2 as _annotations_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from nodewise_protos.v1 import workload_pb2 as _workload_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MeasurementTable(_message.Message):
    __slots__ = ("job_names", "job_indexes", "configurations", "steps_per_second", "train", "measured_at_unix_seconds", "exposed_sync_seconds", "phase_timings", "phase_rows", "workloads", "networks", "steps_counts", "step_variation", "step_variation_known", "exposed_sync_known", "measured_memory_bytes", "fitted")
    JOB_NAMES_FIELD_NUMBER: _ClassVar[int]
    JOB_INDEXES_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TRAIN_FIELD_NUMBER: _ClassVar[int]
    MEASURED_AT_UNIX_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_SYNC_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PHASE_TIMINGS_FIELD_NUMBER: _ClassVar[int]
    PHASE_ROWS_FIELD_NUMBER: _ClassVar[int]
    WORKLOADS_FIELD_NUMBER: _ClassVar[int]
    NETWORKS_FIELD_NUMBER: _ClassVar[int]
    STEPS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    STEP_VARIATION_FIELD_NUMBER: _ClassVar[int]
    STEP_VARIATION_KNOWN_FIELD_NUMBER: _ClassVar[int]
    EXPOSED_SYNC_KNOWN_FIELD_NUMBER: _ClassVar[int]
    MEASURED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FITTED_FIELD_NUMBER: _ClassVar[int]
    job_names: _containers.RepeatedScalarFieldContainer[str]
    job_indexes: _containers.RepeatedScalarFieldContainer[int]
    configurations: _configuration_pb2.Configurations
    steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    train: _containers.RepeatedScalarFieldContainer[bool]
    measured_at_unix_seconds: _containers.RepeatedScalarFieldContainer[float]
    exposed_sync_seconds: _containers.RepeatedScalarFieldContainer[float]
    phase_timings: _profile_pb2.PhaseTimings
    phase_rows: _containers.RepeatedScalarFieldContainer[int]
    workloads: _containers.RepeatedCompositeFieldContainer[_workload_pb2.Workload]
    networks: _containers.RepeatedCompositeFieldContainer[_workload_pb2.Network]
    steps_counts: _containers.RepeatedScalarFieldContainer[int]
    step_variation: _containers.RepeatedScalarFieldContainer[float]
    step_variation_known: _containers.RepeatedScalarFieldContainer[bool]
    exposed_sync_known: _containers.RepeatedScalarFieldContainer[bool]
    measured_memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    fitted: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, job_names: _Optional[_Iterable[str]] = ..., job_indexes: _Optional[_Iterable[int]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., steps_per_second: _Optional[_Iterable[float]] = ..., train: _Optional[_Iterable[bool]] = ..., measured_at_unix_seconds: _Optional[_Iterable[float]] = ..., exposed_sync_seconds: _Optional[_Iterable[float]] = ..., phase_timings: _Optional[_Union[_profile_pb2.PhaseTimings, _Mapping]] = ..., phase_rows: _Optional[_Iterable[int]] = ..., workloads: _Optional[_Iterable[_Union[_workload_pb2.Workload, _Mapping]]] = ..., networks: _Optional[_Iterable[_Union[_workload_pb2.Network, _Mapping]]] = ..., steps_counts: _Optional[_Iterable[int]] = ..., step_variation: _Optional[_Iterable[float]] = ..., step_variation_known: _Optional[_Iterable[bool]] = ..., exposed_sync_known: _Optional[_Iterable[bool]] = ..., measured_memory_bytes: _Optional[_Iterable[float]] = ..., fitted: _Optional[_Iterable[int]] = ...) -> None: ...

class BacktestRequest(_message.Message):
    __slots__ = ("table", "estimators", "calibration", "job_sources", "evidence_rows_count")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    ESTIMATORS_FIELD_NUMBER: _ClassVar[int]
    CALIBRATION_FIELD_NUMBER: _ClassVar[int]
    JOB_SOURCES_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    table: MeasurementTable
    estimators: _containers.RepeatedScalarFieldContainer[str]
    calibration: MeasurementTable
    job_sources: _containers.RepeatedScalarFieldContainer[str]
    evidence_rows_count: int
    def __init__(self, table: _Optional[_Union[MeasurementTable, _Mapping]] = ..., estimators: _Optional[_Iterable[str]] = ..., calibration: _Optional[_Union[MeasurementTable, _Mapping]] = ..., job_sources: _Optional[_Iterable[str]] = ..., evidence_rows_count: _Optional[int] = ...) -> None: ...

class BacktestResponse(_message.Message):
    __slots__ = ("progress", "result")
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    progress: BacktestProgress
    result: BacktestResult
    def __init__(self, progress: _Optional[_Union[BacktestProgress, _Mapping]] = ..., result: _Optional[_Union[BacktestResult, _Mapping]] = ...) -> None: ...

class BacktestProgress(_message.Message):
    __slots__ = ("done_count", "total_count")
    DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    TOTAL_COUNT_FIELD_NUMBER: _ClassVar[int]
    done_count: int
    total_count: int
    def __init__(self, done_count: _Optional[int] = ..., total_count: _Optional[int] = ...) -> None: ...

class BacktestResult(_message.Message):
    __slots__ = ("evaluations", "prior")
    EVALUATIONS_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    evaluations: _containers.RepeatedCompositeFieldContainer[EstimatorEvaluation]
    prior: str
    def __init__(self, evaluations: _Optional[_Iterable[_Union[EstimatorEvaluation, _Mapping]]] = ..., prior: _Optional[str] = ...) -> None: ...

class EstimatorEvaluation(_message.Message):
    __slots__ = ("estimator", "estimator_version", "overall", "by_job", "by_sync", "predictions")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    OVERALL_FIELD_NUMBER: _ClassVar[int]
    BY_JOB_FIELD_NUMBER: _ClassVar[int]
    BY_SYNC_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    estimator_version: str
    overall: Metrics
    by_job: _containers.RepeatedCompositeFieldContainer[GroupMetrics]
    by_sync: _containers.RepeatedCompositeFieldContainer[GroupMetrics]
    predictions: TestPredictions
    def __init__(self, estimator: _Optional[str] = ..., estimator_version: _Optional[str] = ..., overall: _Optional[_Union[Metrics, _Mapping]] = ..., by_job: _Optional[_Iterable[_Union[GroupMetrics, _Mapping]]] = ..., by_sync: _Optional[_Iterable[_Union[GroupMetrics, _Mapping]]] = ..., predictions: _Optional[_Union[TestPredictions, _Mapping]] = ...) -> None: ...

class GroupMetrics(_message.Message):
    __slots__ = ("name", "metrics")
    NAME_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    name: str
    metrics: Metrics
    def __init__(self, name: _Optional[str] = ..., metrics: _Optional[_Union[Metrics, _Mapping]] = ...) -> None: ...

class TestPredictions(_message.Message):
    __slots__ = ("rows", "steps_per_second", "lower_steps_per_second", "upper_steps_per_second", "statuses", "refusal_reasons", "refusal_indexes")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    LOWER_STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    UPPER_STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_REASONS_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    lower_steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    upper_steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    statuses: _containers.RepeatedScalarFieldContainer[_prediction_pb2.RowStatus]
    refusal_reasons: _containers.RepeatedScalarFieldContainer[str]
    refusal_indexes: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., steps_per_second: _Optional[_Iterable[float]] = ..., lower_steps_per_second: _Optional[_Iterable[float]] = ..., upper_steps_per_second: _Optional[_Iterable[float]] = ..., statuses: _Optional[_Iterable[_Union[_prediction_pb2.RowStatus, str]]] = ..., refusal_reasons: _Optional[_Iterable[str]] = ..., refusal_indexes: _Optional[_Iterable[int]] = ...) -> None: ...

class Metrics(_message.Message):
    __slots__ = ("rows_count", "refused_count", "mape", "median_ape", "p90_ape", "max_ape", "step_mape", "mean_abs_ln", "bias", "macro_abs_ln", "kendall", "coverage90", "worst_job_coverage90", "width90", "interval_score90", "fit_seconds", "predict_seconds", "groups_count", "regret", "hit", "within5", "memory_mape", "false_fits", "false_refusals")
    ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    REFUSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    MAPE_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_APE_FIELD_NUMBER: _ClassVar[int]
    P90_APE_FIELD_NUMBER: _ClassVar[int]
    MAX_APE_FIELD_NUMBER: _ClassVar[int]
    STEP_MAPE_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABS_LN_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    MACRO_ABS_LN_FIELD_NUMBER: _ClassVar[int]
    KENDALL_FIELD_NUMBER: _ClassVar[int]
    COVERAGE90_FIELD_NUMBER: _ClassVar[int]
    WORST_JOB_COVERAGE90_FIELD_NUMBER: _ClassVar[int]
    WIDTH90_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_SCORE90_FIELD_NUMBER: _ClassVar[int]
    FIT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PREDICT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    REGRET_FIELD_NUMBER: _ClassVar[int]
    HIT_FIELD_NUMBER: _ClassVar[int]
    WITHIN5_FIELD_NUMBER: _ClassVar[int]
    MEMORY_MAPE_FIELD_NUMBER: _ClassVar[int]
    FALSE_FITS_FIELD_NUMBER: _ClassVar[int]
    FALSE_REFUSALS_FIELD_NUMBER: _ClassVar[int]
    rows_count: int
    refused_count: int
    mape: float
    median_ape: float
    p90_ape: float
    max_ape: float
    step_mape: float
    mean_abs_ln: float
    bias: float
    macro_abs_ln: float
    kendall: float
    coverage90: float
    worst_job_coverage90: float
    width90: float
    interval_score90: float
    fit_seconds: float
    predict_seconds: float
    groups_count: int
    regret: float
    hit: float
    within5: float
    memory_mape: float
    false_fits: float
    false_refusals: float
    def __init__(self, rows_count: _Optional[int] = ..., refused_count: _Optional[int] = ..., mape: _Optional[float] = ..., median_ape: _Optional[float] = ..., p90_ape: _Optional[float] = ..., max_ape: _Optional[float] = ..., step_mape: _Optional[float] = ..., mean_abs_ln: _Optional[float] = ..., bias: _Optional[float] = ..., macro_abs_ln: _Optional[float] = ..., kendall: _Optional[float] = ..., coverage90: _Optional[float] = ..., worst_job_coverage90: _Optional[float] = ..., width90: _Optional[float] = ..., interval_score90: _Optional[float] = ..., fit_seconds: _Optional[float] = ..., predict_seconds: _Optional[float] = ..., groups_count: _Optional[int] = ..., regret: _Optional[float] = ..., hit: _Optional[float] = ..., within5: _Optional[float] = ..., memory_mape: _Optional[float] = ..., false_fits: _Optional[float] = ..., false_refusals: _Optional[float] = ...) -> None: ...
