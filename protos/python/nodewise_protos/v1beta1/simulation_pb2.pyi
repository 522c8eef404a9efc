from nodewise_protos.v1 import configuration_pb2 as _configuration_pb2
from nodewise_protos.v1 import facts_pb2 as _facts_pb2
from nodewise_protos.v1 import prediction_pb2 as _prediction_pb2
from nodewise_protos.v1 import profile_pb2 as _profile_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SimulationClock(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIMULATION_CLOCK_UNSPECIFIED: _ClassVar[SimulationClock]
    SIMULATION_CLOCK_EVENTS: _ClassVar[SimulationClock]
    SIMULATION_CLOCK_FIXED_ROUNDS: _ClassVar[SimulationClock]
    SIMULATION_CLOCK_DRAINED_ROUNDS: _ClassVar[SimulationClock]

class SimulationMeasure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIMULATION_MEASURE_UNSPECIFIED: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_JOBS_COUNT: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_FINISHED_COUNT: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_AVERAGE_JCT_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_MEDIAN_JCT_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_P99_JCT_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_AVERAGE_WAITING_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_AVERAGE_SLOWDOWN_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_P99_SLOWDOWN_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_AVERAGE_FINISH_TIME_FAIRNESS_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_WORST_FINISH_TIME_FAIRNESS_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_MAKESPAN_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_UTILIZATION_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_RESTARTS_PER_JOB_RATIO: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_BUSY_DEVICE_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_RESTART_DEVICE_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_LOST_DEVICE_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_DEADLINES_COUNT: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_DEADLINES_MISSED_COUNT: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_DECISIONS_COUNT: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_DECISION_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_LONGEST_DECISION_SECONDS: _ClassVar[SimulationMeasure]
    SIMULATION_MEASURE_WALL_SECONDS: _ClassVar[SimulationMeasure]
SIMULATION_CLOCK_UNSPECIFIED: SimulationClock
SIMULATION_CLOCK_EVENTS: SimulationClock
SIMULATION_CLOCK_FIXED_ROUNDS: SimulationClock
SIMULATION_CLOCK_DRAINED_ROUNDS: SimulationClock
SIMULATION_MEASURE_UNSPECIFIED: SimulationMeasure
SIMULATION_MEASURE_JOBS_COUNT: SimulationMeasure
SIMULATION_MEASURE_FINISHED_COUNT: SimulationMeasure
SIMULATION_MEASURE_AVERAGE_JCT_SECONDS: SimulationMeasure
SIMULATION_MEASURE_MEDIAN_JCT_SECONDS: SimulationMeasure
SIMULATION_MEASURE_P99_JCT_SECONDS: SimulationMeasure
SIMULATION_MEASURE_AVERAGE_WAITING_SECONDS: SimulationMeasure
SIMULATION_MEASURE_AVERAGE_SLOWDOWN_RATIO: SimulationMeasure
SIMULATION_MEASURE_P99_SLOWDOWN_RATIO: SimulationMeasure
SIMULATION_MEASURE_AVERAGE_FINISH_TIME_FAIRNESS_RATIO: SimulationMeasure
SIMULATION_MEASURE_WORST_FINISH_TIME_FAIRNESS_RATIO: SimulationMeasure
SIMULATION_MEASURE_MAKESPAN_SECONDS: SimulationMeasure
SIMULATION_MEASURE_UTILIZATION_RATIO: SimulationMeasure
SIMULATION_MEASURE_RESTARTS_PER_JOB_RATIO: SimulationMeasure
SIMULATION_MEASURE_BUSY_DEVICE_SECONDS: SimulationMeasure
SIMULATION_MEASURE_RESTART_DEVICE_SECONDS: SimulationMeasure
SIMULATION_MEASURE_LOST_DEVICE_SECONDS: SimulationMeasure
SIMULATION_MEASURE_DEADLINES_COUNT: SimulationMeasure
SIMULATION_MEASURE_DEADLINES_MISSED_COUNT: SimulationMeasure
SIMULATION_MEASURE_DECISIONS_COUNT: SimulationMeasure
SIMULATION_MEASURE_DECISION_SECONDS: SimulationMeasure
SIMULATION_MEASURE_LONGEST_DECISION_SECONDS: SimulationMeasure
SIMULATION_MEASURE_WALL_SECONDS: SimulationMeasure

class SimulationJobs(_message.Message):
    __slots__ = ("count", "job_ids", "arrival_seconds", "work_samples", "curve_indexes", "predicted_curve_indexes", "requested_devices", "rigid", "min_devices", "max_devices", "stop_samples", "step_samples", "restart_cost_seconds", "weights", "queue_names", "queue_indexes", "deadline_seconds", "minimum_run_seconds", "server_devices")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WORK_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    CURVE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_CURVE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_DEVICES_FIELD_NUMBER: _ClassVar[int]
    RIGID_FIELD_NUMBER: _ClassVar[int]
    MIN_DEVICES_FIELD_NUMBER: _ClassVar[int]
    MAX_DEVICES_FIELD_NUMBER: _ClassVar[int]
    STOP_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    STEP_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    RESTART_COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_NAMES_FIELD_NUMBER: _ClassVar[int]
    QUEUE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_RUN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SERVER_DEVICES_FIELD_NUMBER: _ClassVar[int]
    count: int
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    arrival_seconds: _containers.RepeatedScalarFieldContainer[float]
    work_samples: _containers.RepeatedScalarFieldContainer[float]
    curve_indexes: _containers.RepeatedScalarFieldContainer[int]
    predicted_curve_indexes: _containers.RepeatedScalarFieldContainer[int]
    requested_devices: _containers.RepeatedScalarFieldContainer[int]
    rigid: _containers.RepeatedScalarFieldContainer[bool]
    min_devices: _containers.RepeatedScalarFieldContainer[int]
    max_devices: _containers.RepeatedScalarFieldContainer[int]
    stop_samples: _containers.RepeatedScalarFieldContainer[float]
    step_samples: _containers.RepeatedScalarFieldContainer[float]
    restart_cost_seconds: _containers.RepeatedScalarFieldContainer[float]
    weights: _containers.RepeatedScalarFieldContainer[float]
    queue_names: _containers.RepeatedScalarFieldContainer[str]
    queue_indexes: _containers.RepeatedScalarFieldContainer[int]
    deadline_seconds: _containers.RepeatedScalarFieldContainer[float]
    minimum_run_seconds: _containers.RepeatedScalarFieldContainer[float]
    server_devices: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, count: _Optional[int] = ..., job_ids: _Optional[_Iterable[str]] = ..., arrival_seconds: _Optional[_Iterable[float]] = ..., work_samples: _Optional[_Iterable[float]] = ..., curve_indexes: _Optional[_Iterable[int]] = ..., predicted_curve_indexes: _Optional[_Iterable[int]] = ..., requested_devices: _Optional[_Iterable[int]] = ..., rigid: _Optional[_Iterable[bool]] = ..., min_devices: _Optional[_Iterable[int]] = ..., max_devices: _Optional[_Iterable[int]] = ..., stop_samples: _Optional[_Iterable[float]] = ..., step_samples: _Optional[_Iterable[float]] = ..., restart_cost_seconds: _Optional[_Iterable[float]] = ..., weights: _Optional[_Iterable[float]] = ..., queue_names: _Optional[_Iterable[str]] = ..., queue_indexes: _Optional[_Iterable[int]] = ..., deadline_seconds: _Optional[_Iterable[float]] = ..., minimum_run_seconds: _Optional[_Iterable[float]] = ..., server_devices: _Optional[_Iterable[int]] = ...) -> None: ...

