"""Simulations: jobs over time, their curves, and what a policy would have made of them.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.configuration import ConfigurationSettings
from nodewise_values.v1.prediction import Basis
from nodewise_values.v1.profile import ProfileSource
from nodewise_values.value import LazyValue, Value, Word

__all__ = [
    "SimulationCheckpoints",
    "SimulationClock",
    "SimulationCurve",
    "SimulationCurveRows",
    "SimulationEarlyStops",
    "SimulationFigure",
    "SimulationJobRows",
    "SimulationJobs",
    "SimulationMeasure",
    "SimulationNodeFailures",
    "SimulationPredictionError",
    "SimulationProfileCurve",
    "SimulationProgress",
    "SimulationResult",
    "SimulationRun",
    "SimulationSettings",
    "SimulationSharedPairs",
    "SimulationTimelineRows",
]


class SimulationClock(Word):
    """When the policy is asked, and when devices change hands."""

    EVENTS = "events"
    """At every arrival, completion, failure and repair; devices are free at once."""
    FIXED_ROUNDS = "fixed_rounds"
    """At the multiples of round_seconds. Completions are timed exactly; devices come back at the round's end."""
    DRAINED_ROUNDS = "drained_rounds"
    """Each running job gets at most round_seconds of work, in whole steps.

    Each running job gets at most round_seconds of work, in whole steps; the next round begins when the last of them is
    through with its part.
    """


