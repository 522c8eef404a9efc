"""Backtests: how good predictions are on a table of measurements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Final

from nodewise_client._columns import broadcast, frozen
from nodewise_client._configurations import Configurations, configurations_to_wire
from nodewise_client._enums import ROW_STATUSES, RowStatus, to_word
from nodewise_client._evidence import NOT_KNOWN, PhaseTimings, phases_to_wire
from nodewise_client._time import to_unix_seconds
from nodewise_client._workload import Network, Workload, network_to_wire, workload_to_wire
from nodewise_protos.v1 import evaluation_service_pb2, workload_pb2

_COLUMNS: Final = ("jobs", "steps_per_s", "train", "measured_at", "exposed_sync_s", "steps", "step_cv")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurementTable:
    """A table of measurements by columns. A column is a value for all rows or one per row."""

    jobs: str | Iterable[str]
    """Name of each row's job."""
    configurations: Configurations
    """What ran."""
    steps_per_s: float | Iterable[float | None]
    """Measured throughput; None = not measured: the row is predicted and not scored."""
    train: bool | Iterable[bool]
    """Whether an estimator may see the row."""
    measured_at: datetime | Iterable[datetime | None] | None = ()
    exposed_sync_s: float | Iterable[float | None] | None = ()
    """Synchronisation not hidden by compute, seconds per step; None = not known."""
    steps: int | Iterable[int] = ()
    """Steps that were counted; 0 = not known."""
    step_cv: float | Iterable[float | None] | None = ()
    """Coefficient of variation of the step time; None = not known."""
    phase_timings: PhaseTimings | None = None
    """Timed phases, without configurations of their own."""
    phase_rows: Iterable[int] = ()
    """Rows of the table that the phase timings belong to."""
    workloads: Mapping[str, Workload] = field(default_factory=dict)
    """What each job trains, by its name."""
    networks: Mapping[str, Network] = field(default_factory=dict)
    """Each job's network, by its name."""

    def __post_init__(self) -> None:
        for name in (*_COLUMNS, "phase_rows"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    def __len__(self) -> int:
        return max(len(self.configurations), *(len(getattr(self, name)) for name in _COLUMNS))


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestProgress:
    """How far the work is, in jobs over all estimators."""

    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Scores over answered and measured test rows, r = predicted / measured steps per second. None = undefined."""

    n: int
    """Rows scored."""
    refused: int
    """Rows refused."""
    mape: float | None
    """Mean of |r - 1|."""
    median_ape: float | None
    p90_ape: float | None
    max_ape: float | None
    step_mape: float | None
    """Mean of |1/r - 1|."""
    mean_abs_ln: float | None
    """Mean of |ln r|."""
    bias: float | None
    """Mean of ln r."""
    macro_abs_ln: float | None
    """Mean over jobs of the job's mean |ln r|."""
    kendall: float | None
    """Mean over jobs of Kendall's tau-b."""
    coverage90: float | None
    worst_job_coverage90: float | None
    width90: float | None
    """Mean of ln(upper / lower)."""
    interval_score90: float | None
    fit_s: float | None
    predict_s: float | None
    groups: int
    """Groups of test rows between which a decision could be made."""
    regret: float | None
    """Mean over jobs of the mean over groups of 1 - X(chosen) / X(best)."""
    hit: float | None
    within5: float | None
    """Share of groups with a regret of at most 0.05."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPrediction:
    """The prediction of a test row."""

    row: int
    """Row of the table."""
    status: RowStatus
    steps_per_s: float | None
    lower_steps_per_s: float | None
    upper_steps_per_s: float | None
    refusal_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorEvaluation:
    """One estimator's scores."""

    estimator: str
    estimator_version: str
    """Empty for "auto"."""
    overall: Metrics
    by_job: dict[str, Metrics]
    by_sync: dict[str, Metrics]
    predictions: tuple[RowPrediction, ...]
    """In the table's order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestResult:
    """Scores, by estimator."""

    evaluations: dict[str, EstimatorEvaluation]
    prior: str
    """The shipped prior that was used and the tables it was learned from; empty = none."""
    raw: evaluation_service_pb2.BacktestResult = field(repr=False, compare=False)
    """The message as it came."""


def table_to_wire(table: MeasurementTable) -> evaluation_service_pb2.MeasurementTable:
    """A table as its message."""
    rows = len(table)
    columns: dict[str, tuple[Any, ...]] = {name: broadcast(getattr(table, name), rows, name) for name in _COLUMNS}
    names = {name: index for index, name in enumerate(dict.fromkeys(columns["jobs"]))}
    for given in (*table.workloads, *table.networks):
        if given not in names:
            raise ValueError(f"facts are given for {given!r}, which is no job of the table")
    message = evaluation_service_pb2.MeasurementTable(
        job_names=list(names),
        job_indexes=[names[name] for name in columns["jobs"]],
        configurations=configurations_to_wire(table.configurations),
        steps_per_second=[value or 0.0 for value in columns["steps_per_s"]],
        train=columns["train"],
        phase_timings=None if table.phase_timings is None else phases_to_wire(table.phase_timings),
        phase_rows=table.phase_rows,
    )
    if any(value is not None for value in columns["measured_at"]):
        message.measured_at_unix_seconds.extend(map(to_unix_seconds, columns["measured_at"]))
    if any(value is not None for value in columns["exposed_sync_s"]):
        message.exposed_sync_seconds.extend(
            NOT_KNOWN if value is None else value for value in columns["exposed_sync_s"]
        )
    if any(columns["steps"]):
        message.steps_counts.extend(columns["steps"])
    if any(value is not None for value in columns["step_cv"]):
        message.step_variation.extend(NOT_KNOWN if value is None else value for value in columns["step_cv"])
    if table.workloads:
        nothing = workload_pb2.Workload()
        message.workloads.extend(
            workload_to_wire(table.workloads[name]) if name in table.workloads else nothing for name in names
        )
    if table.networks:
        unknown = workload_pb2.Network()
        message.networks.extend(
            network_to_wire(table.networks[name]) if name in table.networks else unknown for name in names
        )
    return message


def backtest_progress(response: evaluation_service_pb2.BacktestResponse) -> BacktestProgress:
    """How far a backtest is, from its message."""
    return BacktestProgress(done=response.progress.done_count, total=response.progress.total_count)


def backtest_result(responses: Sequence[evaluation_service_pb2.BacktestResponse]) -> BacktestResult:
    """The scores that a last message holds."""
    message = responses[-1].result
    return BacktestResult(
        evaluations={
            found.estimator: EstimatorEvaluation(
                estimator=found.estimator,
                estimator_version=found.estimator_version,
                overall=_metrics(found.overall),
                by_job={group.name: _metrics(group.metrics) for group in found.by_job},
                by_sync={group.name: _metrics(group.metrics) for group in found.by_sync},
                predictions=_test_predictions(found.predictions),
            )
            for found in message.evaluations
        },
        prior=message.prior,
        raw=message,
    )


# Where the word here and the field there differ.
_METRIC_FIELDS = {
    "n": "rows_count",
    "refused": "refused_count",
    "fit_s": "fit_seconds",
    "predict_s": "predict_seconds",
    "groups": "groups_count",
}
_COUNTS = frozenset({"n", "refused", "groups"})


def _metrics(message: evaluation_service_pb2.Metrics) -> Metrics:
    values: dict[str, Any] = {}
    for metric in fields(Metrics):
        name = _METRIC_FIELDS.get(metric.name, metric.name)
        present = metric.name in _COUNTS or message.HasField(name)
        values[metric.name] = getattr(message, name) if present else None
    return Metrics(**values)


def _test_predictions(message: evaluation_service_pb2.TestPredictions) -> tuple[RowPrediction, ...]:
    found = []
    for position, row in enumerate(message.rows):
        index = message.refusal_indexes[position] if message.refusal_indexes else -1
        number = message.statuses[position] if message.statuses else ROW_STATUSES[RowStatus.ANSWERED]
        found.append(
            RowPrediction(
                row=row,
                status=to_word(ROW_STATUSES, number) or RowStatus.UNKNOWN,
                steps_per_s=message.steps_per_second[position] or None,
                lower_steps_per_s=(message.lower_steps_per_second[position] or None)
                if message.lower_steps_per_second
                else None,
                upper_steps_per_s=(message.upper_steps_per_second[position] or None)
                if message.upper_steps_per_second
                else None,
                refusal_reason=message.refusal_reasons[index] if index >= 0 else None,
            )
        )
    return tuple(found)
