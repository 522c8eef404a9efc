"""Rows over columns: answers come as columns, and are read row by row. Nothing is copied until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import eq
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from nodewise_values import NamedColumn, PredictionColumn, Predictions, QuantileColumn, RowRefusal, RowStatus

if TYPE_CHECKING:
    from nodewise_values import IntervalBasis

SHOWN_ROWS: Final = 10
"""Rows that a table prints: the first ones and the last."""
_DIGITS: Final = 5


class Row:
    """One row of a value made of columns. Its names are those of the columns, in the singular where they are plural."""

    __slots__ = ("_columns", "_index")

    def __init__(self, columns: Any, index: int) -> None:
        self._columns = columns
        self._index = index

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # a copy asks before it has columns
        kind: Any = type(self._columns)
        column = column_name(kind, name)
        if column is None:
            raise AttributeError(f"a row of {kind.__name__} has no {name!r}")
        return self._entry(column)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *type(self._columns).__dataclass_fields__]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row) or type(self) is not type(other):
            return NotImplemented
        return self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]  # like the columns, which may be lists

    def __repr__(self) -> str:
        told = (f"{name}={_cell(getattr(self, name))}" for name in self._shown())
        return f"{type(self).__name__}({', '.join(told)})"

    def _entry(self, column: str) -> Any:
        held = getattr(self._columns, column)
        return held[self._index] if held else None

    def _said(self) -> dict[str, Any]:
        """What the row says, by the columns that hold it."""
        return {name: self._entry(name) for name in self._names()}

    def _names(self) -> Sequence[str]:
        """Columns that have an entry for every row."""
        names = type(self._columns).__dataclass_fields__
        return [name for name in names if isinstance(getattr(self._columns, name), tuple | list)]

    def _shown(self) -> Sequence[str]:
        """Names that are printed."""
        return self._names()


RowT = TypeVar("RowT", bound=Row)


class Rows(Sequence[RowT], Generic[RowT]):
    """The rows of a value made of columns."""

    __slots__ = ("_begin", "_columns", "_end", "_kind")

    def __init__(self, kind: type[RowT], columns: Any, begin: int, end: int) -> None:
        self._kind = kind
        self._columns = columns
        self._begin = begin
        self._end = end

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[RowT]:
        return (self._kind(self._columns, index) for index in range(self._begin, self._end))

    @overload
    def __getitem__(self, index: int) -> RowT: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RowT, ...]: ...
    def __getitem__(self, index: int | slice) -> RowT | tuple[RowT, ...]:
        places = range(self._begin, self._end)[index]
        if isinstance(places, int):
            return self._kind(self._columns, places)
        return tuple(self._kind(self._columns, place) for place in places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rows):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as its rows

    def __repr__(self) -> str:
        return table(self)


@cache
def column_name(kind: Any, name: str) -> str | None:
    """The column of a value's class that a name of a row stands for; None = none."""
    known = kind.__dataclass_fields__
    return next((each for each in (name, f"{name}s", f"{name}es") if each in known), None)


def table(rows: Sequence[Row]) -> str:
    """Rows as a small table for people: never more than a screen, however many there are."""
    if not rows:
        return "no rows"
    head = rows if len(rows) <= SHOWN_ROWS else [*islice(rows, SHOWN_ROWS - 1), rows[-1]]
    names = [name for name in head[0]._shown() if any(getattr(row, name) is not None for row in head)]  # noqa: SLF001  # its own
    lines = [["", *names]]
    lines += [[str(number), *(_cell(getattr(row, name)) for name in names)] for number, row in enumerate(head)]
    if len(rows) > len(head):
        lines[-1][0] = str(len(rows) - 1)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    printed = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
    if len(rows) > len(head):
        printed.insert(-1, f"... {len(rows) - len(head)} more rows ...")
    return "\n".join(printed)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.{_DIGITS}g}" if isinstance(value, float) else str(value)


