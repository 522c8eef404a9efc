"""Simulations: jobs over time, their throughput curves, and the results of a policy.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
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
    """When the policy is called, and when devices are reallocated."""

    EVENTS = "events"
    """At every arrival, completion, failure and repair. Devices are free at once."""
    FIXED_ROUNDS = "fixed_rounds"
    """At the multiples of round_seconds.

    Completions are timed exactly, but their devices are free only at the end of the round.
    """
    DRAINED_ROUNDS = "drained_rounds"
    """Each running job gets at most round_seconds of work, in whole steps.

    The next round begins when the last job has finished its part.
    """


class SimulationMeasure(Word):
    """The quantity of a figure. Each is a numeric field of SimulationRun."""

    JOBS_COUNT = "jobs_count"
    """Jobs that arrived."""
    FINISHED_COUNT = "finished_count"
    """Jobs that completed. The others have no curve, never got devices, or did not end before the call did."""
    AVERAGE_JCT_SECONDS = "average_jct_seconds"
    """Mean response time, completion minus arrival. All values about response times are absent if no job finished."""
    MEDIAN_JCT_SECONDS = "median_jct_seconds"
    """Median response time."""
    P99_JCT_SECONDS = "p99_jct_seconds"
    """99th percentile of response times."""
    AVERAGE_WAITING_SECONDS = "average_waiting_seconds"
    """Mean time from arrival to first start."""
    AVERAGE_SLOWDOWN_RATIO = "average_slowdown_ratio"
    """Mean of response time divided by the time alone on the fastest row."""
    P99_SLOWDOWN_RATIO = "p99_slowdown_ratio"
    """99th percentile of that ratio."""
    AVERAGE_FINISH_TIME_FAIRNESS_RATIO = "average_finish_time_fairness_ratio"
    """Mean of response time divided by that on an exclusive equal share of the cluster.

    Above 1 = the jobs would be faster with such a share.
    """
    WORST_FINISH_TIME_FAIRNESS_RATIO = "worst_finish_time_fairness_ratio"
    """Highest value of that ratio."""
    MAKESPAN_SECONDS = "makespan_seconds"
    """Seconds from the first arrival to the last completion."""
    UTILIZATION_RATIO = "utilization_ratio"
    """Share of the available device-seconds that were busy."""
    RESTARTS_PER_JOB_RATIO = "restarts_per_job_ratio"
    """Mean number of restarts per job."""
    BUSY_DEVICE_SECONDS = "busy_device_seconds"
    """Device-seconds of runs, restarts and checkpoints."""
    RESTART_DEVICE_SECONDS = "restart_device_seconds"
    """Device-seconds of these without progress, after changes."""
    LOST_DEVICE_SECONDS = "lost_device_seconds"
    """Device-seconds of these that failures undid."""
    DEADLINES_COUNT = "deadlines_count"
    """Jobs with a deadline that finished."""
    DEADLINES_MISSED_COUNT = "deadlines_missed_count"
    """Jobs of these that finished late."""
    DECISIONS_COUNT = "decisions_count"
    """Decisions of the policy."""
    DECISION_SECONDS = "decision_seconds"
    """Wall time of the policy's decisions, seconds."""
    LONGEST_DECISION_SECONDS = "longest_decision_seconds"
    """Wall time of the longest decision, seconds."""
    WALL_SECONDS = "wall_seconds"
    """Wall time of the repetition, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationJobs(Value):
    """Jobs as columns.

    A column is empty (the default, where there is one), has one entry for all jobs, or one per job.
    """

    count: int = 0
    """Number of jobs."""
    job_ids: tuple[str, ...] = ()
    """Names, unique. Empty = numbered from 0 in order of arrival."""
    arrival_seconds: tuple[float, ...] = ()
    """When each job arrives, ascending, seconds of simulated time. No default."""
    work_samples: tuple[float, ...] = ()
    """Work that the job declares to the policy, samples (or any other unit, if the curve's rates are per second of it).

    No default.
    """
    curve_indexes: tuple[int, ...] = ()
    """True curve of each job, as an index into SimulateRequest.curves.

    A job whose curve has no rows can never run. No default.
    """
    predicted_curve_indexes: tuple[int, ...] = ()
    """Curve that the policy sees for each job, as an index into SimulateRequest.curves. Empty = the true curves."""
    requested_devices: tuple[int, ...] = ()
    """Worker devices that the job requests, for policies that do not choose a number.

    Empty or 0 for a job: the fewest of its curve.
    """
    rigid: tuple[bool, ...] = ()
    """Whether the job runs only on the requested number of devices. Default false."""
    min_devices: tuple[int, ...] = ()
    """Fewest worker devices. Empty or 0 for a job: the fewest of its curve."""
    max_devices: tuple[int, ...] = ()
    """Most worker devices. Empty or 0 for a job: the most of its curve."""
    stop_samples: tuple[float, ...] = ()
    """Work after which the job ends early, samples.

    The policy does not see it. Empty or 0 for a job: the job does all of its work.
    """
    step_samples: tuple[float, ...] = ()
    """Samples of one step: rounds that allocate whole steps do not divide work any further.

    Empty or 0 for a job: work is divided freely.
    """
    restart_cost_seconds: tuple[float, ...] = ()
    """Seconds without progress after a change of devices. Empty = the value in the settings."""
    weights: tuple[float, ...] = ()
    """Priority of each job relative to others. Default 1."""
    queue_names: tuple[str, ...] = ()
    """Dictionary of queue names."""
    queue_indexes: tuple[int, ...] = ()
    """Queue of each job, as an index into queue_names.

    The empty name stands for jobs in no queue. Empty = no job is in a queue.
    """
    deadline_seconds: tuple[float, ...] = ()
    """When each job must be done, seconds of simulated time. Empty or 0 for a job: no deadline."""
    minimum_run_seconds: tuple[float, ...] = ()
    """Least seconds that an allocation lasts. Default 0."""
    server_devices: tuple[int, ...] = ()
    """Devices that each job needs in addition to its workers, e.g. for a parameter server. Default 0."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCurve(Value):
    """Throughput by number of devices. Any number of jobs may use the curve."""

    rows: SimulationCurveRows | None = None
    """Stated rows, as columns."""
    profile: SimulationProfileCurve | None = None
    """A curve that is predicted from what is known of a job, as Schedule does."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCurveRows(Value):
    """Rows of a curve, as columns. No rows = jobs with this curve can never run."""

    pool_indexes: tuple[int, ...] = ()
    """Pool of each row, as an index into the cluster's pools. A pool has at most one row for each number of devices."""
    devices_counts: tuple[int, ...] = ()
    """Number of worker devices of each row."""
    samples_per_second: tuple[float, ...] = ()
    """Throughput of each row, samples per second. Above 0."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationProfileCurve(Value):
    """A curve that is predicted from a profile."""

    profile: ProfileSource | None = None
    """What is known of the job."""
    allowed_devices: tuple[int, ...] = ()
    """Numbers of worker devices. Empty = every number up to those of the cluster."""
    settings: ConfigurationSettings | None = None
    """How the job runs, as in ScheduleJob. Absent = as in the job's evidence."""
    allowed_pools: tuple[str, ...] = ()
    """Names of the pools that the job may run in. Empty = all pools."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationSharedPairs(Value):
    """Which jobs may share a device, as columns with one row for each pair of curves.

    A row applies to jobs of these curves that have one worker device each and no servers. Columns of shares have one
    entry per row.
    """

    first_curve_indexes: tuple[int, ...] = ()
    """Curve of the first job, as an index into SimulateRequest.curves."""
    second_curve_indexes: tuple[int, ...] = ()
    """Curve of the second job. It may be the same as the first: two jobs with one curve."""
    pool_indexes: tuple[int, ...] = ()
    """Pool of each row, as an index into the cluster's pools. Empty = every pool; otherwise one entry per row."""
    first_shares: tuple[float, ...] = ()
    """True share of its solo speed that the first job keeps, above 0."""
    second_shares: tuple[float, ...] = ()
    """True share of its solo speed that the second job keeps, above 0."""
    predicted_first_shares: tuple[float, ...] = ()
    """Share of the first job that the policy sees. Empty = the true shares."""
    predicted_second_shares: tuple[float, ...] = ()
    """Share of the second job that the policy sees. Empty = the true shares."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationSettings(Value):
    """Clock, costs of changes, and random events of a simulation."""

    clock: SimulationClock | None = None
    """When the policy is called."""
    round_seconds: float | None = None
    """Length of a round, seconds. Absent = 60."""
    on_changes_only: bool = False
    """Whether to call the policy only if a job arrived or ended.

    Whether to call the policy only if a job arrived or ended, or a node failed or was repaired, since the last call.
    """
    minimum_decision_interval_seconds: float = 0.0
    """Least seconds between two decisions while any job runs."""
    restart_cost_seconds: float = 0.0
    """Seconds without progress when a job's devices change, and when a job resumes after a preemption."""
    first_start_cost_seconds: float = 0.0
    """Seconds without progress when a job starts for the first time."""
    checkpoints: SimulationCheckpoints | None = None
    """Checkpoints of jobs. Absent = jobs save none, and a failure undoes the whole run."""
    failures: SimulationNodeFailures | None = None
    """Failures of nodes. Absent = nodes do not fail."""
    early_stops: SimulationEarlyStops | None = None
    """Jobs that end early, which the policy does not know. Absent = no job ends early."""
    prediction_error: SimulationPredictionError | None = None
    """Random errors in the curves that the policy sees. Absent = no errors."""
    load_factor: float | None = None
    """Factor that inter-arrival times are divided by. Absent = 1."""
    seed: int = 0
    """Seed.

    Failures, early stops and prediction errors each have a random stream of their own. It also seeds a policy that uses
    random numbers, unless the policy's parameter seed is given. Each repetition increases it by 1.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationCheckpoints(Value):
    """Checkpoints of a running job."""

    interval_seconds: float = 0.0
    """Seconds of progress between two checkpoints."""
    cost_seconds: float = 0.0
    """Seconds without progress while a checkpoint is saved."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationNodeFailures(Value):
    """Failures of nodes. Nodes fail independently of each other, and both times are exponentially distributed."""

    mean_time_between_failures_seconds: float = 0.0
    """Mean seconds until a running node fails."""
    mean_repair_seconds: float = 0.0
    """Mean seconds until a failed node is repaired."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationEarlyStops(Value):
    """Jobs that end before their declared work is done."""

    probability: float = 0.0
    """Probability that a job ends early, 0 to 1."""
    progress_shares: tuple[float, ...] = ()
    """Quantiles of the share of the work after which such a job ends.

    Quantiles of the share of the work after which such a job ends, at equal distances from 0 to 1, linear in between.
    Empty = uniform.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationPredictionError(Value):
    """Errors of the curves that the policy sees.

    Errors of the curves that the policy sees: predicted throughput = true throughput times exp(job_sigma z + row_sigma
    z'), where z is drawn once per job and z' per row, both standard normal.
    """

    job_sigma: float = 0.0
    """Error of whole curves, which makes jobs look too large or too small."""
    row_sigma: float = 0.0
    """Error of single rows, which leads to wrong numbers of devices."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationProgress(Value):
    """Progress of a simulation."""

    repetitions_done_count: int = 0
    """Repetitions that are done."""
    repetitions_count: int = 0
    """Repetitions in total."""
    jobs_count: int = 0
    """Jobs of one repetition."""
    arrived_count: int = 0
    """Jobs that have arrived in the running repetition."""
    finished_count: int = 0
    """Jobs that have finished in the running repetition."""
    now_seconds: float = 0.0
    """Simulated time of the running repetition, seconds."""
    decisions_count: int = 0
    """Decisions of the policy in the running repetition."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationJobRows(LazyValue):
    """Some of the finished jobs, as columns, in order of arrival."""

    seed: int = 0
    """Seed of the repetition."""
    job_ids: tuple[str, ...] = ()
    """Names of the jobs."""
    arrival_seconds: tuple[float, ...] = ()
    """When each job arrived, seconds of simulated time."""
    start_seconds: tuple[float, ...] = ()
    """When each job was first given devices, seconds of simulated time."""
    completion_seconds: tuple[float, ...] = ()
    """When each job completed, seconds of simulated time."""
    slowdown_ratios: tuple[float, ...] = ()
    """Response time divided by the time that the job takes alone on its fastest row."""
    finish_time_fairness_ratios: tuple[float, ...] = ()
    """Response time divided by the time that the job takes on an exclusive equal share of the cluster."""
    done_samples: tuple[float, ...] = ()
    """Work done, samples."""
    restarts_counts: tuple[int, ...] = ()
    """Number of changes of devices and of resumptions."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationTimelineRows(LazyValue):
    """Part of the timeline: which job held which devices, as columns, ordered by end.

    If two jobs share a device, both have a row.
    """

    seed: int = 0
    """Seed of the repetition."""
    job_ids: tuple[str, ...] = ()
    """Names of the jobs."""
    pool_indexes: tuple[int, ...] = ()
    """Pool of each row, as an index into the cluster's pools."""
    devices_counts: tuple[int, ...] = ()
    """Devices held, including those of servers."""
    begin_seconds: tuple[float, ...] = ()
    """Begin of each row, seconds of simulated time."""
    end_seconds: tuple[float, ...] = ()
    """End of each row, seconds of simulated time."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationRun(Value):
    """One repetition."""

    seed: int = 0
    """Seed of the repetition."""
    jobs_count: int = 0
    """Jobs that arrived."""
    finished_count: int = 0
    """Jobs that completed. The others have no curve, never got devices, or did not end before the call did."""
    complete: bool = False
    """Whether the repetition is complete. False = the call's time ended before the last job was done."""
    average_jct_seconds: float | None = None
    """Mean response time, completion minus arrival. All fields about response times are absent if no job finished."""
    median_jct_seconds: float | None = None
    """Median response time."""
    p99_jct_seconds: float | None = None
    """99th percentile of response times."""
    average_waiting_seconds: float | None = None
    """Mean time from arrival to first start."""
    average_slowdown_ratio: float | None = None
    """Mean of response time divided by the time alone on the fastest row."""
    p99_slowdown_ratio: float | None = None
    """99th percentile of that ratio."""
    average_finish_time_fairness_ratio: float | None = None
    """Mean of response time divided by that on an exclusive equal share of the cluster.

    Above 1 = the jobs would be faster with such a share.
    """
    worst_finish_time_fairness_ratio: float | None = None
    """Highest value of that ratio."""
    makespan_seconds: float | None = None
    """Seconds from the first arrival to the last completion."""
    utilization_ratio: float | None = None
    """Share of the available device-seconds that were busy."""
    restarts_per_job_ratio: float | None = None
    """Mean number of restarts per job."""
    busy_device_seconds: float = 0.0
    """Device-seconds of runs, restarts and checkpoints."""
    restart_device_seconds: float = 0.0
    """Device-seconds of these without progress, after changes."""
    lost_device_seconds: float = 0.0
    """Device-seconds of these that failures undid."""
    deadlines_count: int = 0
    """Jobs with a deadline that finished."""
    deadlines_missed_count: int = 0
    """Jobs of these that finished late."""
    decisions_count: int = 0
    """Decisions of the policy."""
    decision_seconds: float = 0.0
    """Wall time of the policy's decisions, seconds."""
    longest_decision_seconds: float = 0.0
    """Wall time of the longest decision, seconds."""
    wall_seconds: float = 0.0
    """Wall time of the repetition, seconds."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationFigure(Value):
    """A figure over all repetitions."""

    measure: SimulationMeasure | None = None
    """The quantity."""
    mean: float = 0.0
    """Mean over the repetitions that have the quantity."""
    lower: float | None = None
    """Lower bound of the mean's 95 % confidence interval (Student's t).

    Absent = fewer than two repetitions have the quantity.
    """
    upper: float | None = None
    """Upper bound of the interval."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SimulationResult(Value):
    """The result of a simulation."""

    runs: tuple[SimulationRun, ...] = ()
    """One run per repetition, in the order of seeds."""
    figures: tuple[SimulationFigure, ...] = ()
    """Figures over all repetitions."""
    policy: str = ""
    """Name of the policy."""
    policy_version: str = ""
    """Version of the policy."""
    complete: bool = False
    """Whether the simulation is complete.

    False = the call's time ended first: repetitions are missing, or the last one is not complete.
    """
    bases: tuple[Basis, ...] = ()
    """What predicted curves are based on, each basis once."""
