from nodewise_protos.v1 import facts_pb2 as _facts_pb2
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

class PredictionColumn(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PREDICTION_COLUMN_UNSPECIFIED: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_ALL: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_THROUGHPUT: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_INTERVAL: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_BREAKDOWN: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_UTILIZATION: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_STALENESS: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_MEMORY: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_WORK: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_EXTRA: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_GOODPUT: _ClassVar[PredictionColumn]
    PREDICTION_COLUMN_RISK: _ClassVar[PredictionColumn]
FRESHNESS_UNSPECIFIED: Freshness
FRESHNESS_CACHED_ONLY: Freshness
FRESHNESS_ALLOW_STALE: Freshness
FRESHNESS_WAIT: Freshness
FIDELITY_UNSPECIFIED: Fidelity
FIDELITY_MODEL: Fidelity
FIDELITY_SIMULATE: Fidelity
PREDICTION_COLUMN_UNSPECIFIED: PredictionColumn
PREDICTION_COLUMN_ALL: PredictionColumn
PREDICTION_COLUMN_THROUGHPUT: PredictionColumn
PREDICTION_COLUMN_INTERVAL: PredictionColumn
PREDICTION_COLUMN_BREAKDOWN: PredictionColumn
PREDICTION_COLUMN_UTILIZATION: PredictionColumn
PREDICTION_COLUMN_STALENESS: PredictionColumn
PREDICTION_COLUMN_MEMORY: PredictionColumn
PREDICTION_COLUMN_WORK: PredictionColumn
PREDICTION_COLUMN_EXTRA: PredictionColumn
PREDICTION_COLUMN_GOODPUT: PredictionColumn
PREDICTION_COLUMN_RISK: PredictionColumn

class ModelOptions(_message.Message):
    __slots__ = ("estimator", "estimator_version", "parameters", "freshness", "allow_fallback", "interval_coverage", "seed")
    class ParametersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_VERSION_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_FIELD_NUMBER: _ClassVar[int]
    FRESHNESS_FIELD_NUMBER: _ClassVar[int]
    ALLOW_FALLBACK_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_COVERAGE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    estimator_version: str
    parameters: _containers.ScalarMap[str, float]
    freshness: Freshness
    allow_fallback: bool
    interval_coverage: float
    seed: int
    def __init__(self, estimator: _Optional[str] = ..., estimator_version: _Optional[str] = ..., parameters: _Optional[_Mapping[str, float]] = ..., freshness: _Optional[_Union[Freshness, str]] = ..., allow_fallback: bool = ..., interval_coverage: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class PredictOptions(_message.Message):
    __slots__ = ("model", "columns", "fidelity", "simulated_steps_count")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    FIDELITY_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_STEPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    model: ModelOptions
    columns: _containers.RepeatedScalarFieldContainer[PredictionColumn]
    fidelity: Fidelity
    simulated_steps_count: int
    def __init__(self, model: _Optional[_Union[ModelOptions, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[PredictionColumn, str]]] = ..., fidelity: _Optional[_Union[Fidelity, str]] = ..., simulated_steps_count: _Optional[int] = ...) -> None: ...
