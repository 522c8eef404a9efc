"""Kinds of rows: predictions, scored rows, simulated jobs and what they held."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final

from nodewise_client._rows import Makers, Part, Row, Rows, become, filled_kind, filled_rows, know
from nodewise_values import NamedColumn, PredictionColumn, Predictions, QuantileColumn, RowRefusal, RowStatus

if TYPE_CHECKING:
    from nodewise_values import IntervalBasis

# Rows that are not answered hold nothing; in a row that is, 0 is no value of these. In the others 0 may be meant.
_ZERO_IS_ABSENT: Final = frozenset({
    "step_seconds", "steps_per_second", "samples_per_second", "upper_steps_per_second", "extrapolation_ratios",
    "memory_bytes", "excess_memory_bytes", "finish_seconds", "once_seconds", "global_batch_samples",
    "batch_per_worker_samples", "accumulation_steps", "goodput_samples_per_second",
})  # fmt: skip
# Columns that hold something only where another does.
_ONLY_WITH: Final = {
    "lower_steps_per_second": "upper_steps_per_second",
    "costs": "finish_seconds",
    "finish_seconds_quantiles": "finish_seconds",
    "cost_quantiles": "finish_seconds",
}
_OF_EVERY_ROW: Final = frozenset({"nodes", "workers", "memory_bytes", "excess_memory_bytes"})
# Columns of several values in each row, by name or by probability: {} where there are none.
_NAMED_COLUMNS: Final = frozenset({
    "breakdown_seconds", "utilization", "extra", "finish_seconds_quantiles", "cost_quantiles"
})  # fmt: skip
_OF_ALL_ROWS: Final = frozenset({"statuses", "refusals", "bottleneck_names", "bottleneck_indexes", "warnings"})
_MOSTLY_READ: Final = (
    "nodes", "workers", "step_seconds", "steps_per_second", "samples_per_second", "lower_steps_per_second",
    "upper_steps_per_second", "memory_bytes",
)  # fmt: skip
_MADE_OF_FEW: Final = ("lower_samples_per_second", "upper_samples_per_second", "bottleneck")
_mostly_read: Final = attrgetter(*_MOSTLY_READ, "bottleneck_indexes", "bottleneck_names")
_entries: Final = itemgetter(slice(None))  # a list of Python's at once
COLUMNS_OF: Final[Mapping[PredictionColumn, tuple[str, ...]]] = {
    PredictionColumn.INTERVAL: ("lower_steps_per_second", "upper_steps_per_second"),
    PredictionColumn.BREAKDOWN: ("breakdown_seconds", "bottleneck_names", "bottleneck_indexes"),
    PredictionColumn.UTILIZATION: ("utilization",),
    PredictionColumn.STALENESS: ("staleness_mean_steps", "staleness_p95_steps"),
    PredictionColumn.MEMORY: ("memory_bytes", "excess_memory_bytes"),
    PredictionColumn.WORK: ("finish_seconds", "costs"),
    PredictionColumn.EXTRA: ("extra",),
    PredictionColumn.GOODPUT: (
        "global_batch_samples", "batch_per_worker_samples", "accumulation_steps", "goodput_samples_per_second",
    ),
    PredictionColumn.RISK: ("finish_seconds_quantiles", "cost_quantiles", "revocations_means"),
}  # fmt: skip
"""Columns that are asked for, and that the jobs of a batch have, together."""


def _statuses(part: Part) -> Sequence[RowStatus]:
    statuses = part.raw_column("statuses")
    return [status or RowStatus.ANSWERED for status in statuses] if statuses else (RowStatus.ANSWERED,) * len(part)


def _answered_flags(part: Part) -> Sequence[bool]:
    statuses = part.raw_column("statuses")
    return [status == RowStatus.ANSWERED for status in part["statuses"]] if statuses else (True,) * len(part)


class JudgedRow(Row):
    """A row that was answered or was not."""

    __slots__ = ()

    _made: ClassVar[Makers] = {"statuses": _statuses, "answered": _answered_flags}

    @property
    def status(self) -> RowStatus:
        """Whether the row was predicted, and if not, why."""
        status: RowStatus = self._part.entries("status", "statuses")[self._place]
        return status

    @property
    def answered(self) -> bool:
        """Whether the row was predicted."""
        answered: bool = self._part.entries("answered", "answered")[self._place]
        return answered


def _bottlenecks(part: Part) -> Sequence[str | None]:
    """The name of each row's."""
    indexes = part.raw_column("bottleneck_indexes")
    if not indexes:
        return (None,) * len(part)
    names = [name or None for name in part.raw_column("bottleneck_names")]
    if not part.raw_column("statuses"):
        return list(map(names.__getitem__, indexes))
    return [names[index] if answered else None for answered, index in zip(part["answered"], indexes, strict=True)]


