import datetime

from google.api import annotations_pb2 as _annotations_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import plugin_pb2 as _plugin_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReloadOutcome(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RELOAD_OUTCOME_UNSPECIFIED: _ClassVar[ReloadOutcome]
    RELOAD_OUTCOME_TAKEN: _ClassVar[ReloadOutcome]
    RELOAD_OUTCOME_UNCHANGED: _ClassVar[ReloadOutcome]
    RELOAD_OUTCOME_FAILED: _ClassVar[ReloadOutcome]
    RELOAD_OUTCOME_RESTARTING: _ClassVar[ReloadOutcome]

class CallerRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CALLER_ROLE_UNSPECIFIED: _ClassVar[CallerRole]
    CALLER_ROLE_READ: _ClassVar[CallerRole]
    CALLER_ROLE_INGEST: _ClassVar[CallerRole]
    CALLER_ROLE_SCHEDULE: _ClassVar[CallerRole]
    CALLER_ROLE_ADMIN: _ClassVar[CallerRole]

class PriorAction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIOR_ACTION_UNSPECIFIED: _ClassVar[PriorAction]
    PRIOR_ACTION_PIN: _ClassVar[PriorAction]
    PRIOR_ACTION_UNPIN: _ClassVar[PriorAction]
    PRIOR_ACTION_ROLL_BACK: _ClassVar[PriorAction]
RELOAD_OUTCOME_UNSPECIFIED: ReloadOutcome
RELOAD_OUTCOME_TAKEN: ReloadOutcome
RELOAD_OUTCOME_UNCHANGED: ReloadOutcome
RELOAD_OUTCOME_FAILED: ReloadOutcome
RELOAD_OUTCOME_RESTARTING: ReloadOutcome
CALLER_ROLE_UNSPECIFIED: CallerRole
CALLER_ROLE_READ: CallerRole
CALLER_ROLE_INGEST: CallerRole
CALLER_ROLE_SCHEDULE: CallerRole
CALLER_ROLE_ADMIN: CallerRole
PRIOR_ACTION_UNSPECIFIED: PriorAction
PRIOR_ACTION_PIN: PriorAction
PRIOR_ACTION_UNPIN: PriorAction
PRIOR_ACTION_ROLL_BACK: PriorAction

class PluginDistribution(_message.Message):
    __slots__ = ("name", "version", "digest")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    digest: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., digest: _Optional[str] = ...) -> None: ...

class Generation(_message.Message):
    __slots__ = ("number", "create_time", "why", "distributions", "catalog_digest", "trial")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTIONS_FIELD_NUMBER: _ClassVar[int]
    CATALOG_DIGEST_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    number: int
    create_time: _timestamp_pb2.Timestamp
    why: str
    distributions: _containers.RepeatedCompositeFieldContainer[PluginDistribution]
    catalog_digest: str
    trial: Trial
    def __init__(self, number: _Optional[int] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., why: _Optional[str] = ..., distributions: _Optional[_Iterable[_Union[PluginDistribution, _Mapping]]] = ..., catalog_digest: _Optional[str] = ..., trial: _Optional[_Union[Trial, _Mapping]] = ...) -> None: ...

class Trial(_message.Message):
    __slots__ = ("trial_time", "failures", "notices", "checks_passed_count", "checks_left_out_count", "differences")
    TRIAL_TIME_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    NOTICES_FIELD_NUMBER: _ClassVar[int]
    CHECKS_PASSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    CHECKS_LEFT_OUT_COUNT_FIELD_NUMBER: _ClassVar[int]
    DIFFERENCES_FIELD_NUMBER: _ClassVar[int]
    trial_time: _timestamp_pb2.Timestamp
    failures: _containers.RepeatedScalarFieldContainer[str]
    notices: _containers.RepeatedScalarFieldContainer[str]
    checks_passed_count: int
    checks_left_out_count: int
    differences: _containers.RepeatedCompositeFieldContainer[EstimatorDifference]
    def __init__(self, trial_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., failures: _Optional[_Iterable[str]] = ..., notices: _Optional[_Iterable[str]] = ..., checks_passed_count: _Optional[int] = ..., checks_left_out_count: _Optional[int] = ..., differences: _Optional[_Iterable[_Union[EstimatorDifference, _Mapping]]] = ...) -> None: ...

