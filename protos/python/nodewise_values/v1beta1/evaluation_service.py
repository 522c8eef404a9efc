"""EvaluationService: accuracy of predictions on a table of measurements.

For what an absent or empty value means, see nodewise/v1/configuration.proto.
"""

from __future__ import annotations

from dataclasses import dataclass

from nodewise_values.v1.configuration import Configurations
from nodewise_values.v1.prediction import RowStatus
from nodewise_values.v1.profile import PhaseTimings
from nodewise_values.v1.workload import Network, Workload
from nodewise_values.value import Value

__all__ = [
    "BacktestProgress",
    "BacktestRequest",
    "BacktestResponse",
    "BacktestResult",
    "EstimatorEvaluation",
    "GroupMetrics",
    "MeasurementTable",
    "Metrics",
    "TestPredictions",
]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MeasurementTable(Value):
    """A table of measurements, as columns."""

    job_names: tuple[str, ...] = ()
    """Dictionary of job names."""
    job_indexes: tuple[int, ...] = ()
    """For each row, an index into job_names."""
    configurations: Configurations | None = None
    """Configuration of each row of the table."""
    steps_per_second: tuple[float, ...] = ()
    """Measured throughput, steps per second. 0 in a row: not measured; the row is predicted but not scored."""
    train: tuple[bool, ...] = ()
    """Whether estimators may see the row."""
    measured_at_unix_seconds: tuple[float, ...] = ()
    """When the row was measured, seconds since 1970 (UTC). Empty or 0 in a row: not known."""
    exposed_sync_seconds: tuple[float, ...] = ()
    """Seconds of synchronization per step that compute does not hide. Empty = not known."""
    phase_timings: PhaseTimings | None = None
    """Timed phases. Their configurations must be empty: phase_rows refers to those of the table."""
    phase_rows: tuple[int, ...] = ()
    """Rows of the table that the phase timings belong to."""
    workloads: tuple[Workload, ...] = ()
    """What each job trains, one per entry of job_names, or empty."""
    networks: tuple[Network, ...] = ()
    """Network of each job, one per entry of job_names, or empty."""
    steps_counts: tuple[int, ...] = ()
    """Number of steps that were measured. Empty or 0 in a row: not known."""
    step_variation: tuple[float, ...] = ()
    """Coefficient of variation of the step time, dimensionless. Empty = not known."""
    step_variation_known: tuple[bool, ...] = ()
    """Rows whose step_variation is known. Empty = all rows, if that column is given."""
    exposed_sync_known: tuple[bool, ...] = ()
    """Rows whose exposed_sync_seconds is known. Empty = all rows, if that column is given."""
    measured_memory_bytes: tuple[float, ...] = ()
    """Peak memory on the device that used the most, including the context and the allocator's cache, bytes.

    Empty or 0 in a row: not known.
    """
    fitted: tuple[int, ...] = ()
    """Whether the row fitted into memory: 0 = it ran out of memory."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestRequest(Value):
    """A table to score estimators on."""

    table: MeasurementTable | None = None
    """The table."""
    estimators: tuple[str, ...] = ()
    """Names of estimators; "auto" = the service's choice for each job; "all" = every estimator. Empty = "auto"."""
    calibration: MeasurementTable | None = None
    """Evidence about devices and software. None of its rows is scored."""
    job_sources: tuple[str, ...] = ()
    """Source of each job (a campaign, an organization, a device), one per entry of the table's job_names, or empty.

    Priors for a job are then learned only from jobs of other sources and from the calibration. The job's own rows
    remain its evidence.
    """
    evidence_rows_count: int | None = None
    """Number of rows of each job that estimators may see, or all rows if the job has fewer.

    Train rows come before measured test rows, and smaller scales before larger ones. Further train rows are left out.
    Absent = the train rows.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestResponse(Value):
    """A message of the stream: progress, then the result."""

    progress: BacktestProgress | None = None
    """Progress of the backtest."""
    result: BacktestResult | None = None
    """The scores, in the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestProgress(Value):
    """Progress of a backtest."""

    done_count: int = 0
    """Jobs that are done, over all estimators."""
    total_count: int = 0
    """Jobs in total, over all estimators."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestResult(Value):
    """Scores of all estimators."""

    evaluations: tuple[EstimatorEvaluation, ...] = ()
    """Scores of each estimator."""
    prior: str = ""
    """The shipped prior that was used, and the tables that it was learned from. Empty = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorEvaluation(Value):
    """One estimator's scores."""

    estimator: str = ""
    """Name of the estimator, as in the request."""
    estimator_version: str = ""
    """Version of the estimator. Empty for "auto"."""
    overall: Metrics | None = None
    """Scores over all test rows."""
    by_job: tuple[GroupMetrics, ...] = ()
    """Scores by job."""
    by_sync: tuple[GroupMetrics, ...] = ()
    """Scores by synchronization mode."""
    predictions: TestPredictions | None = None
    """The predictions that the scores are computed from."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupMetrics(Value):
    """Scores of a group of rows."""

    name: str = ""
    """Name of the job or mode."""
    metrics: Metrics | None = None
    """Scores of the group."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TestPredictions(Value):
    """Predictions of the test rows, in the table's order."""

    rows: tuple[int, ...] = ()
    """Index of the row in the table."""
    steps_per_second: tuple[float, ...] = ()
    """Predicted steps per second; 0 in rows that are not answered."""
    lower_steps_per_second: tuple[float, ...] = ()
    """Lower bound of the 90 % interval; 0 where there is none."""
    upper_steps_per_second: tuple[float, ...] = ()
    """Upper bound of the 90 % interval; 0 where there is none."""
    statuses: tuple[RowStatus | None, ...] = ()
    """Outcome of each row."""
    refusal_reasons: tuple[str, ...] = ()
    """Dictionary of refusal reasons. The empty text stands for answered rows."""
    refusal_indexes: tuple[int, ...] = ()
    """For each row, an index into refusal_reasons. Empty = every row is answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Metrics(Value):
    """Scores over test rows that are answered and measured, with r = predicted / measured steps per second.

    Absent = undefined.
    """

    rows_count: int = 0
    """Rows scored."""
    refused_count: int = 0
    """Rows refused."""
    mape: float | None = None
    """Mean of |r - 1|."""
    median_ape: float | None = None
    """Median of |r - 1|."""
    p90_ape: float | None = None
    """90th percentile of |r - 1|."""
    max_ape: float | None = None
    """Largest |r - 1|."""
    step_mape: float | None = None
    """Mean of |1/r - 1|."""
    mean_abs_ln: float | None = None
    """Mean of |ln r|."""
    bias: float | None = None
    """Mean of ln r."""
    macro_abs_ln: float | None = None
    """Mean over jobs of the job's mean |ln r|."""
    kendall: float | None = None
    """Mean over jobs of Kendall's tau-b between predicted and measured."""
    coverage90: float | None = None
    """Share of rows within the 90 % interval."""
    worst_job_coverage90: float | None = None
    """The least coverage90 of any job."""
    width90: float | None = None
    """Mean of ln(upper / lower)."""
    interval_score90: float | None = None
    """Mean interval score (Winkler) of the 90 % interval, on ln steps per second."""
    fit_seconds: float | None = None
    """Seconds spent on fitting."""
    predict_seconds: float | None = None
    """Seconds spent on predicting."""
    groups_count: int = 0
    """Groups of test rows of one job and one global batch with at least two distinct configurations."""
    regret: float | None = None
    """Mean over jobs of the mean over groups of 1 - X(chosen) / X(best)."""
    hit: float | None = None
    """Share of groups whose predicted best is the measured best."""
    within5: float | None = None
    """Share of groups with a regret of at most 0.05."""
    memory_mape: float | None = None
    """Mean of |predicted / measured - 1| for memory per device, over rows with measured memory."""
    false_fits: float | None = None
    """Share of the rows that ran out of memory which are predicted to fit."""
    false_refusals: float | None = None
    """Share of the rows that ran which are predicted not to fit."""
