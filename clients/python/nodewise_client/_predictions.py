"""Predictions: the answers row by row, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar, overload

from nodewise_client._enums import (
    INTERVAL_BASES,
    ROW_STATUSES,
    IntervalBasis,
    RowStatus,
    to_word,
)
from nodewise_client._errors import NodewiseError, from_status
from nodewise_client._time import from_timestamp
from nodewise_protos.v1 import objective_pb2, prediction_pb2, prediction_service_pb2

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a row was not predicted."""

    reason: str
    """Stable reason, e.g. "EVIDENCE_MISSING"."""
    message: str
    """For people."""
    missing_fields: tuple[str, ...] = ()
    """Fields that would make an answer possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something the reader of an answer should know."""

    reason: str
    """Stable reason, e.g. "EXTRAPOLATES"."""
    message: str
    """For people."""
    rows: tuple[int, ...] = ()
    """The rows concerned; empty = all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staleness:
    """Updates by others between a worker's download and its upload."""

    mean_steps: float
    p95_steps: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """One row of an answer. What is None was not asked for, is not known, or was not predicted."""

    nodes: int
    workers: int
    status: RowStatus
    step_s: float | None
    """Seconds of a step: asynchronous, the cycle of one worker; otherwise one global batch."""
    steps_per_s: float | None
    """Steps per second of the whole job."""
    samples_per_s: float | None
    """None also where the batch is not known."""
    lower_steps_per_s: float | None
    upper_steps_per_s: float | None
    lower_samples_per_s: float | None
    upper_samples_per_s: float | None
    coverage: float | None
    """Probability that the measured throughput lies within the bounds."""
    interval_basis: IntervalBasis | None
    """Where the interval comes from."""
    breakdown: dict[str, float]
    """Parts of `step_s` in seconds of exposed time; they add up to it."""
    bottleneck: str | None
    utilisation: dict[str, float]
    """Share of time that each station is busy, 0 to 1."""
    staleness: Staleness | None
    """Asynchronous training only."""
    extrapolation: float | None
    """How far outside the evidence: 1 = within, 2 = twice the largest scale that was measured."""
    memory_bytes: float | None
    """Memory per device."""
    excess_memory_bytes: float | None
    """Memory missing per device."""
    finish_s: float | None
    """Seconds to do the work asked about, else all of the workload's epochs where they are known."""
    cost: float | None
    """Cost of that work, in the currency of the prices."""
    refusal: Refusal | None
    once_s: float | None = None
    """Seconds spent once besides the steps, e.g. at a hybrid's switch; part of `finish_s`. None = none."""
    extra: dict[str, float] = field(default_factory=dict)
    """What else the estimator has to say, by names that carry units."""

    @property
    def answered(self) -> bool:
        """Whether the row was predicted."""
        return self.status is RowStatus.ANSWERED


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommendation:
    """The recommended row and why."""

    row: int
    nodes: int
    workers: int
    rule: str
    """The rule that chose it, e.g. "knee"."""
    why: str
    """The rule applied, in one sentence with its numbers."""
    numbers: dict[str, float]
    """The numbers behind it, by names that carry their units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatorShare:
    """Part of a mixture."""

    estimator: str
    estimator_version: str
    weight: float
    """All weights add up to 1."""
    expected_log_error: float
    """Mean absolute logarithmic error that is expected of it, of which the weights are made."""
    prior_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What an answer rests on. Same basis and same question: same answer."""

    estimator: str
    estimator_version: str
    choice: str
    """Why this estimator (or mixture) answered."""
    mixture: tuple[EstimatorShare, ...]
    """Parts of a mixture, the heaviest first; empty = one alone."""
    profile_revision: int
    """Revision of the stored profile; 0 = inline."""
    profile_digest: str
    prior_id: str
    catalogue_digest: str
    fit_time: datetime | None
    stale: bool
    """The model was fitted to an older revision than the profile's newest."""
    fallback: bool
    """Another estimator than the one asked for answered."""
    evidence: tuple[str, ...]