class SimulationMeasure(Word):
    """What a figure is of: the fields of SimulationRun that are numbers."""

    JOBS_COUNT = "jobs_count"
    """Jobs that arrived."""
    FINISHED_COUNT = "finished_count"
    """Jobs that completed; the others have no curve, were never granted anything, or the time was over."""
    AVERAGE_JCT_SECONDS = "average_jct_seconds"
    """Mean response time: completion minus arrival.

    This and all that follows of response times is absent where no job finished.
    """
    MEDIAN_JCT_SECONDS = "median_jct_seconds"
    """Median response time."""
    P99_JCT_SECONDS = "p99_jct_seconds"
    """99th percentile of response times."""
    AVERAGE_WAITING_SECONDS = "average_waiting_seconds"
    """Mean time from arrival to first start."""
    AVERAGE_SLOWDOWN_RATIO = "average_slowdown_ratio"
    """Mean of response time over the time alone on the fastest row."""
    P99_SLOWDOWN_RATIO = "p99_slowdown_ratio"
    """99th percentile of the same."""
    AVERAGE_FINISH_TIME_FAIRNESS_RATIO = "average_finish_time_fairness_ratio"
    """Mean of response time over that on an exclusive equal share. Above 1 = jobs would rather have had their share."""
    WORST_FINISH_TIME_FAIRNESS_RATIO = "worst_finish_time_fairness_ratio"
    """The highest of the same."""
    MAKESPAN_SECONDS = "makespan_seconds"
    """First arrival to last completion."""
    UTILIZATION_RATIO = "utilization_ratio"
    """Share of the available device-seconds that were busy."""
    RESTARTS_PER_JOB_RATIO = "restarts_per_job_ratio"
    """Restarts of a job, on average."""
    BUSY_DEVICE_SECONDS = "busy_device_seconds"
    """Device-seconds of runs, restarts and checkpoints."""
    RESTART_DEVICE_SECONDS = "restart_device_seconds"
    """Of these without progress after changes."""
    LOST_DEVICE_SECONDS = "lost_device_seconds"
    """Of these undone by failures."""
    DEADLINES_COUNT = "deadlines_count"
    """Jobs with a deadline that finished."""
    DEADLINES_MISSED_COUNT = "deadlines_missed_count"
    """Of these late."""
    DECISIONS_COUNT = "decisions_count"
    """Decisions of the policy."""
    DECISION_SECONDS = "decision_seconds"
    """Wall time in the policy, seconds."""
    LONGEST_DECISION_SECONDS = "longest_decision_seconds"
    """Wall time of its longest decision."""
    WALL_SECONDS = "wall_seconds"
    """Wall time of the repetition."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationJobs(Value):
    """Jobs in columns.

    A column is empty (the default, where there is one), has one entry for all jobs, or one per job.
    """

    count: int = 0
    """How many jobs there are."""
    job_ids: tuple[str, ...] = ()
    """Names, unique. Empty = numbered from 0 in order of arrival."""
    arrival_seconds: tuple[float, ...] = ()
    """When they arrive, ascending, seconds of simulated time. No default."""
    work_samples: tuple[float, ...] = ()
    """Work that the policy is told of, samples (or any other unit that the curve's rates are per second of).

    No default.
    """
    curve_indexes: tuple[int, ...] = ()
    """True curves, as entries of SimulateRequest.curves; one without rows is that of jobs that can never run.

    No default.
    """
    predicted_curve_indexes: tuple[int, ...] = ()
    """Curves as the policy sees them, as entries of SimulateRequest.curves. Empty = the true ones."""
    requested_devices: tuple[int, ...] = ()
    """Worker devices asked for; used by policies that do not choose. Empty or 0 for a job: the fewest of the curve."""
    rigid: tuple[bool, ...] = ()
    """Whether the job runs on the requested devices only. Default false."""
    min_devices: tuple[int, ...] = ()
    """Fewest worker devices. Empty or 0 for a job: those of the curve."""
    max_devices: tuple[int, ...] = ()
    """Most worker devices. Empty or 0 for a job: those of the curve."""
    stop_samples: tuple[float, ...] = ()
    """True work, hidden from the policy, at which the job ends early, samples. Empty or 0 for a job: all of it."""
    step_samples: tuple[float, ...] = ()
    """Work is indivisible below this where rounds deal out whole steps, samples. Empty or 0 for a job: it flows."""
    restart_cost_seconds: tuple[float, ...] = ()
    """Seconds without progress after a change of devices. Empty = as the settings say."""
    weights: tuple[float, ...] = ()
    """Claims relative to others. Default 1."""
    queue_names: tuple[str, ...] = ()
    """Names of queues."""
    queue_indexes: tuple[int, ...] = ()
    """Queues, as entries of queue_names, of which the empty name is that of jobs in no queue.

    Empty = no job is in one.
    """
    deadline_seconds: tuple[float, ...] = ()
    """When the job must be done, seconds of simulated time. Empty or 0 for a job: no deadline."""
    minimum_run_seconds: tuple[float, ...] = ()
    """Seconds that an allocation lasts at least. Default 0."""
    server_devices: tuple[int, ...] = ()
    """Devices besides the workers, e.g. for a parameter server. Default 0."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCurve(Value):
    """Throughput over devices, of any number of jobs."""

    rows: SimulationCurveRows | None = None
    """Given, in columns."""
    profile: SimulationProfileCurve | None = None
    """Predicted from what is known of the job, as Schedule would."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCurveRows(Value):
    """Rows of a curve, in columns. No rows = jobs that can never run."""

    pool_indexes: tuple[int, ...] = ()
    """Pools, as entries of the cluster; one entry per row, and each pool's devices once."""
    devices_counts: tuple[int, ...] = ()
    """Worker devices of each row."""
    samples_per_second: tuple[float, ...] = ()
    """Throughput of each row, samples per second. Above 0."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationProfileCurve(Value):
    """A curve that is predicted."""

    profile: ProfileSource | None = None
    """What is known of the job."""
    allowed_devices: tuple[int, ...] = ()
    """Numbers of worker devices. Empty = every number that the cluster has."""
    settings: ConfigurationSettings | None = None
    """How the job runs, as in ScheduleJob. Absent = as in its evidence."""
    allowed_pools: tuple[str, ...] = ()
    """Names of the pools that it may run in. Empty = all."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationSharedPairs(Value):
    """Which jobs may share a device, in columns, one row for a pair of curves.

    Which jobs may share a device, in columns, one row for a pair of curves: jobs of these curves with one worker device
    each and no servers. Columns of shares have one entry per row.
    """

    first_curve_indexes: tuple[int, ...] = ()
    """Curves of the first job, as entries of SimulateRequest.curves."""
    second_curve_indexes: tuple[int, ...] = ()
    """Curves of the second job; may be the first's: two jobs of one curve."""
    pool_indexes: tuple[int, ...] = ()
    """Pools, as entries of the cluster. Empty = every pool; else one per row."""
    first_shares: tuple[float, ...] = ()
    """Shares of its solo speed that the first really keeps, above 0."""
    second_shares: tuple[float, ...] = ()
    """Shares that the second keeps."""
    predicted_first_shares: tuple[float, ...] = ()
    """Shares of the first as the policy sees them. Empty = the true ones."""
    predicted_second_shares: tuple[float, ...] = ()
    """Shares of the second as the policy sees them. Empty = the true ones."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationSettings(Value):
    """How time passes, what changes cost, and what chance brings."""

    clock: SimulationClock | None = None
    """When the policy is asked."""
    round_seconds: float | None = None
    """Length of a round, seconds. Absent = 60."""
    on_changes_only: bool = False
    """Ask the policy only when a job arrived or ended, or a node failed or came back, since it was asked last."""
    minimum_decision_interval_seconds: float = 0.0
    """Seconds between two decisions at least, while something runs."""
    restart_cost_seconds: float = 0.0
    """Seconds without progress when a job's devices change, and when it resumes after a preemption."""
    first_start_cost_seconds: float = 0.0
    """The same when a job starts for the first time."""
    checkpoints: SimulationCheckpoints | None = None
    """Jobs save their state. Absent = they do not: a failure undoes a run."""
    failures: SimulationNodeFailures | None = None
    """Nodes fail. Absent = they do not."""
    early_stops: SimulationEarlyStops | None = None
    """Jobs end early, which the policy does not know. Absent = they do not."""
    prediction_error: SimulationPredictionError | None = None
    """What the policy sees of the curves is wrong by chance. Absent = it sees them as they are given."""
    load_factor: float | None = None
    """Inter-arrival times are divided by it. Absent = 1."""
    seed: int = 0
    """Of failures.

    Of failures, early stops and prediction errors, each with a stream of its own, and of a policy that draws, unless
    its parameter seed is given. Repetitions count on from it.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCheckpoints(Value):
    """A running job saves its state."""

    interval_seconds: float = 0.0
    """Each so many seconds of progress."""
    cost_seconds: float = 0.0
    """Standing still for so many seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationNodeFailures(Value):
    """Nodes fail independently of each other; both times are exponential."""

    mean_time_between_failures_seconds: float = 0.0
    """Mean time to the failure of a node that is up, seconds."""
    mean_repair_seconds: float = 0.0
    """Mean time until it is back, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationEarlyStops(Value):
    """Jobs that end before their declared work is done."""

    probability: float = 0.0
    """Of each job, 0 to 1."""
    progress_shares: tuple[float, ...] = ()
    """Quantiles, at equal distances from 0 to 1, of the share of the work at which such a job ends; linear in between.

    Empty = uniform.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationPredictionError(Value):
    """Predicted = true throughput times exp(job_sigma z + row_sigma z').

    Predicted = true throughput times exp(job_sigma z + row_sigma z'), z once per job, z' per row, standard normal.
    """

    job_sigma: float = 0.0
    """Makes whole curves too high or too low: wrong sizes of jobs."""
    row_sigma: float = 0.0
    """Bends curves: wrong choices of counts."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationProgress(Value):
    """How far a simulation is."""

    repetitions_done_count: int = 0
    """Repetitions that are done."""
    repetitions_count: int = 0
    """Repetitions asked for."""
    jobs_count: int = 0
    """Jobs of one repetition."""
    arrived_count: int = 0
    """Of the running repetition: jobs that arrived."""
    finished_count: int = 0
    """Jobs that finished."""
    now_seconds: float = 0.0
    """Simulated time, seconds."""
    decisions_count: int = 0
    """Decisions of the policy."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationJobRows(LazyValue):
    """What became of some of the finished jobs, in columns, by arrival."""

    seed: int = 0
    """The repetition's seed."""
    job_ids: tuple[str, ...] = ()
    """Names."""
    arrival_seconds: tuple[float, ...] = ()
    """When they arrived, seconds of simulated time."""
    start_seconds: tuple[float, ...] = ()
    """When they were first given devices."""
    completion_seconds: tuple[float, ...] = ()
    """When they completed."""
    slowdown_ratios: tuple[float, ...] = ()
    """Response time over the time that the job takes alone on its fastest row."""
    finish_time_fairness_ratios: tuple[float, ...] = ()
    """Response time over the time that it takes on an exclusive equal share of the cluster."""
    done_samples: tuple[float, ...] = ()
    """Work done, samples."""
    restarts_counts: tuple[int, ...] = ()
    """Changes of devices and resumptions."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationTimelineRows(LazyValue):
    """Who held what when: some of the stretches, in columns, by their end.

    Of two jobs that share a device, both hold it.
    """

    seed: int = 0
    """The repetition's seed."""
    job_ids: tuple[str, ...] = ()
    """Jobs."""
    pool_indexes: tuple[int, ...] = ()
    """Pools, as entries of the cluster."""
    devices_counts: tuple[int, ...] = ()
    """Devices held, those of servers included."""
    begin_seconds: tuple[float, ...] = ()
    """From when, seconds of simulated time."""
    end_seconds: tuple[float, ...] = ()
    """Until when."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationRun(Value):
    """One repetition."""

    seed: int = 0
    """Its seed."""
    jobs_count: int = 0
    """Jobs that arrived."""
    finished_count: int = 0
    """Jobs that completed; the others have no curve, were never granted anything, or the time was over."""
    complete: bool = False
    """False = the call's time was over before the last job was done."""
    average_jct_seconds: float | None = None
    """Mean response time: completion minus arrival.

    This and all that follows of response times is absent where no job finished.
    """
    median_jct_seconds: float | None = None
    """Median response time."""
    p99_jct_seconds: float | None = None
    """99th percentile of response times."""
    average_waiting_seconds: float | None = None
    """Mean time from arrival to first start."""
    average_slowdown_ratio: float | None = None
    """Mean of response time over the time alone on the fastest row."""
    p99_slowdown_ratio: float | None = None
    """99th percentile of the same."""
    average_finish_time_fairness_ratio: float | None = None
    """Mean of response time over that on an exclusive equal share. Above 1 = jobs would rather have had their share."""
    worst_finish_time_fairness_ratio: float | None = None
    """The highest of the same."""
    makespan_seconds: float | None = None
    """First arrival to last completion."""
    utilization_ratio: float | None = None
    """Share of the available device-seconds that were busy."""
    restarts_per_job_ratio: float | None = None
    """Restarts of a job, on average."""
    busy_device_seconds: float = 0.0
    """Device-seconds of runs, restarts and checkpoints."""
    restart_device_seconds: float = 0.0
    """Of these without progress after changes."""
    lost_device_seconds: float = 0.0
    """Of these undone by failures."""
    deadlines_count: int = 0
    """Jobs with a deadline that finished."""
    deadlines_missed_count: int = 0
    """Of these late."""
    decisions_count: int = 0
    """Decisions of the policy."""
    decision_seconds: float = 0.0
    """Wall time in the policy, seconds."""
    longest_decision_seconds: float = 0.0
    """Wall time of its longest decision."""
    wall_seconds: float = 0.0
    """Wall time of the repetition."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationFigure(Value):
    """A figure over all repetitions."""

    measure: SimulationMeasure | None = None
    """Of what."""
    mean: float = 0.0
    """Mean over the repetitions that have it."""
    lower: float | None = None
    """Bounds of its 95 % confidence interval, Student's t. Absent = fewer than two repetitions have it."""
    upper: float | None = None
    """The upper bound."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationResult(Value):
    """The answer of a simulation."""

    runs: tuple[SimulationRun, ...] = ()
    """One per repetition, in the order of seeds."""
    figures: tuple[SimulationFigure, ...] = ()
    """Figures over all of them."""
    policy: str = ""
    """The policy."""
    policy_version: str = ""
    """Its version."""
    complete: bool = False
    """False = the call's time was over first: repetitions are missing, or the last one was cut."""
    bases: tuple[Basis, ...] = ()
    """What predicted curves rest on, without repetition."""