class SimulationCurve(_message.Message):
    __slots__ = ("rows", "profile")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    rows: SimulationCurveRows
    profile: SimulationProfileCurve
    def __init__(self, rows: _Optional[_Union[SimulationCurveRows, _Mapping]] = ..., profile: _Optional[_Union[SimulationProfileCurve, _Mapping]] = ...) -> None: ...

class SimulationCurveRows(_message.Message):
    __slots__ = ("pool_indexes", "devices_counts", "samples_per_second")
    POOL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_COUNTS_FIELD_NUMBER: _ClassVar[int]
    SAMPLES_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    pool_indexes: _containers.RepeatedScalarFieldContainer[int]
    devices_counts: _containers.RepeatedScalarFieldContainer[int]
    samples_per_second: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, pool_indexes: _Optional[_Iterable[int]] = ..., devices_counts: _Optional[_Iterable[int]] = ..., samples_per_second: _Optional[_Iterable[float]] = ...) -> None: ...

class SimulationProfileCurve(_message.Message):
    __slots__ = ("profile", "allowed_devices", "settings", "allowed_pools")
    PROFILE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_DEVICES_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_POOLS_FIELD_NUMBER: _ClassVar[int]
    profile: _profile_pb2.ProfileSource
    allowed_devices: _containers.RepeatedScalarFieldContainer[int]
    settings: _configuration_pb2.ConfigurationSettings
    allowed_pools: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, profile: _Optional[_Union[_profile_pb2.ProfileSource, _Mapping]] = ..., allowed_devices: _Optional[_Iterable[int]] = ..., settings: _Optional[_Union[_configuration_pb2.ConfigurationSettings, _Mapping]] = ..., allowed_pools: _Optional[_Iterable[str]] = ...) -> None: ...