# --- predictions ---------------------------------------------------------------------------------------------------

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
_NAMED: Final = frozenset({
    "breakdown_seconds", "utilization", "extra", "finish_seconds_quantiles", "cost_quantiles"
})  # fmt: skip
_OF_ALL_ROWS: Final = frozenset({"statuses", "refusals", "bottleneck_names", "bottleneck_indexes", "warnings"})
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


class JudgedRow(Row):
    """A row that was answered or was not."""

    __slots__ = ()

    @property
    def status(self) -> RowStatus:
        """What became of the row."""
        statuses = self._columns.statuses
        return (statuses[self._index] if statuses else None) or RowStatus.ANSWERED


class Prediction(JudgedRow):
    """One row of an answer, by the names of `Predictions`. None = not asked for, not known, or not predicted."""

    __slots__ = ()

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
    def answered(self) -> bool:
        """Whether the row was predicted."""
        return self.status == RowStatus.ANSWERED

    @property
    def refusal(self) -> RowRefusal | None:
        """Why it was not predicted."""
        if self.answered:
            return None
        return next((each for each in self._columns.refusals if self._index in each.rows), None)

    @property
    def bottleneck(self) -> str | None:
        """What the step waits for most."""
        columns: Predictions = self._columns
        if not self.answered or not columns.bottleneck_indexes:
            return None
        return columns.bottleneck_names[columns.bottleneck_indexes[self._index]] or None

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
        return self._in_samples(self.lower_steps_per_second)

    @property
    def upper_samples_per_second(self) -> float | None:
        """Upper bound of `samples_per_second`."""
        return self._in_samples(self.upper_steps_per_second)

    def _in_samples(self, rate: float | None) -> float | None:
        steps, samples = self.steps_per_second, self.samples_per_second
        return None if rate is None or steps is None or samples is None else rate * (samples / steps)

    def _names(self) -> Sequence[str]:
        return [name for name in super()._names() if name not in _OF_ALL_ROWS]

    def _said(self) -> dict[str, Any]:
        more = ("status", "refusal", "bottleneck", "interval_coverage", "interval_basis")
        return super()._said() | {name: getattr(self, name) for name in more}

    def _entry(self, column: str) -> Any:
        held = getattr(self._columns, column)
        if column in _NAMED:
            return self._named(column, held)
        if not held:
            return 0 if column in {"nodes", "workers"} else None
        if column not in _OF_EVERY_ROW and not self.answered:
            return None
        if column in _ONLY_WITH and self._entry(_ONLY_WITH[column]) is None:
            return None
        value = held[self._index]
        return (value or None) if column in _ZERO_IS_ABSENT else value

    def _named(self, column: str, held: Sequence[NamedColumn | QuantileColumn]) -> dict[Any, float]:
        if not self.answered or (column in _ONLY_WITH and self._entry(_ONLY_WITH[column]) is None):
            return {}
        return {
            each.name if isinstance(each, NamedColumn) else each.probability: each.values[self._index] for each in held
        }

    def _shown(self) -> Sequence[str]:
        names = ("nodes", "workers", "samples_per_second", "steps_per_second", "step_seconds")
        bounds = ("lower_steps_per_second", "upper_steps_per_second", "bottleneck", "finish_seconds", "cost")
        return (*names, *bounds, "status")


def prediction_rows(columns: Predictions | None) -> Rows[Prediction]:
    """The rows of predictions."""
    found = columns or Predictions()
    return Rows(Prediction, found, 0, found.rows_count)


class SimulatedJob(Row):
    """What became of a finished job, by the names of `SimulationJobRows`; times in seconds of simulated time."""

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
    """Devices that a job held from when to when, by the names of `SimulationTimelineRows`."""

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

    def _entry(self, column: str) -> Any:
        return super()._entry(column) if column == "rows" else super()._entry(column) or None

    @property
    def refusal_reason(self) -> str | None:
        """Why it was refused."""
        columns = self._columns
        return (
            columns.refusal_reasons[columns.refusal_indexes[self._index]] or None if columns.refusal_indexes else None
        )
