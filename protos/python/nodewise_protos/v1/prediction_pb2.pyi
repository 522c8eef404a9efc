import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RowStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ROW_STATUS_UNSPECIFIED: _ClassVar[RowStatus]
    ROW_STATUS_ANSWERED: _ClassVar[RowStatus]
    ROW_STATUS_REFUSED: _ClassVar[RowStatus]
    ROW_STATUS_INFEASIBLE_MEMORY: _ClassVar[RowStatus]

class IntervalBasis(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INTERVAL_BASIS_UNSPECIFIED: _ClassVar[IntervalBasis]
    INTERVAL_BASIS_MODEL_SPREAD: _ClassVar[IntervalBasis]
    INTERVAL_BASIS_CONFORMAL: _ClassVar[IntervalBasis]
    INTERVAL_BASIS_SIMULATION: _ClassVar[IntervalBasis]
ROW_STATUS_UNSPECIFIED: RowStatus
ROW_STATUS_ANSWERED: RowStatus
ROW_STATUS_REFUSED: RowStatus
ROW_STATUS_INFEASIBLE_MEMORY: RowStatus
INTERVAL_BASIS_UNSPECIFIED: IntervalBasis
INTERVAL_BASIS_MODEL_SPREAD: IntervalBasis
INTERVAL_BASIS_CONFORMAL: IntervalBasis
INTERVAL_BASIS_SIMULATION: IntervalBasis

class Predictions(_message.Message):
    __slots__ = ("rows_count", "statuses", "refusals", "step_seconds", "steps_per_second", "samples_per_second", "lower_steps_per_second", "upper_steps_per_second", "interval_coverage", "interval_basis", "breakdown_seconds", "bottleneck_names", "bottleneck_indexes", "utilization", "staleness_mean_steps", "staleness_p95_steps", "extrapolation_ratios", "memory_bytes", "excess_memory_bytes", "finish_seconds", "costs", "warnings", "nodes", "workers", "extra", "once_seconds", "global_batch_samples", "batch_per_worker_samples", "accumulation_steps", "goodput_samples_per_second", "finish_seconds_quantiles", "cost_quantiles", "revocations_means")
    ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    LOWER_STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    UPPER_STEPS_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_BASIS_FIELD_NUMBER: _ClassVar[int]
    BREAKDOWN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_NAMES_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_INDEXES_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_MEAN_STEPS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_P95_STEPS_FIELD_NUMBER: _ClassVar[int]
    EXTRAPOLATION_RATIOS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXCESS_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FINISH_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COSTS_FIELD_NUMBER: _ClassVar[int]
    WARNINGS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    ONCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_BATCH_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    BATCH_PER_WORKER_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    ACCUMULATION_STEPS_FIELD_NUMBER: _ClassVar[int]
    GOODPUT_SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    FINISH_SECONDS_QUANTILES_FIELD_NUMBER: _ClassVar[int]
    COST_QUANTILES_FIELD_NUMBER: _ClassVar[int]
    REVOCATIONS_MEANS_FIELD_NUMBER: _ClassVar[int]
    rows_count: int
    statuses: _containers.RepeatedScalarFieldContainer[RowStatus]
    refusals: _containers.RepeatedCompositeFieldContainer[RowRefusal]
    step_seconds: _containers.RepeatedScalarFieldContainer[float]
    steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    samples_per_second: _containers.RepeatedScalarFieldContainer[float]
    lower_steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    upper_steps_per_second: _containers.RepeatedScalarFieldContainer[float]
    interval_coverage: float
    interval_basis: IntervalBasis
    breakdown_seconds: _containers.RepeatedCompositeFieldContainer[NamedColumn]
    bottleneck_names: _containers.RepeatedScalarFieldContainer[str]
    bottleneck_indexes: _containers.RepeatedScalarFieldContainer[int]
    utilization: _containers.RepeatedCompositeFieldContainer[NamedColumn]
    staleness_mean_steps: _containers.RepeatedScalarFieldContainer[float]
    staleness_p95_steps: _containers.RepeatedScalarFieldContainer[float]
    extrapolation_ratios: _containers.RepeatedScalarFieldContainer[float]
    memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    excess_memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    finish_seconds: _containers.RepeatedScalarFieldContainer[float]
    costs: _containers.RepeatedScalarFieldContainer[float]
    warnings: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    nodes: _containers.RepeatedScalarFieldContainer[int]
    workers: _containers.RepeatedScalarFieldContainer[int]
    extra: _containers.RepeatedCompositeFieldContainer[NamedColumn]
    once_seconds: _containers.RepeatedScalarFieldContainer[float]
    global_batch_samples: _containers.RepeatedScalarFieldContainer[float]
    batch_per_worker_samples: _containers.RepeatedScalarFieldContainer[float]
    accumulation_steps: _containers.RepeatedScalarFieldContainer[int]
    goodput_samples_per_second: _containers.RepeatedScalarFieldContainer[float]
    finish_seconds_quantiles: _containers.RepeatedCompositeFieldContainer[QuantileColumn]
    cost_quantiles: _containers.RepeatedCompositeFieldContainer[QuantileColumn]
    revocations_means: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, rows_count: _Optional[int] = ..., statuses: _Optional[_Iterable[_Union[RowStatus, str]]] = ..., refusals: _Optional[_Iterable[_Union[RowRefusal, _Mapping]]] = ..., step_seconds: _Optional[_Iterable[float]] = ..., steps_per_second: _Optional[_Iterable[float]] = ..., samples_per_second: _Optional[_Iterable[float]] = ..., lower_steps_per_second: _Optional[_Iterable[float]] = ..., upper_steps_per_second: _Optional[_Iterable[float]] = ..., interval_coverage: _Optional[float] = ..., interval_basis: _Optional[_Union[IntervalBasis, str]] = ..., breakdown_seconds: _Optional[_Iterable[_Union[NamedColumn, _Mapping]]] = ..., bottleneck_names: _Optional[_Iterable[str]] = ..., bottleneck_indexes: _Optional[_Iterable[int]] = ..., utilization: _Optional[_Iterable[_Union[NamedColumn, _Mapping]]] = ..., staleness_mean_steps: _Optional[_Iterable[float]] = ..., staleness_p95_steps: _Optional[_Iterable[float]] = ..., extrapolation_ratios: _Optional[_Iterable[float]] = ..., memory_bytes: _Optional[_Iterable[float]] = ..., excess_memory_bytes: _Optional[_Iterable[float]] = ..., finish_seconds: _Optional[_Iterable[float]] = ..., costs: _Optional[_Iterable[float]] = ..., warnings: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ..., nodes: _Optional[_Iterable[int]] = ..., workers: _Optional[_Iterable[int]] = ..., extra: _Optional[_Iterable[_Union[NamedColumn, _Mapping]]] = ..., once_seconds: _Optional[_Iterable[float]] = ..., global_batch_samples: _Optional[_Iterable[float]] = ..., batch_per_worker_samples: _Optional[_Iterable[float]] = ..., accumulation_steps: _Optional[_Iterable[int]] = ..., goodput_samples_per_second: _Optional[_Iterable[float]] = ..., finish_seconds_quantiles: _Optional[_Iterable[_Union[QuantileColumn, _Mapping]]] = ..., cost_quantiles: _Optional[_Iterable[_Union[QuantileColumn, _Mapping]]] = ..., revocations_means: _Optional[_Iterable[float]] = ...) -> None: ...