class SimulationSharedPairs(_message.Message):
    __slots__ = ("first_curve_indexes", "second_curve_indexes", "pool_indexes", "first_shares", "second_shares", "predicted_first_shares", "predicted_second_shares")
    FIRST_CURVE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    SECOND_CURVE_INDEXES_FIELD_NUMBER: _ClassVar[int]
    POOL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    FIRST_SHARES_FIELD_NUMBER: _ClassVar[int]
    SECOND_SHARES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_FIRST_SHARES_FIELD_NUMBER: _ClassVar[int]
    PREDICTED_SECOND_SHARES_FIELD_NUMBER: _ClassVar[int]
    first_curve_indexes: _containers.RepeatedScalarFieldContainer[int]
    second_curve_indexes: _containers.RepeatedScalarFieldContainer[int]
    pool_indexes: _containers.RepeatedScalarFieldContainer[int]
    first_shares: _containers.RepeatedScalarFieldContainer[float]
    second_shares: _containers.RepeatedScalarFieldContainer[float]
    predicted_first_shares: _containers.RepeatedScalarFieldContainer[float]
    predicted_second_shares: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, first_curve_indexes: _Optional[_Iterable[int]] = ..., second_curve_indexes: _Optional[_Iterable[int]] = ..., pool_indexes: _Optional[_Iterable[int]] = ..., first_shares: _Optional[_Iterable[float]] = ..., second_shares: _Optional[_Iterable[float]] = ..., predicted_first_shares: _Optional[_Iterable[float]] = ..., predicted_second_shares: _Optional[_Iterable[float]] = ...) -> None: ...

