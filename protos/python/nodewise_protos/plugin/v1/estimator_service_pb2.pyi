from nodewise_protos.plugin.v1 import plugin_service_pb2 as _plugin_service_pb2
from nodewise_protos.plugin.v1 import value_pb2 as _value_pb2
from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import options_pb2 as _options_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import problem_pb2 as _problem_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListEstimatorsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListEstimatorsResponse(_message.Message):
    __slots__ = ("estimators", "instance", "remembers")
    ESTIMATORS_FIELD_NUMBER: _ClassVar[int]
    INSTANCE_FIELD_NUMBER: _ClassVar[int]
    REMEMBERS_FIELD_NUMBER: _ClassVar[int]
    estimators: _containers.RepeatedCompositeFieldContainer[Estimator]
    instance: str
    remembers: bool
    def __init__(self, estimators: _Optional[_Iterable[_Union[Estimator, _Mapping]]] = ..., instance: _Optional[str] = ..., remembers: bool = ...) -> None: ...

class Estimator(_message.Message):
    __slots__ = ("name", "version", "description", "plugin_api", "capabilities", "columns")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    PLUGIN_API_FIELD_NUMBER: _ClassVar[int]
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    description: str
    plugin_api: str
    capabilities: _containers.RepeatedScalarFieldContainer[str]
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., description: _Optional[str] = ..., plugin_api: _Optional[str] = ..., capabilities: _Optional[_Iterable[str]] = ..., columns: _Optional[_Iterable[str]] = ...) -> None: ...

class Profile(_message.Message):
    __slots__ = ("profile", "memory_runs")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    MEMORY_RUNS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.Profile
    memory_runs: _profile_pb2.Observations
    def __init__(self, profile: _Optional[_Union[_profile_pb2.Profile, _Mapping]] = ..., memory_runs: _Optional[_Union[_profile_pb2.Observations, _Mapping]] = ...) -> None: ...