class EstimatorDifference(_message.Message):
    __slots__ = ("estimator", "version_before", "version_after", "requests_count", "rows_count", "median_log_ratio", "largest_log_ratio", "changed_refusals_count", "failures_count", "median_seconds_before", "median_seconds_after")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    VERSION_BEFORE_FIELD_NUMBER: _ClassVar[int]
    VERSION_AFTER_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_COUNT_FIELD_NUMBER: _ClassVar[int]
    ROWS_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_LOG_RATIO_FIELD_NUMBER: _ClassVar[int]
    LARGEST_LOG_RATIO_FIELD_NUMBER: _ClassVar[int]
    CHANGED_REFUSALS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_SECONDS_BEFORE_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_SECONDS_AFTER_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    version_before: str
    version_after: str
    requests_count: int
    rows_count: int
    median_log_ratio: float
    largest_log_ratio: float
    changed_refusals_count: int
    failures_count: int
    median_seconds_before: float
    median_seconds_after: float
    def __init__(self, estimator: _Optional[str] = ..., version_before: _Optional[str] = ..., version_after: _Optional[str] = ..., requests_count: _Optional[int] = ..., rows_count: _Optional[int] = ..., median_log_ratio: _Optional[float] = ..., largest_log_ratio: _Optional[float] = ..., changed_refusals_count: _Optional[int] = ..., failures_count: _Optional[int] = ..., median_seconds_before: _Optional[float] = ..., median_seconds_after: _Optional[float] = ...) -> None: ...

class Canary(_message.Message):
    __slots__ = ("generation", "share")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    generation: int
    share: float
    def __init__(self, generation: _Optional[int] = ..., share: _Optional[float] = ...) -> None: ...

class WorkerState(_message.Message):
    __slots__ = ("process_id", "stable_generation", "canary_generation", "problem")
    PROCESS_ID_FIELD_NUMBER: _ClassVar[int]
    STABLE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CANARY_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    process_id: int
    stable_generation: int
    canary_generation: int
    problem: str
    def __init__(self, process_id: _Optional[int] = ..., stable_generation: _Optional[int] = ..., canary_generation: _Optional[int] = ..., problem: _Optional[str] = ...) -> None: ...

class Tracks(_message.Message):
    __slots__ = ("stable_generation", "canary", "candidate_generation", "previous_generations", "workers")
    STABLE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    CANARY_FIELD_NUMBER: _ClassVar[int]
    CANDIDATE_GENERATION_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    stable_generation: int
    canary: Canary
    candidate_generation: int
    previous_generations: _containers.RepeatedScalarFieldContainer[int]
    workers: _containers.RepeatedCompositeFieldContainer[WorkerState]
    def __init__(self, stable_generation: _Optional[int] = ..., canary: _Optional[_Union[Canary, _Mapping]] = ..., candidate_generation: _Optional[int] = ..., previous_generations: _Optional[_Iterable[int]] = ..., workers: _Optional[_Iterable[_Union[WorkerState, _Mapping]]] = ...) -> None: ...