class SimulationSettings(_message.Message):
    __slots__ = ("clock", "round_seconds", "on_changes_only", "minimum_decision_interval_seconds", "restart_cost_seconds", "first_start_cost_seconds", "checkpoints", "failures", "early_stops", "prediction_error", "load_factor", "seed")
    CLOCK_FIELD_NUMBER: _ClassVar[int]
    ROUND_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ON_CHANGES_ONLY_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_DECISION_INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESTART_COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    FIRST_START_COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    CHECKPOINTS_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    EARLY_STOPS_FIELD_NUMBER: _ClassVar[int]
    PREDICTION_ERROR_FIELD_NUMBER: _ClassVar[int]
    LOAD_FACTOR_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    clock: SimulationClock
    round_seconds: float
    on_changes_only: bool
    minimum_decision_interval_seconds: float
    restart_cost_seconds: float
    first_start_cost_seconds: float
    checkpoints: SimulationCheckpoints
    failures: SimulationNodeFailures
    early_stops: SimulationEarlyStops
    prediction_error: SimulationPredictionError
    load_factor: float
    seed: int
    def __init__(self, clock: _Optional[_Union[SimulationClock, str]] = ..., round_seconds: _Optional[float] = ..., on_changes_only: bool = ..., minimum_decision_interval_seconds: _Optional[float] = ..., restart_cost_seconds: _Optional[float] = ..., first_start_cost_seconds: _Optional[float] = ..., checkpoints: _Optional[_Union[SimulationCheckpoints, _Mapping]] = ..., failures: _Optional[_Union[SimulationNodeFailures, _Mapping]] = ..., early_stops: _Optional[_Union[SimulationEarlyStops, _Mapping]] = ..., prediction_error: _Optional[_Union[SimulationPredictionError, _Mapping]] = ..., load_factor: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class SimulationCheckpoints(_message.Message):
    __slots__ = ("interval_seconds", "cost_seconds")
    INTERVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COST_SECONDS_FIELD_NUMBER: _ClassVar[int]
    interval_seconds: float
    cost_seconds: float
    def __init__(self, interval_seconds: _Optional[float] = ..., cost_seconds: _Optional[float] = ...) -> None: ...

class SimulationNodeFailures(_message.Message):
    __slots__ = ("mean_time_between_failures_seconds", "mean_repair_seconds")
    MEAN_TIME_BETWEEN_FAILURES_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEAN_REPAIR_SECONDS_FIELD_NUMBER: _ClassVar[int]
    mean_time_between_failures_seconds: float
    mean_repair_seconds: float
    def __init__(self, mean_time_between_failures_seconds: _Optional[float] = ..., mean_repair_seconds: _Optional[float] = ...) -> None: ...

class SimulationEarlyStops(_message.Message):
    __slots__ = ("probability", "progress_shares")
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_SHARES_FIELD_NUMBER: _ClassVar[int]
    probability: float
    progress_shares: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, probability: _Optional[float] = ..., progress_shares: _Optional[_Iterable[float]] = ...) -> None: ...

class SimulationPredictionError(_message.Message):
    __slots__ = ("job_sigma", "row_sigma")
    JOB_SIGMA_FIELD_NUMBER: _ClassVar[int]
    ROW_SIGMA_FIELD_NUMBER: _ClassVar[int]
    job_sigma: float
    row_sigma: float
    def __init__(self, job_sigma: _Optional[float] = ..., row_sigma: _Optional[float] = ...) -> None: ...

class SimulationProgress(_message.Message):
    __slots__ = ("repetitions_done_count", "repetitions_count", "jobs_count", "arrived_count", "finished_count", "now_seconds", "decisions_count")
    REPETITIONS_DONE_COUNT_FIELD_NUMBER: _ClassVar[int]
    REPETITIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    JOBS_COUNT_FIELD_NUMBER: _ClassVar[int]
    ARRIVED_COUNT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    NOW_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    repetitions_done_count: int
    repetitions_count: int
    jobs_count: int
    arrived_count: int
    finished_count: int
    now_seconds: float
    decisions_count: int
    def __init__(self, repetitions_done_count: _Optional[int] = ..., repetitions_count: _Optional[int] = ..., jobs_count: _Optional[int] = ..., arrived_count: _Optional[int] = ..., finished_count: _Optional[int] = ..., now_seconds: _Optional[float] = ..., decisions_count: _Optional[int] = ...) -> None: ...