class QuantileColumn(_message.Message):
    __slots__ = ("probability", "values")
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    probability: float
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, probability: _Optional[float] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class NamedColumn(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[float]] = ...) -> None: ...

class RowRefusal(_message.Message):
    __slots__ = ("rows", "problem")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    rows: _containers.RepeatedScalarFieldContainer[int]
    problem: _problem_pb2.Problem
    def __init__(self, rows: _Optional[_Iterable[int]] = ..., problem: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ...) -> None: ...

class Basis(_message.Message):
    __slots__ = ("estimator", "estimator_version", "choice", "mixture", "profile_revision", "profile_digest", "prior_ids", "catalog_digest", "fit_time", "stale", "fallback", "evidence", "digest", "generation", "track")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    MIXTURE_FIELD_NUMBER: _ClassVar[int]
    PROFILE_REVISION_FIELD_NUMBER: _ClassVar[int]
    PROFILE_DIGEST_FIELD_NUMBER: _ClassVar[int]
    PRIOR_IDS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FIT_TIME_FIELD_NUMBER: _ClassVar[int]
    STALE_FIELD_NUMBER: _ClassVar[int]
    FALLBACK_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    estimator_version: str
    choice: str
    mixture: _containers.RepeatedCompositeFieldContainer[EstimatorShare]
    profile_revision: int
    profile_digest: str
    prior_ids: _containers.RepeatedScalarFieldContainer[str]
    catalog_digest: str
    fit_time: _timestamp_pb2.Timestamp
    stale: bool
    fallback: bool
    evidence: _containers.RepeatedScalarFieldContainer[str]
    digest: str
    generation: str
    track: str
    def __init__(self, estimator: _Optional[str] = ..., estimator_version: _Optional[str] = ..., choice: _Optional[str] = ..., mixture: _Optional[_Iterable[_Union[EstimatorShare, _Mapping]]] = ..., profile_revision: _Optional[int] = ..., profile_digest: _Optional[str] = ..., prior_ids: _Optional[_Iterable[str]] = ..., catalog_digest: _Optional[str] = ..., fit_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., stale: bool = ..., fallback: bool = ..., evidence: _Optional[_Iterable[str]] = ..., digest: _Optional[str] = ..., generation: _Optional[str] = ..., track: _Optional[str] = ...) -> None: ...

class EstimatorShare(_message.Message):
    __slots__ = ("estimator", "weight", "estimator_version", "expected_log_error", "prior_id")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_LOG_ERROR_FIELD_NUMBER: _ClassVar[int]
    PRIOR_ID_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    weight: float
    estimator_version: str
    expected_log_error: float
    prior_id: str
    def __init__(self, estimator: _Optional[str] = ..., weight: _Optional[float] = ..., estimator_version: _Optional[str] = ..., expected_log_error: _Optional[float] = ..., prior_id: _Optional[str] = ...) -> None: ...