class ListGenerationsRequest(_message.Message):
    __slots__ = ("page_size", "page_token")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListGenerationsResponse(_message.Message):
    __slots__ = ("generations", "next_page_token", "tracks")
    GENERATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    generations: _containers.RepeatedCompositeFieldContainer[Generation]
    next_page_token: str
    tracks: Tracks
    def __init__(self, generations: _Optional[_Iterable[_Union[Generation, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., tracks: _Optional[_Union[Tracks, _Mapping]] = ...) -> None: ...

class ReloadRequest(_message.Message):
    __slots__ = ("generation",)
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    generation: int
    def __init__(self, generation: _Optional[int] = ...) -> None: ...

class ReloadResponse(_message.Message):
    __slots__ = ("outcome", "generation", "generation_before", "trial", "tracks")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    GENERATION_BEFORE_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    outcome: ReloadOutcome
    generation: int
    generation_before: int
    trial: Trial
    tracks: Tracks
    def __init__(self, outcome: _Optional[_Union[ReloadOutcome, str]] = ..., generation: _Optional[int] = ..., generation_before: _Optional[int] = ..., trial: _Optional[_Union[Trial, _Mapping]] = ..., tracks: _Optional[_Union[Tracks, _Mapping]] = ...) -> None: ...

class SetCanaryRequest(_message.Message):
    __slots__ = ("generation", "share")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    generation: int
    share: float
    def __init__(self, generation: _Optional[int] = ..., share: _Optional[float] = ...) -> None: ...

class SetCanaryResponse(_message.Message):
    __slots__ = ("outcome", "generation", "trial", "tracks")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRIAL_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    outcome: ReloadOutcome
    generation: int
    trial: Trial
    tracks: Tracks
    def __init__(self, outcome: _Optional[_Union[ReloadOutcome, str]] = ..., generation: _Optional[int] = ..., trial: _Optional[_Union[Trial, _Mapping]] = ..., tracks: _Optional[_Union[Tracks, _Mapping]] = ...) -> None: ...

class PromoteRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class PromoteResponse(_message.Message):
    __slots__ = ("generation", "tracks")
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    generation: int
    tracks: Tracks
    def __init__(self, generation: _Optional[int] = ..., tracks: _Optional[_Union[Tracks, _Mapping]] = ...) -> None: ...

class RollbackRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class RollbackResponse(_message.Message):
    __slots__ = ("outcome", "generation", "failures", "tracks")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    TRACKS_FIELD_NUMBER: _ClassVar[int]
    outcome: ReloadOutcome
    generation: int
    failures: _containers.RepeatedScalarFieldContainer[str]
    tracks: Tracks
    def __init__(self, outcome: _Optional[_Union[ReloadOutcome, str]] = ..., generation: _Optional[int] = ..., failures: _Optional[_Iterable[str]] = ..., tracks: _Optional[_Union[Tracks, _Mapping]] = ...) -> None: ...

class ListPluginStatesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPluginStatesResponse(_message.Message):
    __slots__ = ("plugins", "problems")
    PLUGINS_FIELD_NUMBER: _ClassVar[int]
    PROBLEMS_FIELD_NUMBER: _ClassVar[int]
    plugins: _containers.RepeatedCompositeFieldContainer[PluginState]
    problems: _containers.RepeatedCompositeFieldContainer[_plugin_pb2.PluginProblem]
    def __init__(self, plugins: _Optional[_Iterable[_Union[PluginState, _Mapping]]] = ..., problems: _Optional[_Iterable[_Union[_plugin_pb2.PluginProblem, _Mapping]]] = ...) -> None: ...

class PluginState(_message.Message):
    __slots__ = ("plugin", "generation", "track", "serving", "calls_count", "failures_count")
    PLUGIN_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    TRACK_FIELD_NUMBER: _ClassVar[int]
    SERVING_FIELD_NUMBER: _ClassVar[int]
    CALLS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FAILURES_COUNT_FIELD_NUMBER: _ClassVar[int]
    plugin: _plugin_pb2.Plugin
    generation: int
    track: str
    serving: bool
    calls_count: int
    failures_count: int
    def __init__(self, plugin: _Optional[_Union[_plugin_pb2.Plugin, _Mapping]] = ..., generation: _Optional[int] = ..., track: _Optional[str] = ..., serving: bool = ..., calls_count: _Optional[int] = ..., failures_count: _Optional[int] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("token_id", "description", "roles", "prefixes", "create_time", "expire_time", "revoke_time")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_FIELD_NUMBER: _ClassVar[int]
    EXPIRE_TIME_FIELD_NUMBER: _ClassVar[int]
    REVOKE_TIME_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    description: str
    roles: _containers.RepeatedScalarFieldContainer[CallerRole]
    prefixes: _containers.RepeatedScalarFieldContainer[str]
    create_time: _timestamp_pb2.Timestamp
    expire_time: _timestamp_pb2.Timestamp
    revoke_time: _timestamp_pb2.Timestamp
    def __init__(self, token_id: _Optional[str] = ..., description: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[CallerRole, str]]] = ..., prefixes: _Optional[_Iterable[str]] = ..., create_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expire_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., revoke_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class CreateTokenRequest(_message.Message):
    __slots__ = ("description", "roles", "prefixes", "lifetime_seconds")
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    ROLES_FIELD_NUMBER: _ClassVar[int]
    PREFIXES_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_SECONDS_FIELD_NUMBER: _ClassVar[int]
    description: str
    roles: _containers.RepeatedScalarFieldContainer[CallerRole]
    prefixes: _containers.RepeatedScalarFieldContainer[str]
    lifetime_seconds: float
    def __init__(self, description: _Optional[str] = ..., roles: _Optional[_Iterable[_Union[CallerRole, str]]] = ..., prefixes: _Optional[_Iterable[str]] = ..., lifetime_seconds: _Optional[float] = ...) -> None: ...

class CreateTokenResponse(_message.Message):
    __slots__ = ("token", "bearer_token")
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    BEARER_TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: Token
    bearer_token: str
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ..., bearer_token: _Optional[str] = ...) -> None: ...

class ListTokensRequest(_message.Message):
    __slots__ = ("page_size", "page_token", "show_ended")
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHOW_ENDED_FIELD_NUMBER: _ClassVar[int]
    page_size: int
    page_token: str
    show_ended: bool
    def __init__(self, page_size: _Optional[int] = ..., page_token: _Optional[str] = ..., show_ended: bool = ...) -> None: ...

class ListTokensResponse(_message.Message):
    __slots__ = ("tokens", "next_page_token")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    next_page_token: str
    def __init__(self, tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., next_page_token: _Optional[str] = ...) -> None: ...

class RevokeTokenRequest(_message.Message):
    __slots__ = ("token_id",)
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    def __init__(self, token_id: _Optional[str] = ...) -> None: ...

class RevokeTokenResponse(_message.Message):
    __slots__ = ("token",)
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    token: Token
    def __init__(self, token: _Optional[_Union[Token, _Mapping]] = ...) -> None: ...

class PriorEffect(_message.Message):
    __slots__ = ("observations_count", "mean_absolute_log_error", "mean_absolute_log_error_without", "coverage", "coverage_without")
    OBSERVATIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABSOLUTE_LOG_ERROR_FIELD_NUMBER: _ClassVar[int]
    MEAN_ABSOLUTE_LOG_ERROR_WITHOUT_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_WITHOUT_FIELD_NUMBER: _ClassVar[int]
    observations_count: int
    mean_absolute_log_error: float
    mean_absolute_log_error_without: float
    coverage: float
    coverage_without: float
    def __init__(self, observations_count: _Optional[int] = ..., mean_absolute_log_error: _Optional[float] = ..., mean_absolute_log_error_without: _Optional[float] = ..., coverage: _Optional[float] = ..., coverage_without: _Optional[float] = ...) -> None: ...

class EstimatorPrior(_message.Message):
    __slots__ = ("estimator", "prior_id", "sources", "spread_factor", "tried_jobs_count", "effect")
    ESTIMATOR_FIELD_NUMBER: _ClassVar[int]
    PRIOR_ID_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    SPREAD_FACTOR_FIELD_NUMBER: _ClassVar[int]
    TRIED_JOBS_COUNT_FIELD_NUMBER: _ClassVar[int]
    EFFECT_FIELD_NUMBER: _ClassVar[int]
    estimator: str
    prior_id: str
    sources: _containers.RepeatedScalarFieldContainer[str]
    spread_factor: float
    tried_jobs_count: int
    effect: PriorEffect
    def __init__(self, estimator: _Optional[str] = ..., prior_id: _Optional[str] = ..., sources: _Optional[_Iterable[str]] = ..., spread_factor: _Optional[float] = ..., tried_jobs_count: _Optional[int] = ..., effect: _Optional[_Union[PriorEffect, _Mapping]] = ...) -> None: ...

class TrimmedJob(_message.Message):
    __slots__ = ("profile_id", "reason")
    PROFILE_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    profile_id: str
    reason: str
    def __init__(self, profile_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class PastLessons(_message.Message):
    __slots__ = ("lessons_id", "learn_time", "profiles_count")
    LESSONS_ID_FIELD_NUMBER: _ClassVar[int]
    LEARN_TIME_FIELD_NUMBER: _ClassVar[int]
    PROFILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    lessons_id: str
    learn_time: _timestamp_pb2.Timestamp
    profiles_count: int
    def __init__(self, lessons_id: _Optional[str] = ..., learn_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., profiles_count: _Optional[int] = ...) -> None: ...

class LearnedPriors(_message.Message):
    __slots__ = ("namespace", "lessons_id", "learn_time", "pin_time", "jobs_count", "owners_count", "profile_ids", "trimmed_jobs", "groups_count", "lost_profiles_count", "priors", "past")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    LESSONS_ID_FIELD_NUMBER: _ClassVar[int]
    LEARN_TIME_FIELD_NUMBER: _ClassVar[int]
    PIN_TIME_FIELD_NUMBER: _ClassVar[int]
    JOBS_COUNT_FIELD_NUMBER: _ClassVar[int]
    OWNERS_COUNT_FIELD_NUMBER: _ClassVar[int]
    PROFILE_IDS_FIELD_NUMBER: _ClassVar[int]
    TRIMMED_JOBS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_COUNT_FIELD_NUMBER: _ClassVar[int]
    LOST_PROFILES_COUNT_FIELD_NUMBER: _ClassVar[int]
    PRIORS_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    lessons_id: str
    learn_time: _timestamp_pb2.Timestamp
    pin_time: _timestamp_pb2.Timestamp
    jobs_count: int
    owners_count: int
    profile_ids: _containers.RepeatedScalarFieldContainer[str]
    trimmed_jobs: _containers.RepeatedCompositeFieldContainer[TrimmedJob]
    groups_count: int
    lost_profiles_count: int
    priors: _containers.RepeatedCompositeFieldContainer[EstimatorPrior]
    past: _containers.RepeatedCompositeFieldContainer[PastLessons]
    def __init__(self, namespace: _Optional[str] = ..., lessons_id: _Optional[str] = ..., learn_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., pin_time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., jobs_count: _Optional[int] = ..., owners_count: _Optional[int] = ..., profile_ids: _Optional[_Iterable[str]] = ..., trimmed_jobs: _Optional[_Iterable[_Union[TrimmedJob, _Mapping]]] = ..., groups_count: _Optional[int] = ..., lost_profiles_count: _Optional[int] = ..., priors: _Optional[_Iterable[_Union[EstimatorPrior, _Mapping]]] = ..., past: _Optional[_Iterable[_Union[PastLessons, _Mapping]]] = ...) -> None: ...

class ListPriorsRequest(_message.Message):
    __slots__ = ("namespace", "page_size", "page_token")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    PAGE_SIZE_FIELD_NUMBER: _ClassVar[int]
    PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    page_size: int
    page_token: str
    def __init__(self, namespace: _Optional[str] = ..., page_size: _Optional[int] = ..., page_token: _Optional[str] = ...) -> None: ...

class ListPriorsResponse(_message.Message):
    __slots__ = ("learned", "next_page_token", "shared_namespaces")
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    NEXT_PAGE_TOKEN_FIELD_NUMBER: _ClassVar[int]
    SHARED_NAMESPACES_FIELD_NUMBER: _ClassVar[int]
    learned: _containers.RepeatedCompositeFieldContainer[LearnedPriors]
    next_page_token: str
    shared_namespaces: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, learned: _Optional[_Iterable[_Union[LearnedPriors, _Mapping]]] = ..., next_page_token: _Optional[str] = ..., shared_namespaces: _Optional[_Iterable[str]] = ...) -> None: ...

class SetPriorRequest(_message.Message):
    __slots__ = ("namespace", "action", "lessons_id")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    LESSONS_ID_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    action: PriorAction
    lessons_id: str
    def __init__(self, namespace: _Optional[str] = ..., action: _Optional[_Union[PriorAction, str]] = ..., lessons_id: _Optional[str] = ...) -> None: ...

class SetPriorResponse(_message.Message):
    __slots__ = ("learned",)
    LEARNED_FIELD_NUMBER: _ClassVar[int]
    learned: LearnedPriors
    def __init__(self, learned: _Optional[_Union[LearnedPriors, _Mapping]] = ...) -> None: ...