class SimulationJobRows(_message.Message):
    __slots__ = ("seed", "job_ids", "arrival_seconds", "start_seconds", "completion_seconds", "slowdown_ratios", "finish_time_fairness_ratios", "done_samples", "restarts_counts")
    SEED_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    START_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SLOWDOWN_RATIOS_FIELD_NUMBER: _ClassVar[int]
    FINISH_TIME_FAIRNESS_RATIOS_FIELD_NUMBER: _ClassVar[int]
    DONE_SAMPLES_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_COUNTS_FIELD_NUMBER: _ClassVar[int]
    seed: int
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    arrival_seconds: _containers.RepeatedScalarFieldContainer[float]
    start_seconds: _containers.RepeatedScalarFieldContainer[float]
    completion_seconds: _containers.RepeatedScalarFieldContainer[float]
    slowdown_ratios: _containers.RepeatedScalarFieldContainer[float]
    finish_time_fairness_ratios: _containers.RepeatedScalarFieldContainer[float]
    done_samples: _containers.RepeatedScalarFieldContainer[float]
    restarts_counts: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, seed: _Optional[int] = ..., job_ids: _Optional[_Iterable[str]] = ..., arrival_seconds: _Optional[_Iterable[float]] = ..., start_seconds: _Optional[_Iterable[float]] = ..., completion_seconds: _Optional[_Iterable[float]] = ..., slowdown_ratios: _Optional[_Iterable[float]] = ..., finish_time_fairness_ratios: _Optional[_Iterable[float]] = ..., done_samples: _Optional[_Iterable[float]] = ..., restarts_counts: _Optional[_Iterable[int]] = ...) -> None: ...

class SimulationTimelineRows(_message.Message):
    __slots__ = ("seed", "job_ids", "pool_indexes", "devices_counts", "begin_seconds", "end_seconds")
    SEED_FIELD_NUMBER: _ClassVar[int]
    JOB_IDS_FIELD_NUMBER: _ClassVar[int]
    POOL_INDEXES_FIELD_NUMBER: _ClassVar[int]
    DEVICES_COUNTS_FIELD_NUMBER: _ClassVar[int]
    BEGIN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    END_SECONDS_FIELD_NUMBER: _ClassVar[int]
    seed: int
    job_ids: _containers.RepeatedScalarFieldContainer[str]
    pool_indexes: _containers.RepeatedScalarFieldContainer[int]
    devices_counts: _containers.RepeatedScalarFieldContainer[int]
    begin_seconds: _containers.RepeatedScalarFieldContainer[float]
    end_seconds: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, seed: _Optional[int] = ..., job_ids: _Optional[_Iterable[str]] = ..., pool_indexes: _Optional[_Iterable[int]] = ..., devices_counts: _Optional[_Iterable[int]] = ..., begin_seconds: _Optional[_Iterable[float]] = ..., end_seconds: _Optional[_Iterable[float]] = ...) -> None: ...

