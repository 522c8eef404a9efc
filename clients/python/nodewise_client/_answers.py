"""Answers: the contract's replies with their rows. Those that come in pieces are in `_long_answers`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, overload

import nodewise_values as values
from nodewise_client._errors import NodewiseError, from_problem
from nodewise_client._row_kinds import COLUMNS_OF, Prediction, ScoredRow, prediction_rows
from nodewise_client._rows import Rows, table
from nodewise_client._tables import html_table
from nodewise_client.plots import plot_prediction
from nodewise_values.value import Value, field_getters, lazy_value
from nodewise_values.wire import from_own_message

Events: TypeAlias = Sequence[Any]
"""Replies of one stream, as messages."""


Answer = TypeVar("Answer", bound=Value)


class _LateResponse(values.PredictResponse):
    """A reply whose fields are read from its message when they are first read themselves.

    Its predictions keep the message anyway. Callers see no difference: comparing, copying and pickling read all fields.
    """

    __slots__ = ("_message",)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            read = _LATE.get(name)
            if read is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            response = read(self._message)
            object.__setattr__(self, name, response)
            return response


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PredictResult(_LateResponse, Sequence[Prediction]):
    """The answer about one job: a sequence of its rows, the recommendation, the basis and the warnings."""

    rows: Rows[Prediction]
    basis: values.Basis

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> Prediction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...
    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        return self.rows[index]

    @property
    def warnings(self) -> tuple[values.Notice, ...]:
        """Warnings about the answer."""
        return () if self.predictions is None else self.predictions.warnings

    @property
    def recommended(self) -> Prediction | None:
        """The recommended row."""
        return None if self.recommendation is None else self.rows[self.recommendation.row]

    def to_pandas(self) -> Any:
        """Return the rows as a `pandas.DataFrame`; see `Rows.to_pandas`."""
        return self.rows.to_pandas()

    def to_arrow(self) -> Any:
        """Return the rows as a `pyarrow.Table`; see `Rows.to_arrow`."""
        return self.rows.to_arrow()

    def plot(self, axes: Any = None) -> Any:
        """Draw throughput over nodes (or workers) with its interval, and return matplotlib's axes. Needs matplotlib.

        Parameters
        ----------
        axes : matplotlib.axes.Axes or None
            None = those of a new figure.
        """
        return plot_prediction(self, axes)

    def __repr__(self) -> str:
        return _text_of(self)

    def _repr_html_(self) -> str:
        return _html_of(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JobOutcome:
    """The outcome of one job of a batch: its rows, or its error."""

    rows: Rows[Prediction]
    """None where it has an error, or is `unchanged`."""
    recommendation: values.Recommendation | None
    """Its row is counted from the job's first."""
    basis: values.Basis | None
    warnings: tuple[values.Notice, ...]
    error: NodewiseError | None
    unchanged: bool
    """The digest that was asked about still holds."""

    def unwrap(self) -> Rows[Prediction]:
        """The rows; raises the job's error if it has one."""
        if self.error is not None:
            raise self.error
        return self.rows

    @property
    def recommended(self) -> Prediction | None:
        """The recommended row."""
        return None if self.recommendation is None else self.rows[self.recommendation.row]

    def __repr__(self) -> str:
        return _text_of(self) if self.error is None else str(self.error)

    def _repr_html_(self) -> str:
        return _html_of(self) if self.error is None else f"<p>{escape(str(self.error))}</p>"


def _text_of(answer: PredictResult | JobOutcome) -> str:
    """An answer for people."""
    lines = ["unchanged"] if answer.unchanged else [table(answer.rows)]
    if answer.recommendation is not None:
        lines.append(f"recommended ({answer.recommendation.rule}): {answer.recommendation.why}")
    lines += [f"{each.reason}: {each.message}" for each in answer.warnings]
    if answer.basis is not None:
        lines.append(f"by {answer.basis.estimator} {answer.basis.estimator_version}".rstrip())
    return "\n".join(lines)


def _html_of(answer: PredictResult | JobOutcome) -> str:
    """An answer for notebooks: its rows with the recommended one in bold, why it is recommended, and the notices."""
    recommendation = answer.recommendation
    marked = None if recommendation is None else recommendation.row
    parts = ["<p>unchanged</p>" if answer.unchanged else html_table(answer.rows, marked)]
    if recommendation is not None:
        parts.append(f"<p><b>Recommended ({escape(str(recommendation.rule))})</b>: {escape(recommendation.why)}</p>")
    notices = "".join(f"<li>{escape(each.message)}</li>" for each in answer.warnings)
    parts += [f"<ul>{notices}</ul>"] if notices else []
    if answer.basis is not None:
        parts.append(f"<p>By {escape(answer.basis.estimator)} {escape(answer.basis.estimator_version)}</p>")
    return "".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BatchPredictResult(Sequence[JobOutcome]):
    """The answers about many jobs: a sequence with one outcome per job, in the order asked.

    About architectures there are no outcomes, but `rows`, those of the first one first, and how they rank on each
    configuration.
    """

    outcomes: tuple[JobOutcome, ...]
    response: values.BatchPredictResponse = field(compare=False)

    @property
    def rows(self) -> Rows[Prediction]:
        """All rows: of architecture a on configuration c, row a x configurations + c."""
        return prediction_rows(self.response.predictions)

    @property
    def rankings(self) -> tuple[values.ArchitectureRanking, ...]:
        """How architectures rank, configuration by configuration."""
        return self.response.rankings

    def __len__(self) -> int:
        return len(self.outcomes)

    @overload
    def __getitem__(self, index: int) -> JobOutcome: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[JobOutcome, ...]: ...
    def __getitem__(self, index: int | slice) -> JobOutcome | tuple[JobOutcome, ...]:
        return self.outcomes[index]

    def __repr__(self) -> str:
        if self.rankings:
            return table(self.rows)
        return "\n".join(f"job {number}:\n{outcome!r}" for number, outcome in enumerate(self.outcomes)) or "no jobs"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamAnswer:
    """The answer to one question of a stream."""

    question_id: str
    """The id of the question that this answers."""
    result: PredictResult | BatchPredictResult | None
    error: NodewiseError | None
    """An error of one question ends that question, not the stream."""

    def unwrap(self) -> PredictResult | BatchPredictResult:
        """The result; raises the question's error if it has one."""
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