def _in_samples(column: str, part: Part) -> Sequence[float | None]:
    """Rates in steps, as samples."""
    columns = (part[column], part["steps_per_second"], part["samples_per_second"])
    rows = zip(*columns, strict=True)
    if all(map(all, columns)):
        return [rate * (samples / steps) for rate, steps, samples in rows]
    return [
        None if rate is None or steps is None or samples is None else rate * (samples / steps)
        for rate, steps, samples in rows
    ]


class Prediction(JudgedRow):
    """One row of an answer, by the names of `Predictions`. None = not asked for, not known, or not predicted."""

    __slots__ = ()

    _over = Predictions
    _made: ClassVar[Makers] = {
        **JudgedRow._made,  # noqa: SLF001  # its base
        "bottleneck": _bottlenecks,
        "lower_samples_per_second": partial(_in_samples, "lower_steps_per_second"),
        "upper_samples_per_second": partial(_in_samples, "upper_steps_per_second"),
    }

    if TYPE_CHECKING:
        nodes: int
        workers: int
        step_seconds: float | None
        """Seconds of a step: asynchronous, the cycle of one worker; otherwise one global batch."""
        steps_per_second: float | None
        """Steps per second of the whole job."""
        samples_per_second: float | None
        """None also where the batch is not known."""
        lower_steps_per_second: float | None
        upper_steps_per_second: float | None
        breakdown_seconds: Mapping[str, float]
        """Parts of `step_seconds` as exposed time; they add up to it."""
        utilization: Mapping[str, float]
        """Share of time that each station is busy, 0 to 1."""
        extra: Mapping[str, float]
        """What else the estimator has to say, by names that carry units."""
        staleness_mean_steps: float | None
        staleness_p95_steps: float | None
        extrapolation_ratio: float | None
        """How far outside the evidence: 1 = within, 2 = twice the largest scale that was measured."""
        memory_bytes: float | None
        """Memory per device."""
        excess_memory_bytes: float | None
        """Memory missing per device."""
        finish_seconds: float | None
        """Seconds to do the work asked about, else all of the workload's epochs where they are known."""
        once_seconds: float | None
        """Seconds spent once besides the steps; part of `finish_seconds`."""
        cost: float | None
        """Cost of that work, in the currency of the offers."""
        finish_seconds_quantiles: Mapping[float, float]
        """Quantiles of `finish_seconds`, by probability."""
        cost_quantiles: Mapping[float, float]
        """Quantiles of `cost`, by probability."""
        revocations_mean: float | None
        """Mean revocations of nodes until the work is done; None = none are expected."""
        global_batch_samples: float | None
        """As resolved or chosen, as the two that follow."""
        batch_per_worker_samples: float | None
        accumulation_steps: int | None
        goodput_samples_per_second: float | None
        """Samples per second times statistical efficiency."""

    @property
    def refusal(self) -> RowRefusal | None:
        """The reason if the row was not predicted."""
        if self.answered:
            return None
        return next((each for each in self._columns.refusals if self._place in each.rows), None)

    @property
    def bottleneck(self) -> str | None:
        """What the step waits for most."""
        name: str | None = self._part.entries("bottleneck", "bottleneck")[self._place]
        return name

    @property
    def interval_coverage(self) -> float | None:
        """Probability that the measured throughput lies within the bounds."""
        return None if self.upper_steps_per_second is None else self._columns.interval_coverage

    @property
    def interval_basis(self) -> IntervalBasis | None:
        """Where the interval comes from."""
        return None if self.upper_steps_per_second is None else self._columns.interval_basis

    @property
    def lower_samples_per_second(self) -> float | None:
        """Lower bound of `samples_per_second`."""
        rate: float | None = self._part.entries("lower_samples_per_second", "lower_samples_per_second")[self._place]
        return rate

    @property
    def upper_samples_per_second(self) -> float | None:
        """Upper bound of `samples_per_second`."""
        rate: float | None = self._part.entries("upper_samples_per_second", "upper_samples_per_second")[self._place]
        return rate

    def _names(self) -> Sequence[str]:
        return [name for name in super()._names() if name not in _OF_ALL_ROWS]

    def _values(self) -> dict[str, Any]:
        more = ("status", "refusal", "bottleneck", "interval_coverage", "interval_basis")
        return super()._values() | {name: getattr(self, name) for name in more}

    @classmethod
    def _reading(cls, name: str, column: str) -> Callable[[Any], Any]:
        return (lambda row: row._values_by_name(column)) if column in _NAMED_COLUMNS else super()._reading(name, column)  # noqa: SLF001  # its own

    @classmethod
    def _column(cls, part: Part, column: str) -> Sequence[Any]:
        column_values = part.raw_column(column)
        if not column_values:
            return (0 if column in {"nodes", "workers"} else None,) * len(part)
        if part.raw_column("statuses") and column not in _OF_EVERY_ROW:
            column_values = [
                value if answered else None for value, answered in zip(column_values, part["answered"], strict=True)
            ]
        # Most columns say something of every row: `all` looks at them quicker than Python does.
        if column in _ONLY_WITH and not all(others := part[_ONLY_WITH[column]]):
            column_values = [
                None if other is None else value for value, other in zip(column_values, others, strict=True)
            ]
        return (
            [value or None for value in column_values]
            if column in _ZERO_IS_ABSENT and not all(column_values)
            else column_values
        )

    @classmethod
    def _few(cls, part: Part, /) -> Sequence[Any]:
        message: Any = part.message
        *columns, names = map(_entries, _mostly_read(message))
        lengths = set(map(len, columns))
        if message.statuses or not lengths <= {0, part.count} or max(columns[-1], default=-1) >= len(names):
            return ()
        return (0 not in lengths and _full_rows(part, columns, names)) or _filled_rows(part)

    def _values_by_name(self, column: str) -> dict[Any, float]:
        entries: Sequence[NamedColumn | QuantileColumn] = getattr(self._columns, column)
        place = self._place
        if not self.answered or (column in _ONLY_WITH and self._part[_ONLY_WITH[column]][place] is None):
            return {}
        return {
            each.name if isinstance(each, NamedColumn) else each.probability: each.values[place] for each in entries
        }

    def _printed_names(self) -> Sequence[str]:
        names = ("nodes", "workers", "samples_per_second", "steps_per_second", "step_seconds")
        bounds = ("lower_steps_per_second", "upper_steps_per_second", "bottleneck", "finish_seconds", "cost")
        return (*names, *bounds, "status")