class SimulationRun(_message.Message):
    __slots__ = ("seed", "jobs_count", "finished_count", "complete", "average_jct_seconds", "median_jct_seconds", "p99_jct_seconds", "average_waiting_seconds", "average_slowdown_ratio", "p99_slowdown_ratio", "average_finish_time_fairness_ratio", "worst_finish_time_fairness_ratio", "makespan_seconds", "utilization_ratio", "restarts_per_job_ratio", "busy_device_seconds", "restart_device_seconds", "lost_device_seconds", "deadlines_count", "deadlines_missed_count", "decisions_count", "decision_seconds", "longest_decision_seconds", "wall_seconds")
    SEED_FIELD_NUMBER: _ClassVar[int]
    JOBS_COUNT_FIELD_NUMBER: _ClassVar[int]
    FINISHED_COUNT_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_JCT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    MEDIAN_JCT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    P99_JCT_SECONDS_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_WAITING_SECONDS_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    P99_SLOWDOWN_RATIO_FIELD_NUMBER: _ClassVar[int]
    AVERAGE_FINISH_TIME_FAIRNESS_RATIO_FIELD_NUMBER: _ClassVar[int]
    WORST_FINISH_TIME_FAIRNESS_RATIO_FIELD_NUMBER: _ClassVar[int]
    MAKESPAN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    UTILIZATION_RATIO_FIELD_NUMBER: _ClassVar[int]
    RESTARTS_PER_JOB_RATIO_FIELD_NUMBER: _ClassVar[int]
    BUSY_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    RESTART_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LOST_DEVICE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DEADLINES_COUNT_FIELD_NUMBER: _ClassVar[int]
    DEADLINES_MISSED_COUNT_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_COUNT_FIELD_NUMBER: _ClassVar[int]
    DECISION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    LONGEST_DECISION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    WALL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    seed: int
    jobs_count: int
    finished_count: int
    complete: bool
    average_jct_seconds: float
    median_jct_seconds: float
    p99_jct_seconds: float
    average_waiting_seconds: float
    average_slowdown_ratio: float
    p99_slowdown_ratio: float
    average_finish_time_fairness_ratio: float
    worst_finish_time_fairness_ratio: float
    makespan_seconds: float
    utilization_ratio: float
    restarts_per_job_ratio: float
    busy_device_seconds: float
    restart_device_seconds: float
    lost_device_seconds: float
    deadlines_count: int
    deadlines_missed_count: int
    decisions_count: int
    decision_seconds: float
    longest_decision_seconds: float
    wall_seconds: float
    def __init__(self, seed: _Optional[int] = ..., jobs_count: _Optional[int] = ..., finished_count: _Optional[int] = ..., complete: bool = ..., average_jct_seconds: _Optional[float] = ..., median_jct_seconds: _Optional[float] = ..., p99_jct_seconds: _Optional[float] = ..., average_waiting_seconds: _Optional[float] = ..., average_slowdown_ratio: _Optional[float] = ..., p99_slowdown_ratio: _Optional[float] = ..., average_finish_time_fairness_ratio: _Optional[float] = ..., worst_finish_time_fairness_ratio: _Optional[float] = ..., makespan_seconds: _Optional[float] = ..., utilization_ratio: _Optional[float] = ..., restarts_per_job_ratio: _Optional[float] = ..., busy_device_seconds: _Optional[float] = ..., restart_device_seconds: _Optional[float] = ..., lost_device_seconds: _Optional[float] = ..., deadlines_count: _Optional[int] = ..., deadlines_missed_count: _Optional[int] = ..., decisions_count: _Optional[int] = ..., decision_seconds: _Optional[float] = ..., longest_decision_seconds: _Optional[float] = ..., wall_seconds: _Optional[float] = ...) -> None: ...

class SimulationFigure(_message.Message):
    __slots__ = ("measure", "mean", "lower", "upper")
    MEASURE_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    LOWER_FIELD_NUMBER: _ClassVar[int]
    UPPER_FIELD_NUMBER: _ClassVar[int]
    measure: SimulationMeasure
    mean: float
    lower: float
    upper: float
    def __init__(self, measure: _Optional[_Union[SimulationMeasure, str]] = ..., mean: _Optional[float] = ..., lower: _Optional[float] = ..., upper: _Optional[float] = ...) -> None: ...

class SimulationResult(_message.Message):
    __slots__ = ("runs", "figures", "policy", "policy_version", "complete", "bases")
    RUNS_FIELD_NUMBER: _ClassVar[int]
    FIGURES_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    POLICY_VERSION_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    BASES_FIELD_NUMBER: _ClassVar[int]
    runs: _containers.RepeatedCompositeFieldContainer[SimulationRun]
    figures: _containers.RepeatedCompositeFieldContainer[SimulationFigure]
    policy: str
    policy_version: str
    complete: bool
    bases: _containers.RepeatedCompositeFieldContainer[_prediction_pb2.Basis]
    def __init__(self, runs: _Optional[_Iterable[_Union[SimulationRun, _Mapping]]] = ..., figures: _Optional[_Iterable[_Union[SimulationFigure, _Mapping]]] = ..., policy: _Optional[str] = ..., policy_version: _Optional[str] = ..., complete: bool = ..., bases: _Optional[_Iterable[_Union[_prediction_pb2.Basis, _Mapping]]] = ...) -> None: ...