def numbers_by_name(numbers: Iterable[values.NamedNumber]) -> dict[str, float]:
    """Numbers by their names, which carry their units."""
    return {number.name: number.value for number in numbers}


def predict_result(message: Any) -> PredictResult:
    """A reply with its rows, from a message that no other code uses."""
    answer = object.__new__(PredictResult)
    object.__setattr__(answer, "_message", message)
    # Not lazily: nearly every caller reads them.
    columns = message.predictions
    object.__setattr__(answer, "rows", Rows.of_message(Prediction, columns, columns.rows_count))
    return answer


def _part(message: Any, name: str, kind: type[Answer]) -> Answer | None:
    """The value of a message's field that may be absent."""
    return from_own_message(getattr(message, name), kind) if message.HasField(name) else None


_LATE: Final[Mapping[str, Callable[[Any], Any]]] = {
    "predictions": lambda message: _part(message, "predictions", values.Predictions),
    "recommendation": lambda message: _part(message, "recommendation", values.Recommendation),
    "basis": lambda message: _part(message, "basis", values.Basis) or values.Basis(),
    "unchanged": lambda message: message.unchanged,
}
"""What reads the fields of an answer from its message, by their names."""


def batch_result(response: values.BatchPredictResponse) -> BatchPredictResult:
    """A reply cut into jobs."""
    columns = response.predictions or values.Predictions()
    offsets = response.row_offsets or (0,) * (len(response.outcomes) + 1)
    rows: dict[Any, Rows[Prediction]] = {}
    outcomes = []
    for outcome, begin, end in zip(response.outcomes, offsets, offsets[1:], strict=False):
        alike = (outcome.columns, outcome.interval_basis)
        if alike not in rows:
            rows[alike] = Rows(Prediction, _own_columns(columns, *alike), 0, max(columns.rows_count, offsets[-1]))
        outcomes.append(_outcome(outcome, rows[alike].between(begin, end), columns.warnings, begin, response.bases))
    return BatchPredictResult(outcomes=tuple(outcomes), response=response)


def _own_columns(
    columns: values.Predictions, lengths: Sequence[Any], interval_basis: values.IntervalBasis | None
) -> values.Predictions:
    """The columns as a job has them: without those that only others have, and with where its interval comes from."""
    absent = [name for column, names in COLUMNS_OF.items() if column not in lengths for name in names]
    readers = {
        **field_getters(values.Predictions),
        **dict.fromkeys(absent, lambda _: ()),
        "interval_basis": lambda _: interval_basis,
    }
    return lazy_value(values.Predictions, columns, readers)


def _outcome(
    outcome: values.BatchJobOutcome,
    rows: Rows[Prediction],
    warnings: Sequence[values.Notice],
    begin: int,
    bases: Sequence[values.Basis],
) -> JobOutcome:
    problem = outcome.problem
    return JobOutcome(
        rows=rows,
        recommendation=outcome.recommendation,
        basis=None if outcome.basis_index is None else bases[outcome.basis_index],
        warnings=_warnings_between(warnings, begin, begin + len(rows)) if problem is None else (),
        error=None if problem is None else from_problem(problem),
        unchanged=outcome.unchanged,
    )


def _warnings_between(notices: Sequence[values.Notice], begin: int, end: int) -> tuple[values.Notice, ...]:
    """The warnings that concern a job's rows, with rows counted from the job's first."""
    result = []
    for notice in notices:
        rows = tuple(row - begin for row in notice.rows if begin <= row < end)
        if rows or not notice.rows:
            result.append(replace(notice, rows=rows))
    return tuple(result)


def stream_answer(message: Any) -> StreamAnswer:
    """A reply of a stream, from a message that no other code uses."""
    result: PredictResult | BatchPredictResult | None = None
    error: NodewiseError | None = None
    if message.HasField("predict"):
        result = predict_result(message.predict)
    elif message.HasField("batch"):
        result = batch_result(from_own_message(message.batch, values.BatchPredictResponse))
    elif message.HasField("problem"):
        error = from_problem(from_own_message(message.problem, values.Problem))
    else:
        error = NodewiseError("the server sent a kind of answer that this version of the client does not support")
    return StreamAnswer(question_id=message.question_id, result=result, error=error)


def scored_rows(predictions: values.TestPredictions | None) -> Rows[ScoredRow]:
    """The predictions behind an estimator's scores, row by row."""
    columns = predictions or values.TestPredictions()
    return Rows(ScoredRow, columns, 0, len(columns.rows))


def backtest_answer(events: Events) -> values.BacktestResult:
    """The scores that a last reply holds."""
    return from_own_message(events[-1].result, values.BacktestResult)