know(Prediction, Predictions)
_FEW: Final = filled_kind(Prediction, ("answered", *_MOSTLY_READ, *_MADE_OF_FEW))


def _filled_rows(part: Part) -> Sequence[Any]:
    """Rows that are all answered, with what is mostly read."""
    return filled_rows(
        _FEW, part, range(part.count), (True,) * part.count, *map(part.__getitem__, (*_MOSTLY_READ, *_MADE_OF_FEW))
    )


def _full_rows(part: Part, columns: Sequence[Sequence[Any]], names: Sequence[str]) -> Sequence[Any]:
    """The same rows if every column has an entry for every row, else ().

    One function, with each name written out: right after a call the processor's caches are cold, and each further
    function costs more than its work.
    """
    writable, final_class, _ = _FEW
    rows: list[Any] = []
    for place, row in enumerate(zip(*columns, strict=True)):
        nodes, workers, step, steps, samples, lower, upper, memory, index = row
        bottleneck = names[index]
        if not (nodes and workers and step and steps and samples and lower and upper and memory and bottleneck):
            return ()
        new_row: Any = object.__new__(writable)
        new_row._part, new_row._place = part, place  # noqa: SLF001  # ours
        new_row.answered = True
        new_row.nodes, new_row.workers = nodes, workers
        new_row.step_seconds, new_row.steps_per_second, new_row.samples_per_second = step, steps, samples
        new_row.lower_steps_per_second, new_row.upper_steps_per_second = lower, upper
        new_row.memory_bytes = memory
        ratio = samples / steps
        new_row.lower_samples_per_second, new_row.upper_samples_per_second = lower * ratio, upper * ratio
        new_row.bottleneck = bottleneck
        become(new_row, final_class)
        rows.append(new_row)
    return rows


def prediction_rows(columns: Predictions | None) -> Rows[Prediction]:
    """The rows of predictions."""
    predictions = columns or Predictions()
    return Rows(Prediction, predictions, 0, predictions.rows_count)


class SimulatedJob(Row):
    """The result of a finished job, by the names of `SimulationJobRows`; times in seconds of simulated time."""

    __slots__ = ()

    if TYPE_CHECKING:
        job_id: str
        arrival_seconds: float
        start_seconds: float
        completion_seconds: float
        slowdown_ratio: float
        finish_time_fairness_ratio: float
        done_samples: float
        restarts_count: int

    @property
    def response_seconds(self) -> float:
        """Completion minus arrival."""
        return self.completion_seconds - self.arrival_seconds


class HeldDevices(Row):
    """Devices that a job had from a begin to an end, by the names of `SimulationTimelineRows`."""

    __slots__ = ()

    if TYPE_CHECKING:
        job_id: str
        pool_index: int
        devices_count: int
        begin_seconds: float
        end_seconds: float


class ScoredRow(JudgedRow):
    """The prediction of a test row, by the names of `TestPredictions`; None = not answered."""

    __slots__ = ()

    if TYPE_CHECKING:
        row: int
        steps_per_second: float | None
        lower_steps_per_second: float | None
        """Lower bound of the 90 % interval."""
        upper_steps_per_second: float | None
        """Upper bound of the 90 % interval."""

    @classmethod
    def _column(cls, part: Part, column: str) -> Sequence[Any]:
        values = super()._column(part, column)
        return values if column == "rows" else [value or None for value in values]

    @property
    def refusal_reason(self) -> str | None:
        """Why it was refused."""
        columns = self._columns
        return (
            columns.refusal_reasons[columns.refusal_indexes[self._place]] or None if columns.refusal_indexes else None
        )