class Catalog(_message.Message):
    __slots__ = ("digest", "devices", "links", "all")
    class DevicesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Facts
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Facts, _Mapping]] = ...) -> None: ...
    class LinksEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Facts
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Facts, _Mapping]] = ...) -> None: ...
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    DEVICES_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    ALL_FIELD_NUMBER: _ClassVar[int]
    digest: str
    devices: _containers.MessageMap[str, Facts]
    links: _containers.MessageMap[str, Facts]
    all: _value_pb2.Value
    def __init__(self, digest: _Optional[str] = ..., devices: _Optional[_Mapping[str, Facts]] = ..., links: _Optional[_Mapping[str, Facts]] = ..., all: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...

class Facts(_message.Message):
    __slots__ = ("facts",)
    class FactsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    FACTS_FIELD_NUMBER: _ClassVar[int]
    facts: _containers.ScalarMap[str, float]
    def __init__(self, facts: _Optional[_Mapping[str, float]] = ...) -> None: ...

class Evidence(_message.Message):
    __slots__ = ("profile_number", "profile", "catalog_number", "catalog")
    PROFILE_NUMBER_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    CATALOG_NUMBER_FIELD_NUMBER: _ClassVar[int]
    CATALOG_FIELD_NUMBER: _ClassVar[int]
    profile_number: int
    profile: Profile
    catalog_number: int
    catalog: Catalog
    def __init__(self, profile_number: _Optional[int] = ..., profile: _Optional[_Union[Profile, _Mapping]] = ..., catalog_number: _Optional[int] = ..., catalog: _Optional[_Union[Catalog, _Mapping]] = ...) -> None: ...

class Options(_message.Message):
    __slots__ = ("fidelity", "seed", "simulated_steps", "remaining_seconds")
    FIDELITY_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_STEPS_FIELD_NUMBER: _ClassVar[int]
    REMAINING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    fidelity: _options_pb2.Fidelity
    seed: int
    simulated_steps: int
    remaining_seconds: float
    def __init__(self, fidelity: _Optional[_Union[_options_pb2.Fidelity, str]] = ..., seed: _Optional[int] = ..., simulated_steps: _Optional[int] = ..., remaining_seconds: _Optional[float] = ...) -> None: ...

class AssessRequest(_message.Message):
    __slots__ = ("estimator", "evidence", "configurations", "options", "model")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    evidence: Evidence
    configurations: _configuration_pb2.Configurations
    options: Options
    model: int
    def __init__(self, estimator: _Optional[str] = ..., evidence: _Optional[_Union[Evidence, _Mapping]] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., model: _Optional[int] = ...) -> None: ...

class AssessResponse(_message.Message):
    __slots__ = ("assessment", "predicted", "other")
    ASSESSMENT_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    assessment: Assessment
    predicted: PredictResponse
    other: _value_pb2.Value
    def __init__(self, assessment: _Optional[_Union[Assessment, _Mapping]] = ..., predicted: _Optional[_Union[PredictResponse, _Mapping]] = ..., other: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...

class Assessment(_message.Message):
    __slots__ = ("refusal", "evidence", "strength", "expected_log_errors", "of_profile")
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_LOG_ERRORS_FIELD_NUMBER: _ClassVar[int]
    OF_PROFILE_FIELD_NUMBER: _ClassVar[int]
    refusal: _problem_pb2.Problem
    evidence: _containers.RepeatedScalarFieldContainer[str]
    strength: float
    expected_log_errors: _containers.RepeatedScalarFieldContainer[float]
    of_profile: bool
    def __init__(self, refusal: _Optional[_Union[_problem_pb2.Problem, _Mapping]] = ..., evidence: _Optional[_Iterable[str]] = ..., strength: _Optional[float] = ..., expected_log_errors: _Optional[_Iterable[float]] = ..., of_profile: bool = ...) -> None: ...

class FitRequest(_message.Message):
    __slots__ = ("estimator", "evidence", "prior", "seed", "context", "call")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    PRIOR_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    CONTEXT_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    evidence: Evidence
    prior: Prior
    seed: int
    context: int
    call: int
    def __init__(self, estimator: _Optional[str] = ..., evidence: _Optional[_Union[Evidence, _Mapping]] = ..., prior: _Optional[_Union[Prior, _Mapping]] = ..., seed: _Optional[int] = ..., context: _Optional[int] = ..., call: _Optional[int] = ...) -> None: ...

class Prior(_message.Message):
    __slots__ = ("prior_id", "estimator", "sources", "content")
    PRIOR_ID_FIELD_NUMBER: _ClassVar[int]
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    prior_id: str
    estimator: str
    sources: _containers.RepeatedScalarFieldContainer[str]
    content: bytes
    def __init__(self, prior_id: _Optional[str] = ..., estimator: _Optional[str] = ..., sources: _Optional[_Iterable[str]] = ..., content: _Optional[bytes] = ...) -> None: ...

class FitResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: _plugin_service_pb2.KeptObject
    def __init__(self, model: _Optional[_Union[_plugin_service_pb2.KeptObject, _Mapping]] = ...) -> None: ...

class PredictRequest(_message.Message):
    __slots__ = ("model", "configurations", "options", "call")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CONFIGURATIONS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    CALL_FIELD_NUMBER: _ClassVar[int]
    model: int
    configurations: _configuration_pb2.Configurations
    options: Options
    call: int
    def __init__(self, model: _Optional[int] = ..., configurations: _Optional[_Union[_configuration_pb2.Configurations, _Mapping]] = ..., options: _Optional[_Union[Options, _Mapping]] = ..., call: _Optional[int] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("predictions", "other")
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    OTHER_FIELD_NUMBER: _ClassVar[int]
    predictions: Predictions
    other: _value_pb2.Value
    def __init__(self, predictions: _Optional[_Union[Predictions, _Mapping]] = ..., other: _Optional[_Union[_value_pb2.Value, _Mapping]] = ...) -> None: ...

class Predictions(_message.Message):
    __slots__ = ("step_seconds", "statuses", "log_spreads", "breakdown_seconds", "bottleneck_names", "bottleneck_indexes", "extrapolation_ratios", "utilization", "staleness_mean_steps", "staleness_p95_steps", "memory_bytes", "excess_memory_bytes", "once_seconds", "extra", "simulated", "refusals", "notices")
    STEP_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    LOG_SPREADS_FIELD_NUMBER: _ClassVar[int]
    BREAKDOWN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_NAMES_FIELD_NUMBER: _ClassVar[int]
    BOTTLENECK_INDEXES_FIELD_NUMBER: _ClassVar[int]
    EXTRAPOLATION_RATIOS_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_FIELD_NUMBER: _ClassVar[int]
    STALENESS_MEAN_STEPS_FIELD_NUMBER: _ClassVar[int]
    STALENESS_P95_STEPS_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    EXCESS_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    ONCE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    EXTRA_FIELD_NUMBER: _ClassVar[int]
    SIMULATED_FIELD_NUMBER: _ClassVar[int]
    REFUSALS_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    step_seconds: _containers.RepeatedScalarFieldContainer[float]
    statuses: _containers.RepeatedScalarFieldContainer[_prediction_pb2.RowStatus]
    log_spreads: _containers.RepeatedScalarFieldContainer[float]
    breakdown_seconds: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.NamedColumn]
    bottleneck_names: _containers.RepeatedScalarFieldContainer[str]
    bottleneck_indexes: _containers.RepeatedScalarFieldContainer[int]
    extrapolation_ratios: _containers.RepeatedScalarFieldContainer[float]
    utilization: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.NamedColumn]
    staleness_mean_steps: _containers.RepeatedScalarFieldContainer[float]
    staleness_p95_steps: _containers.RepeatedScalarFieldContainer[float]
    memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    excess_memory_bytes: _containers.RepeatedScalarFieldContainer[float]
    once_seconds: _containers.RepeatedScalarFieldContainer[float]
    extra: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.NamedColumn]
    simulated: bool
    refusals: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.RowRefusal]
    notices: _containers.RepeatedCompositeFieldContainer[_problem_pb2.Notice]
    def __init__(self, step_seconds: _Optional[_Iterable[float]] = ..., statuses: _Optional[_Iterable[_Union[_prediction_pb2.RowStatus, str]]] = ..., log_spreads: _Optional[_Iterable[float]] = ..., breakdown_seconds: _Optional[_Iterable[_Union[_prediction_pb2.NamedColumn, _Mapping]]] = ..., bottleneck_names: _Optional[_Iterable[str]] = ..., bottleneck_indexes: _Optional[_Iterable[int]] = ..., extrapolation_ratios: _Optional[_Iterable[float]] = ..., utilization: _Optional[_Iterable[_Union[_prediction_pb2.NamedColumn, _Mapping]]] = ..., staleness_mean_steps: _Optional[_Iterable[float]] = ..., staleness_p95_steps: _Optional[_Iterable[float]] = ..., memory_bytes: _Optional[_Iterable[float]] = ..., excess_memory_bytes: _Optional[_Iterable[float]] = ..., once_seconds: _Optional[_Iterable[float]] = ..., extra: _Optional[_Iterable[_Union[_prediction_pb2.NamedColumn, _Mapping]]] = ..., simulated: bool = ..., refusals: _Optional[_Iterable[_Union[_prediction_pb2.RowRefusal, _Mapping]]] = ..., notices: _Optional[_Iterable[_Union[_problem_pb2.Notice, _Mapping]]] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, models: _Optional[_Iterable[int]] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