class Rows(Sequence[Item]):
    """An answer that is read like a sequence of its rows."""

    __slots__ = ()

    def _items(self) -> tuple[Item, ...]:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items())

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self._items()[index]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictResult(Rows[Prediction]):
    """The answer about one job: a sequence of its rows, and the recommendation, the basis and the warnings."""

    predictions: tuple[Prediction, ...]
    recommendation: Recommendation | None
    """None without an objective, or when no row meets it; a warning then says why."""
    basis: Basis
    warnings: tuple[Notice, ...]
    raw: prediction_service_pb2.PredictResponse = field(repr=False, compare=False)
    """The message as it came."""

    def _items(self) -> tuple[Prediction, ...]:
        return self.predictions

    @property
    def recommended(self) -> Prediction | None:
        """The recommended row."""
        return None if self.recommendation is None else self.predictions[self.recommendation.row]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutcome:
    """What became of one job of a batch: its rows, or its error."""

    predictions: tuple[Prediction, ...]
    recommendation: Recommendation | None
    basis: Basis | None
    warnings: tuple[Notice, ...]
    error: NodewiseError | None

    def unwrap(self) -> tuple[Prediction, ...]:
        """The rows; raises the job's error if it has one."""
        if self.error is not None:
            raise self.error
        return self.predictions

    @property
    def recommended(self) -> Prediction | None:
        """The recommended row."""
        return None if self.recommendation is None else self.predictions[self.recommendation.row]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPredictResult(Rows[JobOutcome]):
    """The answers about many jobs: a sequence with one outcome per job, in the order asked."""

    outcomes: tuple[JobOutcome, ...]
    raw: prediction_service_pb2.BatchPredictResponse = field(repr=False, compare=False)
    """The message as it came."""

    def _items(self) -> tuple[JobOutcome, ...]:
        return self.outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAnswer:
    """The answer to one request of a stream."""

    request_id: str
    """The id of the request that this answers."""
    result: PredictResult | BatchPredictResult | None
    error: NodewiseError | None
    """An error of one request ends that request, not the stream."""

    def unwrap(self) -> PredictResult | BatchPredictResult:
        """The result; raises the request's error if it has one."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


def predict_result(message: prediction_service_pb2.PredictResponse) -> PredictResult:
    """The answer that a message holds."""
    return PredictResult(
        predictions=rows_of(message.predictions),
        recommendation=recommendation_of(message.recommendation) if message.HasField("recommendation") else None,
        basis=basis_from_wire(message.basis),
        warnings=tuple(warning_of(found, found.rows) for found in message.predictions.warnings),
        raw=message,
    )


def batch_result(message: prediction_service_pb2.BatchPredictResponse) -> BatchPredictResult:
    """The answers that a message holds, cut into jobs."""
    rows = rows_of(message.predictions)
    bases = [basis_from_wire(basis) for basis in message.bases]
    offsets = list(message.row_offsets) or [0] * (len(message.outcomes) + 1)
    outcomes = []
    for outcome, begin, end in zip(message.outcomes, offsets, offsets[1:], strict=False):
        failed = outcome.HasField("error")
        answered = not failed and 0 <= outcome.basis_index < len(bases)
        outcomes.append(
            JobOutcome(
                predictions=rows[begin:end],
                recommendation=recommendation_of(outcome.recommendation)
                if outcome.HasField("recommendation")
                else None,
                basis=bases[outcome.basis_index] if answered else None,
                warnings=() if failed else _warnings_between(message.predictions.warnings, begin, end),
                error=from_status(outcome.error) if failed else None,
            )
        )
    return BatchPredictResult(outcomes=tuple(outcomes), raw=message)


def stream_answer(message: prediction_service_pb2.StreamPredictResponse) -> StreamAnswer:
    """The answer that a message of a stream holds."""
    result: PredictResult | BatchPredictResult | None = None
    error: NodewiseError | None = None
    match message.WhichOneof("answer"):
        case "predict":
            result = predict_result(message.predict)
        case "batch":
            result = batch_result(message.batch)
        case "error":
            error = from_status(message.error)
        case _:
            error = NodewiseError("the server answered with something that this version of the client does not know")
    return StreamAnswer(request_id=message.request_id, result=result, error=error)


def basis_from_wire(message: prediction_pb2.Basis) -> Basis:
    """What an answer rests on, from its message."""
    return Basis(
        estimator=message.estimator,
        estimator_version=message.estimator_version,
        choice=message.choice,
        mixture=tuple(
            EstimatorShare(
                estimator=share.estimator,
                estimator_version=share.estimator_version,
                weight=share.weight,
                expected_log_error=share.expected_log_error,
                prior_id=share.prior_id,
            )
            for share in message.mixture
        ),
        profile_revision=message.profile_revision,
        profile_digest=message.profile_digest,
        prior_id=message.prior_id,
        catalogue_digest=message.catalogue_digest,
        fit_time=from_timestamp(message.fit_time) if message.HasField("fit_time") else None,
        stale=message.stale,
        fallback=message.fallback,
        evidence=tuple(message.evidence),
    )


def refusal_from_wire(message: prediction_pb2.RowRefusal) -> Refusal:
    """Why something was not predicted, from its message."""
    return Refusal(reason=message.reason, message=message.message, missing_fields=tuple(message.missing_fields))


def rows_of(columns: prediction_pb2.Predictions) -> tuple[Prediction, ...]:
    """The rows of predictions, from their message."""
    count = columns.rows_count
    answered = [True] * count
    statuses = [RowStatus.ANSWERED] * count
    for row, number in enumerate(columns.statuses):
        statuses[row] = to_word(ROW_STATUSES, number) or RowStatus.UNKNOWN
        answered[row] = statuses[row] is RowStatus.ANSWERED
    refusals: list[Refusal | None] = [None] * count
    for found in columns.refusals:
        refusal = refusal_from_wire(found)
        for row in found.rows:
            refusals[row] = refusal

    def column(values: Sequence[float]) -> list[float | None]:
        return [value if has else None for value, has in zip(values, answered)] if values else [None] * count

    def positive(values: Sequence[float]) -> list[float | None]:
        # 0 stands for absent in columns where it cannot be a value.
        return [value or None for value in column(values)]

    steps = positive(columns.steps_per_second)
    samples = positive(columns.samples_per_second)
    upper = positive(columns.upper_steps_per_second)
    lower = [None if high is None else low for low, high in zip(column(columns.lower_steps_per_second), upper)]
    per_step = [None if many is None or one is None else many / one for many, one in zip(samples, steps)]
    step_s = positive(columns.step_seconds)
    extrapolation = positive(columns.extrapolation_ratios)
    finish = positive(columns.finish_seconds)
    cost = [None if seconds is None else price for price, seconds in zip(column(columns.costs), finish)]
    excess = [value or None for value in columns.excess_memory_bytes] or [None] * count
    memory = [value or None for value in columns.memory_bytes] or [None] * count
    mean_staleness = column(columns.staleness_mean_steps)
    p95_staleness = column(columns.staleness_p95_steps)
    breakdowns = _named(columns.breakdown_seconds, answered)
    utilisations = _named(columns.utilisation, answered)
    once = positive(columns.once_seconds)
    extras = _named(columns.extra, answered)
    bottlenecks = [
        columns.bottleneck_names[index] if 0 <= index < len(columns.bottleneck_names) else None
        for index in columns.bottleneck_indexes
    ] or [None] * count
    basis = to_word(INTERVAL_BASES, columns.interval_basis)
    return tuple(
        Prediction(
            nodes=columns.nodes[row] if columns.nodes else 0,
            workers=columns.workers[row] if columns.workers else 0,
            status=statuses[row],
            step_s=step_s[row],
            steps_per_s=steps[row],
            samples_per_s=samples[row],
            lower_steps_per_s=lower[row],
            upper_steps_per_s=upper[row],
            lower_samples_per_s=_times(lower[row], per_step[row]),
            upper_samples_per_s=_times(upper[row], per_step[row]),
            coverage=None if upper[row] is None else columns.interval_coverage,
            interval_basis=None if upper[row] is None else basis,
            breakdown=breakdowns[row],
            bottleneck=bottlenecks[row],
            utilisation=utilisations[row],
            staleness=_staleness(mean_staleness[row], p95_staleness[row]),
            extrapolation=extrapolation[row],
            memory_bytes=memory[row],
            excess_memory_bytes=excess[row],
            finish_s=finish[row],
            cost=cost[row],
            refusal=refusals[row],
            once_s=once[row],
            extra=extras[row],
        )
        for row in range(count)
    )


def _times(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else value * factor


def _staleness(mean: float | None, p95: float | None) -> Staleness | None:
    return None if mean is None else Staleness(mean_steps=mean, p95_steps=p95)


def _named(columns: Iterable[prediction_pb2.NamedColumn], answered: Sequence[bool]) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = [{} for _ in answered]
    for column in columns:
        for row, value in enumerate(column.values):
            if answered[row]:
                rows[row][column.name] = value
    return rows


def recommendation_of(message: objective_pb2.Recommendation) -> Recommendation:
    """A recommendation, from its message."""
    return Recommendation(
        row=message.row,
        nodes=message.nodes,
        workers=message.workers,
        rule=message.rule,
        why=message.why,
        numbers={number.name: number.value for number in message.numbers},
    )


def warning_of(message: prediction_pb2.Notice, rows: Iterable[int]) -> Notice:
    """A warning of some rows, from its message."""
    return Notice(reason=message.reason, message=message.message, rows=tuple(rows))


def _warnings_between(found: Iterable[prediction_pb2.Notice], begin: int, end: int) -> tuple[Notice, ...]:
    """The warnings that concern a job's rows, with rows counted from the job's first."""
    kept = []
    for message in found:
        rows = [row - begin for row in message.rows if begin <= row < end]
        if rows or not message.rows:
            kept.append(warning_of(message, rows))
    return tuple(kept)
