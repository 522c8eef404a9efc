"""EvaluationService: how good the predictions are, on a table of measurements.

Absence, as on the whole wire: see nodewise/v1/configuration.proto.
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
    """Dictionary of jobs."""
    job_indexes: tuple[int, ...] = ()
    """Row to entry of job_names."""
    configurations: Configurations | None = None
    """What ran, one row per row of the table."""
    steps_per_second: tuple[float, ...] = ()
    """Measured throughput, steps per second. 0 in a row: not measured, so the row is predicted and not scored."""
    train: tuple[bool, ...] = ()
    """Whether an estimator may see the row."""
    measured_at_unix_seconds: tuple[float, ...] = ()
    """When, seconds since 1970 (UTC). Empty or 0 in a row: not known."""
    exposed_sync_seconds: tuple[float, ...] = ()
    """Synchronization not hidden by compute, seconds per step. Empty = not known."""
    phase_timings: PhaseTimings | None = None
    """Timed phases; their configurations must be empty (they are those of phase_rows)."""
    phase_rows: tuple[int, ...] = ()
    """Rows of the table that the phase timings belong to."""
    workloads: tuple[Workload, ...] = ()
    """What each job trains, one per entry of job_names, or empty."""
    networks: tuple[Network, ...] = ()
    """Each job's network, one per entry of job_names, or empty."""
    steps_counts: tuple[int, ...] = ()
    """Steps that were counted. Empty or 0 in a row: not known."""
    step_variation: tuple[float, ...] = ()
    """Coefficient of variation of the step time, dimensionless. Empty = not known."""
    step_variation_known: tuple[bool, ...] = ()
    """Rows whose step_variation is known. Empty = all, where that column is given."""
    exposed_sync_known: tuple[bool, ...] = ()
    """Rows whose exposed_sync_seconds is known. Empty = all, where that column is given."""
    measured_memory_bytes: tuple[float, ...] = ()
    """Memory that the fullest device held at most, context and the allocator's cache included.

    Empty or 0 in a row: not known.
    """
    fitted: tuple[int, ...] = ()
    """0 = the row ran out of memory."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestRequest(Value):
    """What to score on what."""

    table: MeasurementTable | None = None
    """The table."""
    estimators: tuple[str, ...] = ()
    """Estimators' names; "auto" = the service's choice for each job; "all" = every one. Empty = "auto"."""
    calibration: MeasurementTable | None = None
    """Evidence about devices and software; none of its rows is scored."""
    job_sources: tuple[str, ...] = ()
    """Where each job comes from (a campaign.

    Where each job comes from (a campaign, an organization, a device), one per entry of the table's job_names, or empty.
    What estimators learn for a job they then learn from jobs of other sources and the calibration alone; the job's own
    rows remain its evidence.
    """
    evidence_rows_count: int | None = None
    """Rows of each job that are shown to estimators, fewer where it has fewer.

    Rows of each job that are shown to estimators, fewer where it has fewer: train rows before measured test rows,
    smaller scales before larger ones. Train rows beyond are left out. Absent = the train rows.
    """


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestResponse(Value):
    """Progress, then the result."""

    progress: BacktestProgress | None = None
    """How far the work is."""
    result: BacktestResult | None = None
    """The scores; the last message."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestProgress(Value):
    """How far the work is."""

    done_count: int = 0
    """Jobs done, over all estimators."""
    total_count: int = 0
    """Jobs in all, over all estimators."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BacktestResult(Value):
    """Scores."""

    evaluations: tuple[EstimatorEvaluation, ...] = ()
    """One per estimator."""
    prior: str = ""
    """The shipped prior that was used and the tables it was learned from. Empty = none."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class EstimatorEvaluation(Value):
    """One estimator's scores."""

    estimator: str = ""
    """Estimator as asked for."""
    estimator_version: str = ""
    """Its version; "auto" has none."""
    overall: Metrics | None = None
    """Over all test rows."""
    by_job: tuple[GroupMetrics, ...] = ()
    """By job."""
    by_sync: tuple[GroupMetrics, ...] = ()
    """By synchronization mode."""
    predictions: TestPredictions | None = None
    """The predictions behind them."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GroupMetrics(Value):
    """Scores of a group of rows."""

    name: str = ""
    """Job or mode."""
    metrics: Metrics | None = None
    """Its scores."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TestPredictions(Value):
    """Predictions of the test rows, in the table's order."""

    rows: tuple[int, ...] = ()
    """Row of the table."""
    steps_per_second: tuple[float, ...] = ()
    """Predicted steps per second; 0 where not answered."""
    lower_steps_per_second: tuple[float, ...] = ()
    """Lower bound of the 90 % interval; 0 where there is none."""
    upper_steps_per_second: tuple[float, ...] = ()
    """Upper bound of the 90 % interval; 0 where there is none."""
    statuses: tuple[RowStatus | None, ...] = ()
    """What became of the row."""
    refusal_reasons: tuple[str, ...] = ()
    """Dictionary of reasons of refusals; the empty text is that of answered rows."""
    refusal_indexes: tuple[int, ...] = ()
    """Row to entry of refusal_reasons. Empty = every row is answered."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Metrics(Value):
    """Scores over answered and measured test rows, r = predicted / measured steps per second. Absent = undefined."""

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
    """The same for the job where it is least."""
    width90: float | None = None
    """Mean of ln(upper / lower)."""
    interval_score90: float | None = None
    """Mean interval score (Winkler) of the 90 % interval, on ln steps per second."""
    fit_seconds: float | None = None
    """Seconds spent fitting."""
    predict_seconds: float | None = None
    """Seconds spent predicting."""
    groups_count: int = 0
    """Groups of test rows of one job and one global batch with at least two distinct configurations."""
    regret: float | None = None
    """Mean over jobs of the mean over groups of 1 - X(chosen) / X(best)."""
    hit: float | None = None
    """Share of groups whose predicted best is the measured best."""
    within5: float | None = None
    """Share of groups with a regret of at most 0.05."""
    memory_mape: float | None = None
    """Mean of |predicted / measured - 1| of the memory of a device, over rows where it was measured."""
    false_fits: float | None = None
    """Share of rows that ran out of memory which are said to fit."""
    false_refusals: float | None = None
    """Share of rows that ran which are said not to fit."""
